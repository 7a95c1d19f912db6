"""Errors of a run: RMSE and the paper's RMSE(t)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Vector


def rmse(errors: ArrayLike) -> float:
    """Return the root of the mean squared error.

    Examples
    --------
    >>> rmse([3.0, -4.0])
    3.5355339
    """
    return float(np.sqrt(np.mean(np.square(errors))))


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
