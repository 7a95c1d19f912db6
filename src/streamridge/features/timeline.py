"""The recent past of a series, step by step: values read or filled in, and which are trusted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_shape
from streamridge.errors import StateError
from streamridge.series.clock import Steps

# What is known of a step, in bits: it was read, its reading is trusted, it was trusted at the last
# refit and at the one before, and its reading came later than the last refit, in place of a gap.
READ, TRUSTED, AT_REFIT, AT_REFIT_BEFORE, LATE = (np.uint8(1 << bit) for bit in range(5))
# What is remembered of each step.
ROWS = ("values", "extras", "flags")
# Steps that memory is taken for at a time.
CHUNK = 128


class Timeline:
    """The last values of a series, with every gap filled; it grows until steps are forgotten.

    Long gaps are cut out: their steps count, but are not remembered.

    Parameters
    ----------
    extras
        How many further columns there are.

    Examples
    --------
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
        self._holes: Steps = np.zeros((0, 2), dtype=np.int64)  # first step, and the one after
        self.start = 0  # the first step ever
        self.oldest = 0  # the oldest step that is remembered
        self.newest = -1  # the last step; start - 1 while there is none
        self.marked = -1  # the last step at the last refit

    def __len__(self) -> int:
        return self.newest - self.start + 1

    def start_at(self, step: int) -> None:
        """Set the step of the first value to be pushed."""
        self.start = self.oldest = step
        self.newest = self.marked = step - 1

    def push(
        self, value: float, *, read: bool, trusted: bool, extras: Vector | None = None
    ) -> None:
        """Add the next step, with its further columns if they are known."""
        self._grow(1)
        self.newest += 1
        at = self._slot(self.newest)
        self._values[at] = value
        self._flags[at] = READ * read | TRUSTED * trusted
        self._extras[at] = np.nan if extras is None else extras

    def correct(self, step: int, value: float) -> None:
        """Replace a filled-in value by a reading that arrived late."""
        at = self._slot(step)
        self._values[at] = value
        self._flags[at] |= READ | TRUSTED | LATE

    def distrust(self, steps: Steps) -> None:
        """Mark remembered steps as not to be learned from."""
        self._flags[self._found(steps)[0]] &= ~TRUSTED

    def leap(self, count: int, period: int, needed: int) -> None:
        """Add many steps without a reading at once, by repeating the last period.

        Of the new steps only the last ones, as many as are `needed`, are remembered: at least a
        period, which the next gap repeats.
        """
        last = np.arange(self.newest - period + 1, self.newest + 1)
        pattern = self.values(np.maximum(last, self.oldest))
        cut = max(count - needed, 0)
        if cut:
            hole = [[self.newest + 1, self.newest + 1 + cut]]
            self._holes = np.concatenate([self._holes, np.array(hole, dtype=np.int64)])
        self._grow(count - cut)
        self.newest += count
        steps = np.arange(self.newest - (count - cut) + 1, self.newest + 1)
        at, _ = self._found(steps)
        self._values[at] = pattern[(steps - last[0]) % period]
        self._flags[at] = 0
        self._extras[at] = np.nan

    def mark(self) -> None:
        """Remember which steps are trusted at this refit, and which were at the last."""
        before = np.where(self._flags & AT_REFIT, AT_REFIT_BEFORE, np.uint8(0))
        now = np.where(self._flags & TRUSTED, AT_REFIT, np.uint8(0))
        self._flags = (self._flags & (READ | TRUSTED)) | now | before
        self.marked = self.newest

    def as_at_refit(self, refits_ago: int) -> Timeline:
        """Return the timeline with the trust of the last refit (0), or of the one before (1).

        Where a step was trusted then, its value is still the same.
        """
        flag = AT_REFIT_BEFORE if refits_ago else AT_REFIT
        view = copy(self)
        view._flags = np.where(self._flags & flag, TRUSTED, np.uint8(0))
        return view

    def forget_before(self, step: int) -> None:
        """Forget the steps before this one, and give back their memory."""
        oldest = min(max(step, self.oldest), self.newest + 1)
        for first, end in self._holes.tolist():
            oldest = end if first <= oldest < end else oldest
        kept = slice(self._slot(oldest), self._used)
        self._values, self._flags = self._values[kept].copy(), self._flags[kept].copy()
        self._extras = self._extras[kept].copy()
        self.oldest, self._holes = oldest, self._holes[self._holes[:, 0] > oldest]
        self._grow(1)

    def values(self, steps: Steps) -> Vector:
        """Return the values at some steps, NaN where they are not remembered."""
        at, found = self._found(steps)
        return np.where(found, self._values[at], np.nan)

    def trusted(self, steps: Steps) -> Mask:
        """Return which steps have a reading that can be learned from."""
        at, found = self._found(steps)
        return found & ((self._flags[at] & TRUSTED) > 0)

    def extras(self, steps: Steps) -> Matrix:
        """Return the further columns at some steps, NaN where they are not remembered."""
        at, found = self._found(steps)
        return np.where(found[:, None], self._extras[at], np.nan)

    def was_read(self, step: int) -> bool:
        """Return whether a remembered step has a reading."""
        return bool(self._flags[self._slot(step)] & READ)

    def is_remembered(self, step: int) -> bool:
        """Return whether a step is remembered: not too old, nor in a long gap."""
        return bool(self._found(np.array([step]))[1][0])

    def remembered(self) -> Steps:
        """Return the steps that are remembered."""
        steps = np.arange(self.oldest, self.newest + 1)
        return steps[self._found(steps)[1]]

    def readings(self) -> tuple[Steps, Vector, Mask]:
        """Return the steps and values of the remembered readings, and which are trusted."""
        steps = self.remembered()
        steps = steps[(self._flags[: len(steps)] & READ) > 0]
        return steps, self.values(steps), self.trusted(steps)

    def changes(self) -> dict[str, NDArray[Any]]:
        """Return the steps that are new since the last `mark`, read late, or trusted otherwise.

        With the state of any time since that mark, `apply` makes the present state of them.
        """
        steps, flags = self.remembered(), self._flags[: self._used]
        changed = ((flags & TRUSTED) > 0) != ((flags & AT_REFIT) > 0)
        changed |= ((flags & LATE) > 0) | (steps > self.marked)
        state = self.state()
        rows = {name: state[name][changed] for name in ROWS}
        return {"steps": steps[changed], **rows, "holes": state["holes"], "span": state["span"]}

    def apply(self, changes: Mapping[str, NDArray[Any]]) -> None:
        """Take over what has changed later in a timeline of the same mark."""
        steps, before = self.remembered(), self.state()
        _, oldest, newest, _ = changes["span"].tolist()
        count = newest + 1 - oldest - int(np.diff(changes["holes"]).sum())
        blank = {name: np.zeros((count, *before[name].shape[1:])) for name in ROWS}
        self.restore({**blank, "holes": changes["holes"], "span": changes["span"]})
        for at, rows in ((steps, before), (changes["steps"], changes)):
            slots, _ = self._found(at)
            self._values[slots], self._extras[slots] = rows["values"], rows["extras"]
            self._flags[slots] = rows["flags"]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        used = slice(0, self._used)
        return {
            "values": self._values[used].copy(),
            "extras": self._extras[used].copy(),
            "flags": self._flags[used].copy(),
            "holes": self._holes.copy(),
            "span": np.array([self.start, self.oldest, self.newest, self.marked]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state with as many further columns."""
        start, oldest, newest, marked = (int(step) for step in state["span"])
        if not start <= oldest <= newest + 1:
            raise StateError(
                f"span must hold steps in order, got first {start}, oldest {oldest} and newest "
                f"{newest}."
            )
        holes = np.array(state["holes"], dtype=np.int64)
        require_shape("holes", holes, (None, 2))
        count = newest + 1 - oldest - int(np.diff(holes).sum())
        for name in ("values", "flags"):
            require_shape(name, state[name], (count,))
        require_shape("extras", state["extras"], (count, self._extras.shape[1]))
        self.start, self.oldest, self.newest, self.marked = start, oldest, newest, marked
        self._holes = holes
        self._values, self._extras = (state[name].astype(float) for name in ("values", "extras"))
        self._flags = state["flags"].astype(np.uint8)
        self._grow(1)

    @property
    def _used(self) -> int:
        """Return how many steps memory is in use for."""
        return self._slot(self.newest + 1)

    def _grow(self, count: int) -> None:
        """Make room for further steps."""
        missing = self._used + count - len(self._values)
        if missing > 0:
            more = missing + CHUNK
            self._values = np.pad(self._values, (0, more), constant_values=np.nan)
            self._flags = np.pad(self._flags, (0, more))
            self._extras = np.pad(self._extras, ((0, more), (0, 0)), constant_values=np.nan)

    def _slot(self, step: int) -> int:
        """Return the place of one step that is remembered, or comes next."""
        skipped = sum(end - first for first, end in self._holes.tolist() if end <= step)
        return int(step - self.oldest - skipped)

    def _found(self, steps: Steps) -> tuple[Steps, Mask]:
        """Return the places of some steps, zero where they are not remembered; and which are."""
        at = steps - self.oldest
        found = (at >= 0) & (steps <= self.newest)
        if len(self._holes):
            first, end = self._holes.T
            passed = np.searchsorted(end, steps, side="right")
            at = at - np.append(0, np.cumsum(end - first))[passed]
            found &= steps < np.append(first, self.newest + 1)[passed]
        return np.where(found, at, 0), found
