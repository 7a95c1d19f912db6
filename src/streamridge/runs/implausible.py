"""Which readings of a series are implausible, judged by the readings before them alone.

Scores set these readings apart. The judge knows no forecast, so every method is scored on the same
steps, and none looks better by doubting what it missed.
"""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.forecaster.plausibility import CONVINCING, IMPLAUSIBLE
from streamridge.forecaster.sensor import TAIL


def implausible_readings(readings: Vector, warmup: int) -> Mask:
    """Return which readings are far outside the range of those before them, shape (T,).

    The rule is the forecaster's: farther outside than three times the width of the range. The
    first readings, `warmup` of them, are judged together, by the range that holds most of them. A
    sensor that stays out there has changed: then none of these readings is implausible.

    Parameters
    ----------
    readings
        (T,), NaN where there is none.
    warmup
        How many steps are judged together.

    Examples
    --------
    >>> readings = np.array([9.0, 11.0, 10.0, 12.0, 9e11, 10.0])
    >>> implausible_readings(readings, 4)
    array([False, False, False, False,  True, False])
    """
    marks = np.zeros(len(readings), dtype=bool)
    marks[:warmup] = _far_from_most(readings[:warmup])
    trusted = readings[:warmup][~marks[:warmup] & ~np.isnan(readings[:warmup])]
    low, high = (trusted.min(), trusted.max()) if trusted.size else (np.inf, -np.inf)
    strange: list[int] = []  # places of the latest readings in a row that are far outside
    later = warmup + np.flatnonzero(~np.isnan(readings[warmup:]))
    for at, value in zip(later.tolist(), readings[later].tolist(), strict=True):
        if _is_far(value, low, high) and len(strange) < CONVINCING:
            strange.append(at)
            marks[at] = True
            continue
        if _is_far(value, low, high):  # it was a change, and no mistake
            marks[strange] = False
        low, high, strange = min(low, value), max(high, value), []
    return marks


def _far_from_most(readings: Vector) -> Mask:
    """Return which readings are far outside the range of most of them."""
    known = readings[~np.isnan(readings)]
    if not known.size:
        return np.zeros(len(readings), dtype=bool)
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    reach = IMPLAUSIBLE * (high - low)
    far = (readings < low - reach) | (readings > high + reach)
    return far & bool(reach > 0)


def _is_far(value: float, low: float, high: float) -> bool:
    reach = IMPLAUSIBLE * (high - low)
    return bool(reach > 0 and not low - reach <= value <= high + reach)
