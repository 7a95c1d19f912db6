"""New readings for a forecaster that has lived before, and what they say of its next step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge.errors import about
from streamridge.forecaster.forecaster import Forecaster
from streamridge.runs.selection import Selection
from streamridge.runs.stepping import known_ahead, stamps_of
from streamridge.series.readings import Readings
from streamridge.series.series import Series


@dataclass(frozen=True)
class Fed:
    """What became of new readings.

    Parameters
    ----------
    taken
        How many steps the forecaster lived through.
    known
        How many steps it had lived through before, and left out.
    late
        How many of those had been gaps until now.
    """

    taken: int
    known: int
    late: int = 0


def feed(forecaster: Forecaster, series: Series) -> Fed:
    """Let a forecaster learn from the steps of a series that it does not know yet."""
    first, late = _first_new(forecaster, series), forecaster.counts.get("late", 0)
    readings = zip(
        stamps_of(series, series.times), series.values.tolist(), known_ahead(series), strict=False
    )
    with threadpool_limits(1), about(series.sensor):
        for at, (time, value, known) in enumerate(readings):
            if at >= first or not np.isnan(value):  # an earlier one may fill a gap
                forecaster.observe(time, value, known)
    late = forecaster.counts.get("late", 0) - late
    return Fed(len(series) - first, first - late, late)


def extras_next(
    forecaster: Forecaster, readings: Readings, selection: Selection
) -> dict[str, float]:
    """Return the extras of the forecaster's next step, as far as a source knows them.

    A row of that step need not have a value.
    """
    names = forecaster.settings.preset.features.extras
    known = ~np.isnan([readings.extras[name] for name in names]).all(axis=0)
    # A series runs from its first value to its last: here a row that knows an extra has a value.
    rows = selection.of_readings(replace(readings, values=np.where(known, 0.0, np.nan)))
    at = _first_new(forecaster, rows)
    if at == len(rows) or rows.times[at] > forecaster.next_time + _half(forecaster):
        return {}
    return {
        name: float(column[at]) for name, column in rows.extras.items() if not np.isnan(column[at])
    }


def _first_new(forecaster: Forecaster, series: Series) -> int:
    """Return how many steps of a series come before the next one of the forecaster."""
    if not forecaster.has_readings:
        return 0
    return int(np.searchsorted(series.times, forecaster.next_time - _half(forecaster)))


def _half(forecaster: Forecaster) -> Any:
    """Return half a step: a time belongs to the nearest."""
    step = forecaster.settings.step
    return step // 2 if isinstance(step, int) else np.timedelta64(step) // 2
