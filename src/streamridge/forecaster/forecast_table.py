"""Forecasts of several sensors as one table, and forecasts with other numbers or levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, option
from streamridge.forecaster.forecast import Forecast, Levels, band_columns, in_percent
from streamridge.series.time_format import UTC_FORMAT, TimeFormat, time_columns


def forecast_columns(forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Return forecasts of several sensors as columns of one table.

    Times have the format of the readings; in UTC if offsets differ between sensors. Times of
    different kinds, and different levels, are an error.
    """
    first = forecasts[0]
    for each in forecasts:
        _require_one_table(first, each)
    ends = [band_columns(each.levels, each.lower, each.upper) for each in forecasts]
    names = np.repeat([each.sensor or "" for each in forecasts], list(map(len, forecasts)))
    times = np.concatenate([each.time for each in forecasts])
    return {
        "sensor": names,
        **time_columns(times, _shared_format(forecasts, first.time_format)),
        "value": np.concatenate([each.value for each in forecasts]),
        **{name: np.concatenate([each[name] for each in ends]) for name in ends[0]},
    }


def _require_one_table(first: Forecast, other: Forecast) -> None:
    """Raise unless two forecasts fit into one table."""
    kinds = [kind_of_times(first), kind_of_times(other)]
    if kinds[0] != kinds[1]:
        raise InvalidInputError(
            f"times must be of one kind for one table, got {kinds[0]} for {first.sensor!r} and "
            f"{kinds[1]} for {other.sensor!r}. Forecast them separately."
        )
    if first.levels != other.levels:
        raise InvalidInputError(
            f"levels must be the same for one table, got {in_percent(first.levels)} for "
            f"{first.sensor!r} and {in_percent(other.levels)} for {other.sensor!r}. "
            f"Pass {option('level', '0.9')}."
        )


def kind_of_times(forecast: Forecast) -> str:
    """Return the kind of a forecast's times in words: forecasts of one kind fit into one table."""
    if forecast.time.dtype.kind != "M":
        return "whole numbers"
    written = forecast.time_format
    if written.zone is not None and not written.zoned:
        return f"dates in {written.zone}"
    return f"dates {'with' if written.zoned else 'without'} an offset"


def _shared_format(forecasts: Iterable[Forecast], first: TimeFormat) -> TimeFormat:
    """Return the format of all times, or UTC if sensors have different offsets."""
    formats = [replace(each.time_format, unit=first.unit) for each in forecasts]
    if all(each == first for each in formats) or not first.zoned:
        return first
    if first.zone is not None and all(each.time_format.zone == first.zone for each in forecasts):
        return first
    offsets = np.concatenate([each.time_format.offsets_at(each.time) for each in forecasts])
    if (offsets != offsets[0]).any():
        return UTC_FORMAT
    return TimeFormat(zoned=True, offsets=((0, int(offsets[0])),), unit=first.unit)


def with_near(
    forecast: Forecast, values: Vector, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> Forecast:
    """Return a forecast with other values and intervals of its near steps."""
    near = len(values)

    def joined_ends(new: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([new.reshape(near, *own.shape[1:]), own[near:]])

    return replace(
        forecast,
        value=np.append(values, forecast.value[near:]),
        lower=joined_ends(lower, forecast.lower),
        upper=joined_ends(upper, forecast.upper),
    )


def of_levels(forecast: Forecast, levels: Levels) -> Forecast:
    """Return a forecast with the intervals of some of its levels."""
    columns = [forecast.levels.index(level) for level in levels]
    chosen = columns[0] if len(columns) == 1 else columns
    lower, upper = (each.reshape(len(forecast), -1) for each in (forecast.lower, forecast.upper))
    return replace(forecast, lower=lower[:, chosen], upper=upper[:, chosen], levels=levels)
