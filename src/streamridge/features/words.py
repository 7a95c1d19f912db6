"""Names of features in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

PROFILE = re.compile(r"(.+) profile \d+")


def feature_words(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of a row in words.

    Examples
    --------
    >>> feature_words(["day lags 1", "day profile 1", "day profile 2", "calendar 1", "calendar 2"])
    ('day, 1 step ago', 'day, usual value', 'day, last change', 'time of day, sine', \
'time of day, cosine')
    """
    seasons = list(dict.fromkeys(found[1] for each in names if (found := PROFILE.match(each))))
    calendar = [f"time of {each}, {part}" for part in ("sine", "cosine") for each in seasons]
    words = {f"calendar {i}": text for i, text in enumerate(calendar, start=1)}
    return tuple(words.get(name) or _feature_words(name) for name in names)


def _feature_words(name: str) -> str:
    block, _, number = name.rpartition(" ")
    if not number.isdecimal():
        return name
    steps = "1 step" if number == "1" else f"{number} steps"
    if block in ("lags", "changes"):
        return f"{steps} ago" if block == "lags" else f"change {steps} ago"
    season, _, kind = block.rpartition(" ")
    if kind == "lags":
        return f"{season}, {steps} ago"
    if kind == "profile":
        parts = {"1": "usual value", "2": "last change", "3": "next change"}
        return f"{season}, {parts.get(number, f'change {int(number) - 2} later')}"
    return name
