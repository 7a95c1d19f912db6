"""Rows that have been predicted and wait for their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.samples import Inputs, Layout, Samples


@dataclass(frozen=True)
class Row:
    """One step of a stream: its input and its H labels, which are NaN until they are known.

    Examples
    --------
    >>> row = Row(t=7.0, x=np.zeros(1), y=np.array([np.nan, np.nan]))
    >>> row.labelled(8.0, 5.0).y, row.waits(8.0)
    (array([nan,  5.]), False)
    """

    t: float
    x: Vector
    y: Vector

    @property
    def is_complete(self) -> bool:
        """Return whether every label is known."""
        return not np.isnan(self.y).any()

    def labelled(self, t: float, value: float) -> Row:
        """Return the row with the value at time t filled in, if it is one of its labels."""
        ahead = t - self.t
        if not ahead.is_integer() or ahead >= len(self.y):
            return self
        y = self.y.copy()
        y[int(ahead)] = value
        return Row(self.t, self.x, y)

    def waits(self, t: float) -> bool:
        """Return whether labels are missing and some can still come after time t."""
        return not self.is_complete and t - self.t < len(self.y) - 1


Rows = tuple[Row, ...]


def complete(rows: Sequence[Row]) -> Rows:
    """Return the rows whose labels are all known."""
    return tuple(row for row in rows if row.is_complete)


def waiting(rows: Sequence[Row], t: float) -> Rows:
    """Return the rows that lack labels and can still get some after time t."""
    return tuple(row for row in rows if row.waits(t))


def stack(rows: Rows, layout: Layout, horizon: int) -> Samples:
    """Return the rows as samples; there may be none."""
    t = np.array([row.t for row in rows], dtype=np.float64)
    x = np.array([row.x for row in rows], dtype=np.float64).reshape(len(rows), layout.width)
    y = np.array([row.y for row in rows], dtype=np.float64).reshape(len(rows), horizon)
    return Samples(Inputs(t, x, layout), y)


def unstack(samples: Samples) -> Rows:
    """Return the samples as rows."""
    columns = samples.t.tolist(), samples.x, samples.y
    return tuple(Row(t, x, y) for t, x, y in zip(*columns, strict=True))


def known_at_the_end(samples: Samples) -> tuple[Samples, Rows]:
    """Return the samples whose labels were all known at the time of the last, and the rest as rows.

    A sample with H horizons holds values up to H - 1 steps after its own time. Values after the
    last sample's time are set to NaN, because they were not known then.
    """
    horizon = samples.y.shape[1]
    known = samples.t[:, None] + np.arange(horizon) <= samples.t[-1]
    settled = int(known.all(axis=1).sum())
    rest = unstack(samples[settled:])
    masks = known[settled:]
    blanked = tuple(
        Row(row.t, row.x, np.where(mask, row.y, np.nan))
        for row, mask in zip(rest, masks, strict=True)
    )
    return samples[:settled], blanked


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
