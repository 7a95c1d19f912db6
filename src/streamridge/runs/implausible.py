"""Which readings of a series are implausible, judged by the readings before them alone.

Scores set these readings apart. The judge knows no forecast, so every method is scored on the same
steps, and none looks better by doubting what it missed.
"""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.forecaster.plausibility import CONVINCING, Plausibility, far_from_most


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
    known = np.flatnonzero(~np.isnan(readings))
    early, later = known[known < warmup], known[known >= warmup]
    marks[early] = far_from_most(readings[early])
    trusted = readings[early][~marks[early]]
    low, high = (trusted.min(), trusted.max()) if trusted.size else (np.inf, -np.inf)
    strange: list[int] = []  # places of the latest readings in a row that are far outside
    for at, value in zip(later.tolist(), readings[later].tolist(), strict=True):
        is_far = Plausibility(low, high).is_implausible(value)
        if is_far and len(strange) < CONVINCING:
            strange.append(at)
            marks[at] = True
            continue
        if is_far:  # it was a change, and no mistake
            marks[strange] = False
        low, high, strange = min(low, value), max(high, value), []
    return marks
