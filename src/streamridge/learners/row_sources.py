"""Rows to learn from: the contract of a row source, and rows that a learner keeps itself.

A row is labelled by the values that follow it. It can be learned from once its last label is known:
first as part of the window since the last refit, then as part of the training set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite
from streamridge.errors import InvalidInputError, StateError
from streamridge.models.base import Tangents
from streamridge.samples import Inputs, Samples, concatenate

# The parts of kept rows that may lack labels.
UNSETTLED = ("window", "waiting")


class RowSource(Protocol):
    """The rows of a stream as they are known now; reading them changes nothing.

    Rows may depend on hyperparameters, so each method takes the `lam` to build them with.
    """

    def latest(self, count: int, lam: Vector) -> Samples:
        """Return the last `count` rows whose labels are all known, in order of time."""

    def between(self, after: float, until: float, lam: Vector) -> Samples:
        """Return the rows later than `after`, up to `until`, whose labels are all known."""

    def at(self, times: Vector, lam: Vector) -> Samples:
        """Return the rows of a training set as they were at the last refit."""

    def tangents(self, times: Vector, predicted: Vector, lam: Vector) -> Tangents | None:
        """Return the derivatives of rows with respect to the numbers they are built with.

        The rows are the training set of a fit, and the rows after it. None if rows do not depend on
        hyperparameters.
        """


@dataclass(frozen=True)
class LabelledRow:
    """One step of a stream: its input and its H labels, which are NaN until they are known.

    Examples
    --------
    >>> row = LabelledRow(t=7.0, x=np.zeros(1), y=np.array([np.nan, np.nan]))
    >>> row.labelled(8.0, 5.0).y, row.can_be_completed_after(8.0)
    (array([nan,  5.]), False)
    """

    t: float
    x: Vector
    y: Vector

    @property
    def is_complete(self) -> bool:
        """Return whether every label is known."""
        return not np.isnan(self.y).any()

    def labelled(self, t: float, value: float) -> LabelledRow:
        """Return the row with the value at time t filled in, if it is one of its labels."""
        ahead = t - self.t
        if not ahead.is_integer() or ahead >= len(self.y):
            return self
        y = self.y.copy()
        y[int(ahead)] = value
        return LabelledRow(self.t, self.x, y)

    def can_be_completed_after(self, t: float) -> bool:
        """Return whether labels are missing and some can still arrive after time t."""
        return not self.is_complete and t - self.t < len(self.y) - 1


Rows = tuple[LabelledRow, ...]


@dataclass(frozen=True)
class KeptRows:
    """A row source that stores every row it may need; methods return the source after them."""

    settled: Samples  # rows known at the last refit, in order of time
    window: Rows = ()  # rows since then with all labels known
    waiting: Rows = ()  # rows with labels still to come; at first the end of the history

    @classmethod
    def of(cls, history: Samples) -> KeptRows:
        """Return the rows of a history; labels after its last time are not known yet."""
        horizon, newest = history.y.shape[1], float(history.t[-1])
        known = history.t[:, None] + np.arange(horizon) <= newest
        count = int(known.all(axis=1).sum())
        rest = history[count:]
        rows = _rows_of(Samples(rest.inputs, np.where(known[count:], rest.y, np.nan)))
        return cls(history[:count], waiting=_waiting(rows, newest))

    def with_value(self, row: LabelledRow | None, t: float, value: float) -> KeptRows:
        """Return the source after the value at time t, which labels each row that waits for it.

        A row that can no longer get all its labels is dropped.
        """
        new = () if row is None else (row,)
        rows = [each.labelled(t, value) for each in self.waiting + new]
        complete = tuple(each for each in rows if each.is_complete)
        return replace(self, window=self.window + complete, waiting=_waiting(rows, t))

    def after_refit(self, oldest: float) -> KeptRows:
        """Return the source after a refit; rows before the time `oldest` are dropped."""
        known = self._known()
        return KeptRows(known[int(np.searchsorted(known.t, oldest)) :], waiting=self.waiting)

    def latest(self, count: int, lam: Vector) -> Samples:
        return self._known()[-count:]

    def between(self, after: float, until: float, lam: Vector) -> Samples:
        return self._stacked(tuple(row for row in self.window if after < row.t <= until))

    def at(self, times: Vector, lam: Vector) -> Samples:
        settled = self.settled
        rows = np.searchsorted(settled.t, times)
        if (rows == len(settled)).any() or not np.array_equal(settled.t[rows], times):
            raise StateError(f"state must hold all rows that were trained on, got {len(settled)}.")
        return Samples(
            Inputs(settled.t[rows], settled.x[rows], settled.inputs.layout), settled.y[rows]
        )

    def tangents(self, times: Vector, predicted: Vector, lam: Vector) -> None:
        """Return None: kept rows do not depend on hyperparameters."""

    def state(self) -> dict[str, Matrix]:
        """Return every row, as arrays."""
        parts = {"settled": self.settled}
        parts |= {name: self._stacked(getattr(self, name)) for name in UNSETTLED}
        return {
            f"{name}.{letter}": getattr(samples, letter)
            for name, samples in parts.items()
            for letter in "txy"
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> KeptRows:
        """Return the source with the rows of a state; they must have the same form."""
        settled = self._samples("settled", state)
        require_finite("settled.y", settled.y)
        rows: dict[str, Any] = {name: _rows_of(self._samples(name, state)) for name in UNSETTLED}
        return KeptRows(settled, **rows)

    def _known(self) -> Samples:
        return concatenate([self.settled, self._stacked(self.window)])

    def _stacked(self, rows: Rows) -> Samples:
        layout, horizon = self.settled.inputs.layout, self.settled.y.shape[1]
        t = np.array([row.t for row in rows], dtype=np.float64)
        x = np.array([row.x for row in rows], dtype=np.float64).reshape(len(rows), layout.width)
        y = np.array([row.y for row in rows], dtype=np.float64).reshape(len(rows), horizon)
        return Samples(Inputs(t, x, layout), y)

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


def _waiting(rows: Sequence[LabelledRow], t: float) -> Rows:
    return tuple(row for row in rows if row.can_be_completed_after(t))


def _rows_of(samples: Samples) -> Rows:
    columns = samples.t.tolist(), samples.x, samples.y
    return tuple(LabelledRow(t, x, y) for t, x, y in zip(*columns, strict=True))


def require_history(history: Samples, update_every: int) -> None:
    """Raise unless a learner can start from this history: in order, and enough for H labels."""
    if not len(history):
        raise InvalidInputError("history must hold at least one sample, got none.")
    apart = np.diff(history.t)
    if not (apart > 0).all():
        worst = int(np.argmin(apart))
        pair = history.t[worst : worst + 2].tolist()
        raise InvalidInputError(f"history must have increasing times, got {pair}.")
    horizon = history.y.shape[1]
    whole = np.array_equal(history.t, np.rint(history.t))
    if horizon > 1 and not (whole and (apart.size == 0 or apart.min() == 1)):
        raise InvalidInputError(
            f"history must have times in whole steps, one apart, for a horizon of {horizon}, "
            f"got {history.t[:3].tolist()}."
        )
    if len(history) < horizon:
        raise InvalidInputError(
            f"history must hold at least {horizon} samples, one per horizon, got {len(history)}."
        )
    if horizon > update_every:
        raise InvalidInputError(
            f"update_every must be at least the horizon {horizon}, got {update_every}."
        )
