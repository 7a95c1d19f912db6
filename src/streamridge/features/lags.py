"""Features of a regular series: lags, seasonal lags and calendar coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Mask,
    Matrix,
    require_count,
    require_finite,
    require_positive,
    require_shape,
)
from streamridge.errors import InvalidInputError
from streamridge.features.base import Past, enough_read
from streamridge.features.seasons import calendar_at
from streamridge.samples import Layout, Samples
from streamridge.series.times import Steps


@dataclass(frozen=True)
class Features:
    """The blocks of a row of x: lags, seasonal lags, calendar and extra columns.

    Parameters
    ----------
    lags
        p, the number of latest values.
    seasonal
        Additional lags in steps, one season long, such as a day and a week.
    calendar
        Periods in steps; each gives a sine and a cosine of the time.
    extras
        Names of extra columns, which are known in advance.
    extras_ahead
        Number of steps whose extra columns a row holds: its own step, and the steps after it.

    Examples
    --------
    >>> samples = Features(lags=2).samples([1.0, 2.0, 3.0, 4.0])
    >>> samples.t, samples.x, samples.y
    (array([2., 3.]), array([[2., 1.],
           [3., 2.]]), array([[3.],
           [4.]]))
    """

    lags: int = 20
    seasonal: tuple[int, ...] = ()
    calendar: tuple[float, ...] = ()
    extras: tuple[str, ...] = ()
    extras_ahead: int = 1

    def __post_init__(self) -> None:
        for name in ("lags", "extras_ahead"):
            require_count(name, getattr(self, name))
        for lag in self.seasonal:
            require_count("seasonal", lag)
        require_positive("calendar", self.calendar)

    @cached_property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""
        widths = (
            ("lags", self.lags),
            ("seasonal", len(self.seasonal)),
            ("calendar", 2 * len(self.calendar)),
            ("extras", self.extras_ahead * len(self.extras)),
        )
        blocks = tuple(block for block in widths if block[1])
        return Layout(blocks, own_unit=("extras",), unitless=("calendar",))

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of all columns."""
        return self.layout.names

    @property
    def reach(self) -> int:
        """Return how many steps a row looks back."""
        return max(self.lags, *self.seasonal, 0)

    def samples(self, series: ArrayLike, *, horizon: int = 1, start: int = 0) -> Samples:
        """Return the rows of a series without gaps.

        Parameters
        ----------
        series
            (T,), one value per step.
        horizon
            H: the targets of the row at t are the values at t, ..., t + H - 1.
        start
            The time of the first value, in steps.
        """
        values = require_finite("series", series)
        require_shape("series", values, (None,))
        require_count("horizon", horizon)
        first, end = self.reach, len(values) - horizon + 1
        if end <= first:
            raise InvalidInputError(
                f"series must have at least {first + horizon} values, got {len(values)}."
            )
        at = np.arange(first, end)
        y = sliding_window_view(values, horizon)[at]
        behind = np.concatenate([np.arange(1, self.lags + 1), np.array(self.seasonal, dtype=int)])
        x = np.hstack([values[at[:, None] - behind], calendar_at(at + start, self.calendar)])
        return Samples.of(at + start, x, y, self.layout)

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and a mask of the rows that can be learned from.

        A shorter lag replaces a seasonal lag that reaches back before the first reading.
        """
        lags = steps[:, None] - np.arange(1, self.lags + 1)
        columns, fallback = [lags], lags[:, :1]
        for season in sorted(self.seasonal):
            ago = past.ago(steps, season)[:, None]
            fallback = np.where(ago >= past.timeline.start, ago, fallback)
            columns.append(fallback)
        at = np.hstack(columns)
        extras, given = past.extras_ahead(steps, self.extras_ahead)
        calendar = calendar_at(steps + past.clock.shifts(steps), self.calendar)
        x = np.hstack([past.values(at), calendar, extras])
        return x, enough_read(past.timeline.trusted(at), past.timeline.sound(at)) & given
