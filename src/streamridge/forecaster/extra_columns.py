"""Extra columns, known in advance: checked, read from frames, and filled where unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, counted, shown
from streamridge.features.base import FeatureSet, steps_ahead
from streamridge.files.reading import read_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.settings import Settings, require_reading
from streamridge.series.time_format import TimeFormat
from streamridge.series.times import Times, time_text

# Values by the name of a column: one number, or one for each step ahead.
ExtraValues: TypeAlias = Mapping[str, float | Sequence[float] | Vector]
# The argument of `predict`: values, "last" for the last known ones, or a frame of the steps ahead.
GivenExtras: TypeAlias = ExtraValues | Literal["last"] | Any
LAST_KNOWN = "last"


def column_names(features: FeatureSet) -> list[str]:
    """Return a name for each extra column of a row, such as "rain" or "rain at step 2"."""
    ahead = steps_ahead(features)
    if ahead == 1:
        return list(features.extras)
    return [f"{name} at step {step}" for step in range(1, ahead + 1) for name in features.extras]


def require_upcoming(
    settings: Settings, extras: GivenExtras, times: Times | None, time_format: TimeFormat
) -> Matrix:
    """Return the extra columns of the steps ahead, (A, E); raise unless all values are known.

    `times` are the times of the steps ahead, if they are known, and `time_format` is the format of
    the readings. "last" stands for unknown values.
    """
    features = settings.preset.features
    names, ahead = features.extras, steps_ahead(features)
    if isinstance(extras, str) and extras == LAST_KNOWN:
        return np.full((ahead, len(names)), np.nan)
    if names and times is not None and _is_frame(extras):
        extras = _columns_of_frame(settings, extras, times[:ahead], time_format)
    columns = require_extras(names, extras)
    for name, values in zip(names, columns, strict=True):
        if len(values) != ahead:
            raise InvalidInputError(
                f"{name} must have {counted(ahead, 'value')}, one for each step ahead, "
                f"got {len(values)}."
            )
        if np.isnan(values).any():
            at = int(np.argmax(np.isnan(values)))
            step = f"step {at + 1}" if times is None else time_text(times[at])
            raise InvalidInputError(
                f"{name} must be known at every step ahead, got no value for {step}. "
                'Pass extras="last" to repeat the last known values.'
            )
    return np.column_stack(columns) if names else np.zeros((ahead, 0))


def require_observed(settings: Settings, extras: ExtraValues) -> Matrix:
    """Return the extra columns of a reading's step, and of as many later steps as are given.

    The shape is (k, E) with k up to A; NaN stands for an unknown value.
    """
    features = settings.preset.features
    columns = require_extras(features.extras, extras)
    lengths, ahead = {len(values) for values in columns}, steps_ahead(features)
    if columns and not (len(lengths) == 1 and 1 <= max(lengths) <= ahead):
        raise InvalidInputError(
            f"extras must have one value each, or {ahead} for the steps from this one on, "
            f"got {' and '.join(map(str, sorted(lengths)))}."
        )
    return np.column_stack(columns) if columns else np.zeros((1, 0))


def require_extras(names: tuple[str, ...], extras: GivenExtras | None) -> list[Vector]:
    """Return the values of extra columns in the order of their names; NaN for unknown ones."""
    if extras is not None and not isinstance(extras, Mapping):
        raise InvalidInputError(f"extras must map names to numbers, got {shown(extras)}.")
    given = {} if extras is None else dict(extras)
    if set(given) != set(names):
        wanted = ", ".join(names) or "nothing"
        raise InvalidInputError(f"extras must give {wanted}, got {', '.join(given) or 'none'}.")
    return [_numbers(name, given[name]) for name in names]


def filled_forward(columns: Matrix, before: Vector) -> Matrix:
    """Return columns, (n, E), in which the last known value replaces unknown ones.

    `before` holds the values before the first row, (E,).

    Examples
    --------
    >>> filled_forward(np.array([[np.nan], [2.0], [np.nan]]), np.array([1.0])).ravel()
    array([1., 2., 2.])
    """
    rows = np.vstack([before, columns])
    at = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    return rows[np.maximum.accumulate(at, axis=0), np.arange(rows.shape[1])][1:]


def _numbers(name: str, given: Any) -> Vector:
    """Return one value or several as an array, NaN for a missing one."""
    if np.ndim(given) == 0:
        return np.array([require_reading(name, given)])
    return np.array([require_reading(name, each) for each in given])


def _is_frame(extras: object) -> bool:
    return hasattr(extras, "columns") and not isinstance(extras, Mapping)


def _columns_of_frame(
    settings: Settings, frame: Any, times: Times, time_format: TimeFormat
) -> ExtraValues:
    """Return the values of extra columns at some times, from a frame with a column of times."""
    names = settings.preset.features.extras
    options = ReadingOptions(sensors=names, step=settings.step, tz=settings.tz, layout="wide")
    found = {name: np.full(len(times), np.nan) for name in names}
    for name, series in read_series(frame, options).series.items():
        if settings.tz is None and series.time_format.zoned != time_format.zoned:
            raise InvalidInputError(
                f"times of {name} must have {'an' if time_format.zoned else 'no'} offset, as the "
                f"readings, got {series.time_format.texts(series.times[:1])[0]}."
            )
        at = dict(zip(series.times.tolist(), series.values.tolist(), strict=True))
        found[name] = np.array([at.get(time, np.nan) for time in times.tolist()])
    return found
