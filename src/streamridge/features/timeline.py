"""The recent past of a series: one value per step, read or filled in, and whether it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_shape
from streamridge.errors import StateError
from streamridge.series.times import Steps

# The flags of a step: it was read, its reading is trusted, it was trusted at the last refit, it has
# changed since then, and it is filled in by a forecast.
READ, TRUSTED, AT_REFIT, CHANGED, FILLED = (np.uint8(1 << bit) for bit in range(5))
# The flags of a new step, given whether it was read and whether it is trusted.
NEW = {
    (read, trusted): (READ if read else FILLED) | (TRUSTED if trusted else np.uint8(0)) | CHANGED
    for read in (False, True)
    for trusted in (False, True)
}
# The arrays with one entry per step.
ROWS = ("values", "extras", "flags")
# The number of steps by which the arrays grow.
CHUNK = 128


class Timeline:
    """The last values of a series, with every gap filled; it grows until steps are forgotten.

    The steps of a long gap count, but are not stored.

    >>> timeline = Timeline()
    >>> for value in (5.0, 6.0, 7.0, 8.0):
    ...     timeline.push(value, read=True, trusted=value != 7)
    >>> timeline.forget_before(1)
    >>> timeline.values(np.array([0, 1, 2, 3])), timeline.trusted(np.array([0, 1, 2]))
    (array([nan,  6.,  7.,  8.]), array([False,  True, False]))
    """

    def __init__(self, extras: int = 0) -> None:
        self._values = np.full(CHUNK, np.nan)
        self._extras = np.full((CHUNK, extras), np.nan)
        self._flags = np.zeros(CHUNK, dtype=np.uint8)
        self._holes: Steps = np.zeros((0, 2), dtype=np.int64)  # first and end
        self._replaced: dict[int, float] = {}  # the filled values of steps that were read late
        self.start = 0  # the first step ever
        self.oldest = 0  # the oldest step that is stored
        self.newest = -1  # the last step; start - 1 while there is none
        self.revision = 0  # how often earlier steps were changed or forgotten

    def __len__(self) -> int:
        return self.newest - self.start + 1

    @property
    def after_holes(self) -> int:
        """Return the first step after which all steps are stored."""
        return int(self._holes[-1, 1]) if len(self._holes) else self.oldest

    def start_at(self, step: int) -> None:
        """Set the step of the first value to be pushed."""
        self.start = self.oldest = step
        self.newest = step - 1

    def push(
        self, value: float, *, read: bool, trusted: bool, extras: Vector | None = None
    ) -> None:
        """Add the next step, with its extra columns if they are known."""
        at = self._slot(self.newest + 1)
        if at == len(self._values):
            self._grow(1)
        self.newest += 1
        self._values[at] = value
        self._flags[at] = NEW[read, trusted]
        if self._extras.shape[1]:
            self._extras[at] = np.nan if extras is None else extras

    def correct(self, step: int, value: float) -> None:
        """Replace a filled-in value by a reading that arrived late."""
        self.revision += 1
        at = self._slot(step)
        if self._flags[at] & FILLED:
            self._replaced[step] = float(self._values[at])
        self._values[at] = value
        self._flags[at] = (self._flags[at] & ~FILLED) | READ | TRUSTED | CHANGED

    def distrust(self, steps: Steps) -> None:
        """Mark stored steps as not to be learned from."""
        self._unset(steps, TRUSTED)

    def mark_missing(self, steps: Steps) -> None:
        """Treat stored steps as gaps from now on; their values stay."""
        self._unset(steps, READ | TRUSTED)

    def append_gap(self, count: int, period: int, needed: int) -> None:
        """Add `count` steps without a reading, by repeating the last period.

        Only the last `needed` of the new steps are stored.
        """
        last = np.arange(self.newest - period + 1, self.newest + 1)
        pattern = self.values(np.maximum(last, self.after_holes))
        cut = max(count - needed, 0)
        self.revision += 1
        if cut:
            self._add_hole(self.newest + 1, self.newest + 1 + cut)
        self._grow(count - cut)
        self.newest += count
        steps = np.arange(self.newest - (count - cut) + 1, self.newest + 1)
        at, _ = self._found(steps)
        self._values[at] = pattern[(steps - last[0]) % period]
        self._flags[at] = FILLED | CHANGED
        self._extras[at] = np.nan

    def cut(self, first: int, end: int) -> None:
        """Drop the stored steps from `first` up to, not including, `end`, as in a long gap."""
        self.revision += 1
        gone = slice(self._slot(first), self._slot(end))
        self._values, self._flags = (np.delete(each, gone) for each in (self._values, self._flags))
        self._extras = np.delete(self._extras, gone, axis=0)
        kept = {step: fill for step, fill in self._replaced.items() if not first <= step < end}
        self._replaced = kept
        self._add_hole(first, end)

    def mark_refit(self) -> None:
        """Store which steps are trusted at this refit."""
        now = np.where(self._flags & TRUSTED, AT_REFIT, np.uint8(0))
        self._flags = self._flags & (READ | TRUSTED | FILLED) | now  # and no longer CHANGED
        # A filled value that the refit saw replaced is not needed again.
        self._replaced = {
            step: fill
            for step, fill in self._replaced.items()
            if not self._flags[self._slot(step)] & AT_REFIT
        }

    def as_at_refit(self) -> Timeline:
        """Return the timeline as the last refit saw it.

        The values of steps that were trusted then, or filled in, are still known.
        """
        view = copy(self)
        view._flags = np.where(self._flags & AT_REFIT, TRUSTED, self._flags & FILLED)
        if self._replaced:
            view._values = self._values.copy()
            for step, fill in self._replaced.items():
                at = self._slot(step)
                if not self._flags[at] & AT_REFIT:
                    view._values[at], view._flags[at] = fill, FILLED
        return view

    def forget_before(self, step: int) -> None:
        """Drop the steps before this one, and free their memory."""
        self.revision += 1
        oldest = min(max(step, self.oldest), self.newest + 1)
        for first, end in self._holes.tolist():
            oldest = end if first <= oldest < end else oldest
        kept = slice(self._slot(oldest), self._slot(self.newest + 1))
        self._values, self._flags = self._values[kept].copy(), self._flags[kept].copy()
        self._extras = self._extras[kept].copy()
        self.oldest, self._holes = oldest, self._holes[self._holes[:, 0] > oldest]
        self._replaced = {step: fill for step, fill in self._replaced.items() if step >= oldest}
        if not len(self._values):  # lookups need one element
            self._grow(1)

    @property
    def latest(self) -> float:
        """Return the value of the newest step."""
        return self.value(self.newest)

    def value(self, step: int) -> float:
        """Return the value of one stored step."""
        at = self._slot(step) if len(self._holes) else step - self.oldest
        return self._values.item(at)

    def values(self, steps: Steps) -> Vector:
        """Return the values at some steps, NaN where they are not stored."""
        at, found = self._found(steps)
        return np.where(found, self._values[at], np.nan)

    def trusted(self, steps: Steps) -> Mask:
        """Return a mask of the steps with a reading that can be learned from."""
        at, found = self._found(steps)
        return found & ((self._flags[at] & TRUSTED) > 0)

    def trusted_values(self, steps: Steps) -> Vector:
        """Return the values at some steps, NaN where there is no trusted reading."""
        at, found = self._found(steps)
        return np.where(found & ((self._flags[at] & TRUSTED) > 0), self._values[at], np.nan)

    def sound(self, steps: Steps) -> Mask:
        """Return a mask of the steps with a trusted reading, or filled in by a forecast."""
        at, found = self._found(steps)
        return found & ((self._flags[at] & (TRUSTED | FILLED)) > 0)

    def extras(self, steps: Steps) -> Matrix:
        """Return the extra columns at some steps, NaN where they are not stored."""
        at, found = self._found(steps)
        return np.where(found[:, None], self._extras[at], np.nan)

    @property
    def last_extras(self) -> Vector:
        """Return the last known value of each extra column, (E,); zero if none is stored."""
        stored = self._extras[: self._slot(self.newest + 1)]
        known = ~np.isnan(stored)
        last = len(stored) - 1 - np.argmax(known[::-1], axis=0)
        return np.where(known.any(axis=0), stored[last, np.arange(stored.shape[1])], 0.0)

    def holds(self, first: int, end: int) -> bool:
        """Return whether all steps from `first` up to, not including, `end` are stored."""
        return self.after_holes <= first and end <= self.newest + 1

    def values_around(self, step: int, offsets: Steps) -> tuple[NDArray[np.float64], Mask | None]:
        """Return the values at some offsets from a step, and a mask of the trusted ones.

        The mask is None if all are trusted. All steps from the first to `step` must be stored.
        """
        at = offsets + self._slot(step)
        flags = self._flags[at]
        if np.bitwise_and.reduce(flags, axis=None) & TRUSTED:
            return self._values[at], None
        return self._values[at], (flags & TRUSTED) > 0

    def values_between(self, first: int, end: int) -> Vector:
        """Return the values from `first` up to, not including, `end`; all must be stored."""
        at = self._slot(first)
        return self._values[at : at + end - first]

    def was_read(self, step: int) -> bool:
        """Return whether a stored step has a reading."""
        return bool(self._flags[self._slot(step)] & READ)

    def is_remembered(self, step: int) -> bool:
        """Return whether a step is stored: not too old, nor in a long gap."""
        if not self.oldest <= step <= self.newest:
            return False
        return not len(self._holes) or not any(
            first <= step < end for first, end in self._holes.tolist()
        )

    def remembered(self) -> Steps:
        """Return the steps that are stored."""
        starts = [self.oldest, *self._holes[:, 1].tolist()]
        ends = [*self._holes[:, 0].tolist(), self.newest + 1]
        parts = [np.arange(*ends) for ends in zip(starts, ends, strict=True)]
        return np.concatenate(parts)

    def readings(self) -> tuple[Steps, Vector, Mask]:
        """Return the steps and values of the stored readings, and a mask of the trusted ones."""
        steps = self.remembered()
        steps = steps[(self._flags[: len(steps)] & READ) > 0]
        return steps, self.values(steps), self.trusted(steps)

    def last_readings(self, count: int) -> Vector:
        """Return the readings of the last stored steps, at most `count`; NaN without a reading."""
        first = max(self.newest + 1 - count, self.after_holes)
        stored = slice(self._slot(first), self._slot(self.newest + 1))
        return np.where(self._flags[stored] & READ, self._values[stored], np.nan)

    def changes(self) -> dict[str, NDArray[Any]]:
        """Return the steps that are new or have changed since the last `mark_refit`.

        `updated` combines them with any state since then to the present state.
        """
        state = self.state()
        changed = (state["flags"] & CHANGED) > 0
        rows = {name: state[name][changed] for name in ROWS}
        return {**state, **rows, "steps": self.remembered()[changed]}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        used = slice(0, self._slot(self.newest + 1))
        return {
            "values": self._values[used].copy(),
            "extras": self._extras[used].copy(),
            "flags": self._flags[used].copy(),
            "holes": self._holes.copy(),
            "replaced": np.array([*self._replaced.items()], dtype=np.float64).reshape(-1, 2),
            "span": np.array([self.start, self.oldest, self.newest]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state with the same number of extra columns."""
        self.revision += 1
        count = self._take_span(state)
        for name in ROWS:
            mine = getattr(self, f"_{name}")
            require_shape(name, state[name], (count, *mine.shape[1:]))
            mine[:count] = state[name]

    def _take_span(self, state: Mapping[str, NDArray[Any]]) -> int:
        """Take over the range of stored steps, make room for them, and return their number."""
        start, oldest, newest = (int(step) for step in state["span"])
        if not start <= oldest <= newest + 1:
            raise StateError(
                f"span must hold steps in order, got first {start}, oldest {oldest} and newest "
                f"{newest}."
            )
        holes = np.array(state["holes"], dtype=np.int64)
        for name in ("holes", "replaced"):
            require_shape(name, state[name], (None, 2))
        self.start, self.oldest, self.newest = start, oldest, newest
        self._holes = holes
        self._replaced = {int(step): fill for step, fill in state["replaced"].tolist()}
        self._grow(1)
        return self._slot(newest + 1)

    def _unset(self, steps: Steps, flags: np.uint8) -> None:
        self.revision += 1
        at, _ = self._found(steps)
        self._flags[at] = (self._flags[at] & ~flags) | CHANGED

    def _add_hole(self, first: int, end: int) -> None:
        """Add a hole after all others; adjacent holes become one."""
        holes = self._holes.tolist()
        if holes and holes[-1][1] == first:
            first, _ = holes.pop()
        self._holes = np.array([*holes, [first, end]], dtype=np.int64)

    def _grow(self, count: int) -> None:
        """Make room for `count` more steps."""
        missing = self._slot(self.newest + 1) + count - len(self._values)
        if missing > 0:
            more = missing + CHUNK
            self._values = np.pad(self._values, (0, more), constant_values=np.nan)
            self._flags = np.pad(self._flags, (0, more))
            self._extras = np.pad(self._extras, ((0, more), (0, 0)), constant_values=np.nan)

    def _slot(self, step: int) -> int:
        """Return the place of one step that is stored, or comes next."""
        if not len(self._holes):
            return step - self.oldest
        skipped = sum(end - first for first, end in self._holes.tolist() if end <= step)
        return int(step - self.oldest - skipped)

    def _found(self, steps: Steps) -> tuple[Steps, Mask]:
        """Return the places of some steps, zero if not stored, and a mask of the stored ones."""
        at = steps - self.oldest
        found = (at >= 0) & (steps <= self.newest)
        if len(self._holes):
            first, end = self._holes.T
            passed = np.searchsorted(end, steps, side="right")
            at = at - np.append(0, np.cumsum(end - first))[passed]
            found &= steps < np.append(first, self.newest + 1)[passed]
        return np.where(found, at, 0), found


def updated(state: Mapping[str, NDArray[Any]], changes: Mapping[str, NDArray[Any]]) -> Timeline:
    """Return the timeline of a state and the later changes to it since the same refit."""
    before, after = (Timeline(state["extras"].shape[1]) for _ in range(2))
    before.restore(state)
    after._take_span(changes)
    for steps, rows in ((before.remembered(), before.state()), (changes["steps"], changes)):
        at, found = after._found(steps)
        for name in ROWS:
            getattr(after, f"_{name}")[at[found]] = rows[name][found]
    return after
