"""What the paper reports of its traffic study, to be set beside what is measured."""

from __future__ import annotations

from math import nan

# Table 1: improvement of RMSE over FIXED in percent, (at 4000 steps, at the end), by detector.
IMPROVEMENTS = {
    "OHL": (
        (12, 15, 2, 8, 8, 11, 9, 8, 8, 7, 8, 7, 14),
        (13, 15, 3, 9, 9, 11, 11, 8, 9, 8, 8, 7, 15),
    ),
    "HOAG": (
        (11, 15, 2, 7, 6, 11, 10, 9, 9, 9, 8, 7, 15),
        (12, 14, 3, 9, 8, 11, 12, 9, 10, 10, 9, 8, 16),
    ),
    "RDS": (
        (12, 15, -11, 4, 3, 5, 9, 7, 2, 9, 4, 6, 14),
        (13, 11, -8, 4, 1, 4, 11, 6, 3, 9, 5, 5, 14),
    ),
}

# Section 6.2: minutes of a run, averaged over the detectors, in total and of tuning alone.
TOTAL_MINUTES = {"OHL": 20.0, "HOAG": 138.0}
TUNING_MINUTES = {"OHL": 3.2, "HOAG": 120.0}


def mean_improvements(method: str) -> tuple[float, float]:
    """Return a method's mean improvement in percent, at 4000 steps and at the end.

    NaN stands for a method that the paper does not have.

    Examples
    --------
    >>> [round(figure, 1) for figure in mean_improvements("OHL")]
    [9.0, 9.7]
    """
    if method not in IMPROVEMENTS:
        return nan, nan
    early, final = IMPROVEMENTS[method]
    return sum(early) / len(early), sum(final) / len(final)
