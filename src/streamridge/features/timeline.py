"""The recent past of a series, step by step: values read or filled in, and which are trusted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_shape
from streamridge.errors import StateError
from streamridge.series.clock import Steps


class Timeline:
    """The last values of a series, with every gap filled, in a ring of fixed size.

    Parameters
    ----------
    capacity
        How many steps are remembered.
    extras
        How many further columns there are.

    Examples
    --------
    >>> timeline = Timeline(capacity=3)
    >>> for value in (5.0, 6.0, 7.0, 8.0):
    ...     timeline.push(value, read=True, trusted=value != 7)
    >>> timeline.values(np.array([1, 2, 3])), timeline.trusted(np.array([0, 1, 2]))
    (array([6., 7., 8.]), array([False,  True, False]))
    """

    def __init__(self, capacity: int, extras: int = 0) -> None:
        self._values = np.full(capacity, np.nan)
        self._extras = np.full((capacity, extras), np.nan)
        self._read = np.zeros(capacity, dtype=bool)
        self._trusted = np.zeros(capacity, dtype=bool)
        self.start = 0  # the first step ever
        self.newest = -1  # the last step; start - 1 while there is none

    def __len__(self) -> int:
        return self.newest - self.start + 1

    @property
    def oldest(self) -> int:
        """Return the oldest step that is remembered."""
        return max(self.start, self.newest - len(self._values) + 1)

    def start_at(self, step: int) -> None:
        """Set the step of the first value to be pushed."""
        self.start, self.newest = step, step - 1

    def push(
        self, value: float, *, read: bool, trusted: bool, extras: Vector | None = None
    ) -> None:
        """Add the next step, with its further columns if they are known."""
        self.newest += 1
        self._put(self.newest, value, read, trusted)
        self._extras[self.newest % len(self._extras)] = np.nan if extras is None else extras

    def correct(self, step: int, value: float) -> None:
        """Replace a filled-in value by a reading that arrived late."""
        self._put(step, value, read=True, trusted=True)

    def distrust(self, steps: Steps) -> None:
        """Mark remembered steps as not to be learned from."""
        self._trusted[self._at(steps)] = False

    def leap(self, count: int, period: int) -> None:
        """Add many steps without a reading at once, by repeating the last period."""
        last = np.arange(self.newest - period + 1, self.newest + 1)
        pattern = self.values(np.maximum(last, self.oldest))
        self.newest += count
        steps = np.arange(max(self.newest - count + 1, self.oldest), self.newest + 1)
        at = self._at(steps)
        self._values[at] = pattern[(steps - last[0]) % period]
        self._read[at] = self._trusted[at] = False
        self._extras[at] = np.nan

    def values(self, steps: Steps) -> Vector:
        """Return the values at some steps, NaN where they are not remembered."""
        return np.where(self._remembered(steps), self._values[self._at(steps)], np.nan)

    def trusted(self, steps: Steps) -> Mask:
        """Return which steps have a reading that can be learned from."""
        return self._remembered(steps) & self._trusted[self._at(steps)]

    def extras(self, steps: Steps) -> Matrix:
        """Return the further columns at some steps, NaN where they are not remembered."""
        remembered = self._remembered(steps)[:, None]
        return np.where(remembered, self._extras[self._at(steps)], np.nan)

    def was_read(self, step: int) -> bool:
        """Return whether a remembered step has a reading."""
        return bool(self._read[step % len(self._read)])

    def readings(self) -> tuple[Steps, Vector, Mask]:
        """Return the steps and values of the remembered readings, and which are trusted."""
        steps = np.arange(self.oldest, self.newest + 1)
        steps = steps[self._read[self._at(steps)]]
        return steps, self.values(steps), self.trusted(steps)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that changes, for `restore`."""
        return {
            "values": self._values.copy(),
            "extras": self._extras.copy(),
            "read": self._read.copy(),
            "trusted": self._trusted.copy(),
            "span": np.array([self.start, self.newest]),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from the state of a timeline of the same capacity."""
        for name in ("values", "read", "trusted"):
            require_shape(name, state[name], self._values.shape)
        require_shape("extras", state["extras"], self._extras.shape)
        start, newest = (int(step) for step in state["span"])
        if newest < start - 1:
            raise StateError(f"span must not end before it starts, got [{start}, {newest}].")
        self._values, self._extras = (state[name].astype(float) for name in ("values", "extras"))
        self._read, self._trusted = (state[name].astype(bool) for name in ("read", "trusted"))
        self.start, self.newest = start, newest

    def _put(self, step: int, value: float, read: bool, trusted: bool) -> None:
        at = step % len(self._values)
        self._values[at], self._read[at], self._trusted[at] = value, read, trusted

    def _at(self, steps: Steps) -> Steps:
        return steps % len(self._values)

    def _remembered(self, steps: Steps) -> Mask:
        return (steps >= self.oldest) & (steps <= self.newest)
