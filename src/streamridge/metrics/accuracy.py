"""Errors of a run: RMSE, the paper's RMSE(t), MAE, and the coverage of bands."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Vector


def rmse(errors: ArrayLike) -> float:
    """Return the root of the mean squared error, NaN of no errors.

    Examples
    --------
    >>> rmse([3.0, -4.0])
    3.5355339
    """
    squares = np.square(np.asarray(errors, dtype=np.float64))
    return float(np.sqrt(squares.mean())) if squares.size else np.nan


def mae(errors: ArrayLike) -> float:
    """Return the mean absolute error, NaN of no errors.

    Examples
    --------
    >>> mae([3.0, -4.0])
    3.5
    """
    sizes = np.abs(np.asarray(errors, dtype=np.float64))
    return float(sizes.mean()) if sizes.size else np.nan


def coverage(actual: Vector, lower: Vector, upper: Vector) -> float:
    """Return the share of the actual values within their bands; NaN values and bands do not count.

    Examples
    --------
    >>> coverage(np.array([1.0, 5.0, np.nan]), np.zeros(3), np.full(3, 2.0))
    0.5
    """
    known = ~np.isnan(actual) & ~np.isnan(lower)
    inside = (actual >= lower) & (actual <= upper)
    return float(inside[known].mean()) if known.any() else np.nan


def running_rmse(errors: ArrayLike) -> Vector:
    """Return RMSE(t), the root mean squared error of all steps up to each one, shape (T,).

    Notes
    -----
    Paper: section 6.2.3, where t + 1 terms are divided by t; here by their number.

    Examples
    --------
    >>> running_rmse([3.0, -4.0])
    array([3.        , 3.53553391])
    """
    squares = np.square(np.asarray(errors, dtype=np.float64))
    return np.sqrt(np.cumsum(squares) / np.arange(1, len(squares) + 1))
