"""Features of a regular series: lags, seasonal lags and calendar coordinates, as Samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Matrix,
    Vector,
    require_count,
    require_finite,
    require_positive,
    require_shape,
)
from streamridge.errors import InvalidInputError
from streamridge.samples import Layout, Samples


@dataclass(frozen=True)
class Features:
    """Says what a row of x holds, block by block.

    Parameters
    ----------
    lags
        p, how many of the latest values.
    seasonal
        Lags in steps at which a season has passed, such as a day and a week.
    calendar
        Periods in steps, each as its sine and cosine.

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

    def __post_init__(self) -> None:
        require_count("lags", self.lags)
        for lag in self.seasonal:
            require_count("seasonal", lag)
        require_positive("calendar", self.calendar)

    @property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks."""
        widths = (
            ("lags", self.lags),
            ("seasonal", len(self.seasonal)),
            ("calendar", 2 * len(self.calendar)),
        )
        return Layout(tuple(block for block in widths if block[1]))

    @property
    def reach(self) -> int:
        """Return how many values must precede the first row."""
        return max(self.lags, *self.seasonal, 0)

    def samples(self, series: ArrayLike, *, horizon: int = 1, start: int = 0) -> Samples:
        """Return the rows of a series without gaps.

        Parameters
        ----------
        series
            (T,), one value per step.
        horizon
            H: the row at t has the values at t, ..., t + H - 1 as targets.
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
        x = np.hstack([self._lagged(values, at), self._calendar(at + start)])
        return Samples.of(at + start, x, y, self.layout)

    def _lagged(self, values: Vector, at: np.ndarray) -> Matrix:
        behind = np.concatenate([np.arange(1, self.lags + 1), np.array(self.seasonal, dtype=int)])
        return values[at[:, None] - behind]

    def _calendar(self, at: np.ndarray) -> Matrix:
        angles = 2 * np.pi * at[:, None] / np.array(self.calendar)
        return np.hstack([np.sin(angles), np.cos(angles)])
