"""Long frames of pandas and polars, with the methods and columns that statsforecast's users know.

It needs no other library. The columns are unique_id, ds and y; forecasts have the columns
StreamRidge, StreamRidge-lo-80 and StreamRidge-hi-80.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import narwhals as nw
import numpy as np

from streamridge.adapters.sensors import Sensors
from streamridge.arrays import Vector, require_count, require_finite
from streamridge.errors import InvalidInputError, counted, listed, shown, warn
from streamridge.files.frames import make_frame
from streamridge.files.reading import read_series
from streamridge.files.reading_options import OPTION_NAMES, ReadingOptions, require_options
from streamridge.forecaster.forecast import Forecast, Levels, named, require_levels
from streamridge.forecaster.forecast_table import forecast_columns
from streamridge.runs.next_steps import stopped_notes
from streamridge.runs.tasks import SHARED_SETTINGS, ModelName
from streamridge.series.lengths import Length
from streamridge.series.series import Series
from streamridge.series.time_format import time_columns
from streamridge.series.times import Times

# The level of the bands, in percent, if none is asked for: they are learned, but not returned.
USUAL_LEVEL = (90,)
# Options of `streamridge.forecast` that have another name here, and where to give them.
TAKEN = {
    "id": "Pass id_col",
    "time": "Pass time_col",
    "value": "Pass target_col",
    "horizon": "Pass h to predict",
    "level": "Pass it to predict, in percent",
    "extras": "Covariates are not used",
}


class StreamRidge:
    """Forecasts of many series in one long frame, which is of pandas or polars.

    Each series has a forecaster of its own and a regular grid of times. Steps without a row are
    gaps: forecasts fill them, and nothing shifts. Series may end at different times. Each forecast
    begins after the last reading of its own series, and a warning names series that ended early.

    Parameters
    ----------
    id_col, time_col, target_col
        The columns with the name of the series, the time (a date, or a whole number) and the value.
    alias
        The name of the column of forecasts.
    model, settings
        The model and the other options of `streamridge.forecast`: settings of `Forecaster` such as
        `bounds` and `holidays`, and reading options such as `step` and `tz`.

    Examples
    --------
    >>> import pandas as pd
    >>> hours = pd.date_range("2021-06-14", periods=240, freq="h")
    >>> flow = 100 + 50 * np.sin(2 * np.pi * np.arange(240) / 24)
    >>> df = pd.DataFrame({"unique_id": "ramp", "ds": hours, "y": flow})
    >>> model = StreamRidge().fit(df[:-1])
    >>> made = model.update(df[-1:]).predict(h=2, level=[80])
    >>> list(made.columns)
    ['unique_id', 'ds', 'StreamRidge', 'StreamRidge-lo-80', 'StreamRidge-hi-80']
    >>> made["StreamRidge"].round().tolist()
    [100.0, 113.0]
    """

    def __init__(
        self,
        *,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        alias: str = "StreamRidge",
        model: ModelName = "default",
        **settings: Any,
    ) -> None:
        if alias in (id_col, time_col, target_col, "cutoff"):
            raise InvalidInputError(f"alias must differ from all other columns, got {alias!r}.")
        require_options("StreamRidge", settings, (*OPTION_NAMES, *SHARED_SETTINGS))
        if taken := [name for name in TAKEN if name in settings]:
            raise InvalidInputError(
                f"{taken[0]} must be left out, got {shown(settings[taken[0]])}. {TAKEN[taken[0]]}."
            )
        self._columns = {"id": id_col, "time": time_col, "value": target_col}
        self._alias = alias
        self._reading = {name: settings.pop(name) for name in OPTION_NAMES if name in settings}
        shared = {"tz": self._reading["tz"]} if "tz" in self._reading else {}
        self._settings = {"model": model, **settings, **shared}
        self._parts: list[nw.DataFrame[Any]] = []  # the rows of fit, and of each update
        self._sensors: Sensors | None = None

    def fit(self, df: Any) -> Self:
        """Read a frame, and forget all earlier readings.

        The models are fitted by the first `predict`, since they depend on its horizon.
        """
        rows = self._checked(df)
        self._read(rows)
        self._parts, self._sensors = [rows], None
        self._heads = self._heads_of(rows)
        return self

    def update(self, df: Any) -> Self:
        """Learn from new rows, without a fit from scratch; new series are added.

        A late row fills its gap. A second reading of a step is ignored, and so are rows without a
        value. Columns must have the types that they have in `fit`.
        """
        if not self._parts:
            return self.fit(df)
        rows, heads = self._checked(df).drop_nulls(self._columns["value"]), self._heads
        if not len(rows):
            return self
        if rows.implementation != heads.implementation:
            raise InvalidInputError(
                f"df must be a DataFrame of {heads.implementation.value}, as in fit, "
                f"got one of {rows.implementation.value}."
            )
        rows = _like(rows, heads)
        if self._sensors is not None:
            self._sensors.observe(self._read(rows, self._steps(rows, self._sensors.steps)))
        self._parts.append(rows)
        self._heads = self._heads_of(nw.concat([heads, self._heads_of(rows)]))
        return self

    def predict(self, h: int, level: Sequence[float] | None = None) -> Any:
        """Return the forecast of the next steps of every series.

        The first call fits the models for `h` steps and for bands of these levels. Later calls with
        the same or a smaller `h` are cheap. A larger `h` fits the models again, to all readings.

        Parameters
        ----------
        h
            The number of steps to forecast.
        level
            The levels of the bands in percent, such as [80, 95]; None for no bands.
        """
        if not self._parts:
            raise InvalidInputError("fit must be called before predict, got no readings.")
        if self._sensors is None or require_count("h", h) > self._sensors.horizon:
            self._parts = [nw.concat(self._parts)]
            self._sensors = self._started(self._parts[0], h, level)
        return self._forecasts(self._sensors, self._heads, h, level)

    def forecast(self, df: Any, h: int, level: Sequence[float] | None = None) -> Any:
        """Return the forecast of the next steps of every series of a frame; nothing is kept."""
        rows = self._checked(df)
        sensors = self._started(rows, h, level)
        return self._forecasts(sensors, self._heads_of(rows), h, level)

    def cross_validation(
        self,
        df: Any,
        h: int,
        n_windows: int = 1,
        step_size: int | None = None,
        refit: bool | int = False,
        level: Sequence[float] | None = None,
    ) -> Any:
        """Return the forecasts of the last windows of every series, next to the readings.

        Steps without a reading are left out.

        Parameters
        ----------
        df, h, level
            As for `forecast`.
        n_windows, step_size
            The number of windows, and the steps between their starts; `h` by default. The last
            window ends with the last reading of its series.
        refit
            False starts each model once, before the first window. It then learns from every
            reading, as it does live. True starts a new model before each window, and a whole
            number k before every k-th window.
        """
        rows, made = self._checked(df), list[Forecast]()
        cutoffs, values = list[Times](), list[Vector]()
        require_count("h", h)
        windows = range(require_count("n_windows", n_windows) - 1, -1, -1)
        step = require_count("step_size", h if step_size is None else step_size)
        every = require_count("refit", int(refit) if refit is True else refit or 0, least=0)
        every = every or n_windows
        for name, series in self._read(rows).items():
            for number, later in enumerate(windows):
                cut = len(series) - h - later * step
                if number % every == 0:
                    sensors = self._new_sensors(h, level)
                sensors.follow({name: _until(series, cut)})
                made.append(sensors.predict_one(name))
                cutoffs.append(np.repeat(series.times[cut - 1], h))
                values.append(series.values[cut : cut + h])
        table = {
            **forecast_columns(made),
            "cutoff": time_columns(np.concatenate(cutoffs), made[0].time_format)["time"],
            self._columns["value"]: np.concatenate(values),
        }
        heads = self._heads_of(rows)
        known = ~np.isnan(table[self._columns["value"]])
        return self._frame({name: column[known] for name, column in table.items()}, heads, level)

    def _checked(self, df: Any) -> nw.DataFrame[Any]:
        """Return a frame with the three columns alone; raise unless it has them, and no others."""
        wanted = list(self._columns.values())
        try:
            frame: nw.DataFrame[Any] = nw.from_native(df, eager_only=True)
        except TypeError:
            raise InvalidInputError(
                f"df must be a DataFrame of pandas or polars, got {shown(df)}."
            ) from None
        if missing := [name for name in wanted if name not in frame.columns]:
            raise InvalidInputError(
                f"df must have the columns {listed(wanted)}, got none named {missing[0]!r} among "
                f"{listed(frame.columns)}."
            )
        if others := [name for name in frame.columns if name not in wanted]:
            raise InvalidInputError(
                f"df must have the columns {listed(wanted)} only, got {listed(others)} as well. "
                "Drop other columns: they are not used."
            )
        return _with_floats(nw.maybe_reset_index(frame.select(wanted)), self._columns["value"])

    def _heads_of(self, rows: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """Return one row of each series, which shows the names, types and library of a frame."""
        return rows.unique(subset=[self._columns["id"]])

    def _steps(self, rows: nw.DataFrame[Any], known: Mapping[str, Length]) -> Mapping[str, Length]:
        """Return the steps of known series. New series with one row have the step of all others."""
        shared = set(known.values())
        if len(shared) != 1:
            return known
        counts = Counter(map(str, rows[self._columns["id"]].to_list()))
        alone = (name for name, count in counts.items() if count == 1)
        return {**dict.fromkeys(alone, *shared), **known}

    def _read(
        self, rows: nw.DataFrame[Any], steps: Mapping[str, Length] | None = None
    ) -> Mapping[str, Series]:
        """Return the series of a frame by name, on the grids of known sensors."""
        step = {"step": steps} if steps else {}
        options = ReadingOptions.of({**self._reading, **self._columns, **step})
        read = read_series(rows.to_native(), options)
        warn(map(str, read.left_out), RuntimeWarning)
        warn(read.notes)
        return read.series

    def _new_sensors(self, h: int, level: Sequence[float] | None) -> Sensors:
        return Sensors(h, _shares(level), **self._settings)

    def _started(self, rows: nw.DataFrame[Any], h: int, level: Sequence[float] | None) -> Sensors:
        sensors = self._new_sensors(require_count("h", h), level)
        sensors.start(self._read(rows))
        warn(sensors.notes)
        return sensors

    def _forecasts(
        self, sensors: Sensors, heads: nw.DataFrame[Any], h: int, level: Sequence[float] | None
    ) -> Any:
        forecasts = sensors.predict(_shares(level)).values()
        made = [each.first(h) for each in forecasts]
        warn(stopped_notes(made))
        return self._frame(forecast_columns(made), heads, level)

    def _frame(
        self, table: Mapping[str, Any], heads: nw.DataFrame[Any], level: Sequence[float] | None
    ) -> Any:
        """Return columns under their usual names, in the library and types of `heads`."""
        id_col, time_col, target_col = self._columns.values()
        names = {"sensor": id_col, "time": time_col, "cutoff": "cutoff", target_col: target_col}
        names |= {"value": self._alias, **self._band_names(level)}
        ids = {str(each): each for each in heads[id_col].to_list()}
        table = {**table, "sensor": [ids.get(each, each) for each in table["sensor"].tolist()]}
        native = make_frame(
            {new: table[old] for old, new in names.items() if old in table},
            heads.implementation.value,
        )
        frame: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
        kinds = {id_col: id_col, time_col: time_col, "cutoff": time_col}
        casts = [
            nw.col(name).cast(heads.schema[kind])
            for name, kind in kinds.items()
            if name in frame.columns and _can_cast(frame.schema[name], heads.schema[kind])
        ]
        return frame.with_columns(casts).to_native()

    def _band_names(self, level: Sequence[float] | None) -> dict[str, str]:
        """Return the names of the ends of bands, by their names in a forecast."""
        names: dict[str, str] = {}
        if level is None:
            return names
        shares = _shares(level)
        lower = named("lower", shares, [f"{self._alias}-lo-{each}" for each in level])
        upper = named("upper", shares, [f"{self._alias}-hi-{each}" for each in level])
        for low, high in zip(lower.items(), upper.items(), strict=True):
            names |= dict([low, high])
        return names


def _with_floats(rows: nw.DataFrame[Any], column: str) -> nw.DataFrame[Any]:
    """Return rows whose values are floats or null. Text stays, since it is read as in files."""
    kind = rows.schema[column]
    if not (kind.is_numeric() or isinstance(kind, nw.Object | nw.Unknown)):
        return rows
    try:
        values = rows[column].cast(nw.Float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{column!r} must hold numbers, got {kind}: {error}. Convert the column first."
        ) from None
    known = nw.when(~nw.col(column).is_nan()).then(nw.col(column))  # polars has both NaN and null
    return rows.with_columns(values).with_columns(known)


def _like(rows: nw.DataFrame[Any], heads: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Return rows with the types of `heads`; raise if a value would become another one."""
    for column, kind in heads.schema.items():
        given, wanted = _kind(rows.schema[column]), _kind(kind)
        if given != wanted:
            raise InvalidInputError(
                f"{column!r} must hold {wanted}, as in fit, got {given}. Convert the column first."
            )
    try:
        made = rows.cast(heads.schema)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"df must have the types of the columns in fit, got {dict(rows.schema)}: {error}. "
            "Convert the columns first."
        ) from None
    for column, kind in heads.schema.items():
        if kind.is_integer() and (made[column] != rows[column]).any():
            raise InvalidInputError(
                f"{column!r} must hold numbers of the type {kind}, as in fit, got larger ones."
            )
    return made


