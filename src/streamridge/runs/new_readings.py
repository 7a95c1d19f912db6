"""The effect of new readings on a saved forecaster, in words."""

from __future__ import annotations

from collections.abc import Mapping

from streamridge.errors import counted

# Readings that were not simply learned from, by the name of their count.
WORDS = {
    "implausible": "implausible, replaced by forecasts",
    "outlier": "outliers, not learned from",
    "stuck": "of a stuck sensor, not learned from",
    "excluded": "in excluded spans, not learned from",
    "off_grid": "off the grid, moved to the nearest step",
    "conflicts": "different from a known reading, dropped",
    "too_late": "too late, dropped",
}
# The words for a single reading, where they differ.
SINGULAR = {
    "implausible": "implausible, replaced by a forecast",
    "outlier": "outlier, not learned from",
    "excluded": "in an excluded span, not learned from",
}


def learned_text(
    sensor: str, new: int, known: int, before: Mapping[str, int], after: Mapping[str, int]
) -> str:
    """Return how many steps were new, known and late, and which readings were doubted or dropped.

    `new` and `known` are numbers of steps. `before` and `after` are the counts of the forecaster.

    Examples
    --------
    >>> learned_text("ramp-3", 5, 2, {"late": 1}, {"late": 2, "implausible": 4})
    'ramp-3: 5 new steps, 1 late, 1 known and skipped; 4 implausible, replaced by forecasts'
    >>> learned_text("ramp-3", 1, 0, {}, {"outlier": 1})
    'ramp-3: 1 new step; 1 outlier, not learned from'
    """
    late = after.get("late", 0) - before.get("late", 0)
    steps = [counted(new, "new step")]
    steps += [f"{late} late"] if late else []
    steps += [f"{known - late} known and skipped"] if known > late else []
    counts = {name: after.get(name, 0) - before.get(name, 0) for name in WORDS}
    single = WORDS | SINGULAR
    doubted = [
        f"{count} {(single if count == 1 else WORDS)[name]}"
        for name, count in counts.items()
        if count
    ]
    return f"{sensor}: " + "; ".join([", ".join(steps), *doubted])
