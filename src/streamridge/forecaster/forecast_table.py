"""Forecasts of several sensors as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, option
from streamridge.forecaster.forecast import Forecast, band_columns, in_percent
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