def _kind(dtype: nw.dtypes.DType) -> str:
    """Return what a column holds, in words; columns of the same kind can be joined."""
    if isinstance(dtype, nw.Datetime):
        return "times without a zone" if dtype.time_zone is None else "times with a zone"
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        return "text"
    return "whole numbers" if dtype.is_integer() else str(dtype)


def _can_cast(made: nw.dtypes.DType, given: nw.dtypes.DType) -> bool:
    """Return whether a column gets the type of the given frame: another zone would be an error."""
    if isinstance(given, nw.Datetime) and isinstance(made, nw.Datetime):
        return made.time_zone == given.time_zone
    return given.is_integer() or isinstance(given, nw.Date | nw.Categorical)


def _shares(level: Sequence[float] | None) -> Levels:
    """Return levels in percent as shares; raise unless they lie between 0 and 100."""
    given = USUAL_LEVEL if level is None else level
    if np.ndim(given) != 1 or not len(given):
        raise InvalidInputError(f"level must be a list such as [80, 95], got {shown(level)}.")
    percents = require_finite("level", given)
    if not ((percents > 0) & (percents < 100)).all():
        raise InvalidInputError(
            f"level must be percents between 0 and 100, such as [80, 95], got {shown(level)}."
        )
    return require_levels([round(each, 10) / 100 for each in percents.tolist()])


def _until(series: Series, cut: int) -> Series:
    """Return the first values of a series; raise if there is no reading among them."""
    if cut < 1 or np.isnan(series.values[: max(cut, 0)]).all():
        raise InvalidInputError(
            f"{series.sensor}: h, n_windows and step_size must leave readings before the first "
            f"window, got {counted(len(series), 'step')} in all."
        )
    return replace(series, values=series.values[:cut])
