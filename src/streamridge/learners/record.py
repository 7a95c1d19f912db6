"""The rows that a learner can learn from: a contract, and a record that keeps the rows it is given.

A row is labelled by the values that come after it. Once its last label is known it can be learned
from: at first as one of the window's rows, from the next refit on as one of the training set's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite
from streamridge.errors import StateError
from streamridge.learners.rows import Row, Rows, complete, known_at_the_end, stack, unstack, waiting
from streamridge.models.base import Tangents
from streamridge.samples import Inputs, Samples, concatenate

# The parts of kept rows that are rows, not samples.
ROWS = ("window", "waiting")


class Record(Protocol):
    """The rows of a stream, as they are known now; methods return the record after them."""

    def taken(self, row: Row | None, t: float, value: float) -> Self:
        """Return the record after the value at time t; its row is None if it cannot be learned."""

    def between(self, after: float, until: float, *, waited: bool = False) -> Samples:
        """Return the rows later than `after`, up to `until`, whose labels are all known.

        Those that `waited` for labels at the last refit stay as they were then, whatever came late.
        """

    def latest(self, count: int) -> Samples:
        """Return the last `count` rows whose labels are all known, in order of time."""

    def renewed(self, oldest: float) -> Self:
        """Return the record after a refit; rows before the time `oldest` are not needed again."""

    def at(self, times: Vector, refits_ago: int) -> Samples:
        """Return the rows of a training set as they were known at the last refit, or before it."""

    def under(self, lam: Vector) -> Self:
        """Return the record whose rows are made with these hyperparameters, from now on."""

    def tangents(self, times: Vector, predicted: Vector, refits_ago: int) -> Tangents | None:
        """Return how rows move with the numbers that they are made with; None without any.

        They are those of a training set, and those that its fit has predicted. The fit is that of
        the last refit, or the one before it, whose rows waited for labels.
        """

    def state(self) -> dict[str, Matrix]:
        """Return everything that changes, as arrays for `restore`."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Return the record that the state was taken from."""


@dataclass(frozen=True)
class KeptRows:
    """A record that keeps every row it may need again.

    Parameters
    ----------
    settled
        Rows known at the last refit, in order of time.
    window
        Rows since then with all labels known.
    waiting
        Rows with labels still to come, NaN until then; at first the end of the history.
    """

    settled: Samples
    window: Rows = ()
    waiting: Rows = ()

    @classmethod
    def of(cls, history: Samples) -> KeptRows:
        """Return the record of a history; labels after its last time are not known yet."""
        settled, rest = known_at_the_end(history)
        return cls(settled, waiting=waiting(rest, float(history.t[-1])))

    def taken(self, row: Row | None, t: float, value: float) -> KeptRows:
        """Return the record with the value as a label of each row that waits for it.

        A row that can no longer get all its labels is dropped and not learned from.
        """
        new = () if row is None else (row,)
        rows = [each.labelled(t, value) for each in self.waiting + new]
        return replace(self, window=self.window + complete(rows), waiting=waiting(rows, t))

    def between(self, after: float, until: float, *, waited: bool = False) -> Samples:
        """Return the rows of the window in a span of time; kept rows stay as they were."""
        return self._stacked(tuple(row for row in self.window if after < row.t <= until))

    def latest(self, count: int) -> Samples:
        """Return the last `count` rows whose labels are all known."""
        return self._known()[-count:]

    def renewed(self, oldest: float) -> KeptRows:
        """Return the record in which all known rows are settled, without those before `oldest`."""
        known = self._known()
        return KeptRows(known[int(np.searchsorted(known.t, oldest)) :], waiting=self.waiting)

    def at(self, times: Vector, refits_ago: int) -> Samples:
        """Return the settled rows at some times; a row never changes."""
        settled = self.settled
        rows = np.searchsorted(settled.t, times)
        if (rows == len(settled)).any() or not np.array_equal(settled.t[rows], times):
            raise StateError(f"state must hold all rows that were trained on, got {len(settled)}.")
        return Samples(
            Inputs(settled.t[rows], settled.x[rows], settled.inputs.layout), settled.y[rows]
        )

    def under(self, lam: Vector) -> KeptRows:
        """Return the record itself: kept rows were made by others."""
        return self

    def tangents(self, times: Vector, predicted: Vector, refits_ago: int) -> None:
        """Return None: it is not known how kept rows were made."""

    def state(self) -> dict[str, Matrix]:
        """Return every row, as arrays."""
        parts = {"settled": self.settled}
        parts |= {name: self._stacked(getattr(self, name)) for name in ROWS}
        return {
            f"{name}.{letter}": getattr(samples, letter)
            for name, samples in parts.items()
            for letter in "txy"
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> KeptRows:
        """Return the record with the rows of a state; rows must have the same form."""
        settled = self._samples("settled", state)
        require_finite("settled.y", settled.y)
        rows: dict[str, Any] = {name: unstack(self._samples(name, state)) for name in ROWS}
        return KeptRows(settled, **rows)

    def _known(self) -> Samples:
        return concatenate([self.settled, self._stacked(self.window)])

    def _stacked(self, rows: Rows) -> Samples:
        return stack(rows, self.settled.inputs.layout, self.settled.y.shape[1])

    def _samples(self, name: str, state: Mapping[str, NDArray[Any]]) -> Samples:
        t, x = (require_finite(key, state[key]).copy() for key in (f"{name}.t", f"{name}.x"))
        y = np.array(state[f"{name}.y"], dtype=np.float64)  # NaN is a label still to come
        layout, horizon = self.settled.inputs.layout, self.settled.y.shape[1]
        n, p = t.size, layout.width
        if (t.shape, x.shape, y.shape) != ((n,), (n, p), (n, horizon)):
            raise StateError(
                f"state must hold rows of {p} features and {horizon} labels in {name!r}, "
                f"got shapes {t.shape}, {x.shape}, {y.shape}."
            )
        return Samples(Inputs(t, x, layout), y)
