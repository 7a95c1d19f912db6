"""The paper's results of its traffic study, for comparison."""

from __future__ import annotations

from math import nan

# Table 1: improvement of RMSE over FIXED in percent per detector, (at 4000 steps, at the end).
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

# Section 6.2: mean minutes of a run over the detectors, in total and for tuning.
TOTAL_MINUTES = {"OHL": 20.0, "HOAG": 138.0}
TUNING_MINUTES = {"OHL": 3.2, "HOAG": 120.0}


def mean_improvements(method: str) -> tuple[float, float]:
    """Return the paper's mean improvement by a method in percent, at 4000 steps and at the end.

    They are NaN if the paper does not report the method.

    Examples
    --------
    >>> [round(figure, 1) for figure in mean_improvements("OHL")]
    [9.0, 9.7]
    """
    if method not in IMPROVEMENTS:
        return nan, nan
    early, final = IMPROVEMENTS[method]
    return sum(early) / len(early), sum(final) / len(final)
