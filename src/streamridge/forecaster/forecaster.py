"""The forecaster that users work with: readings go in, forecasts with bands come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from functools import wraps
from math import isnan
from pathlib import Path
from types import EllipsisType
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

import numpy as np

from streamridge.arrays import require_flag
from streamridge.errors import StateError, StreamRidgeError, about, html_table
from streamridge.files.atomic import replacing
from streamridge.files.checkpoint import UNREADABLE, read_content
from streamridge.files.reading_options import reading_arguments
from streamridge.forecaster import saving
from streamridge.forecaster.arguments import StartArguments
from streamridge.forecaster.extra_columns import (
    ExtraValues,
    GivenExtras,
    require_observed,
    require_upcoming,
)
from streamridge.forecaster.forecast import Forecast, Level, RecentReadings, require_levels
from streamridge.forecaster.methods import PRINTED, PROTOTYPE, method_of
from streamridge.forecaster.new_rows import new_rows
from streamridge.forecaster.plausibility import BoundPair, clipped
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.relevance import Relevance, relevance_of
from streamridge.forecaster.settings import (
    HISTORY_OPTIONS,
    Settings,
    Start,
    chosen_settings,
    read_history,
    require_names,
    require_path,
    require_reading,
    require_readings,
    require_workspace,
)
from streamridge.forecaster.sizes import SizeName
from streamridge.forecaster.stepwise import StepwiseForecaster
from streamridge.forecaster.tuning import Tuning
from streamridge.learners.workspace import Workspace
from streamridge.series.holidays import GivenHolidays
from streamridge.series.lengths import parse_step, step_name
from streamridge.series.series import Series
from streamridge.series.time_format import NAIVE
from streamridge.series.times import Times
from streamridge.tuners.base import Tuner

# The sensor name of a series that has no name of its own.
UNNAMED = "value"

P = ParamSpec("P")
R = TypeVar("R")


def _named(
    method: Callable[Concatenate[Forecaster, P], R],
) -> Callable[Concatenate[Forecaster, P], R]:
    """Let the errors of a method begin with the name of the forecaster's sensor."""

    @wraps(method)
    def named(self: Forecaster, /, *args: P.args, **options: P.kwargs) -> R:
        with about(_sensor_of(self, options)):
            return method(self, *args, **options)

    return named


def _sensor_of(forecaster: Forecaster, options: Mapping[str, Any]) -> str | None:
    """Return the name of the sensor, which is among the options before there are settings."""
    settings: Settings | None = getattr(forecaster, "_settings", None)
    name = options.get("sensor") if settings is None else settings.sensor
    return name if isinstance(name, str) and name.strip() else None


class Forecaster(StepwiseForecaster):
    """A forecaster of one sensor, with bands, whose model tunes itself as readings come in.

    Parameters
    ----------
    step
        Time between readings, such as "15min", "7d" or "1mo" (a twelfth of a year). A whole number
        is the step of an integer index; times are then whole numbers.
    seasons
        Periods after which the series tends to repeat itself, such as ("1d", "7d"); () for none.
        The default is day and week for steps below a day, week and year for days, a year for weeks
        and months, and none for an index.
    horizon
        H, the number of steps to forecast.
    level
        The share of values that should fall into the band; several shares give several bands. It
        does not affect forecasts: readings are judged by the band of 90 %, which is always learned.
    tz
        Time zone of the sensor, such as "Europe/London". Times without an offset are then local,
        and days and weeks follow the local clock. The `time` array of a forecast is in UTC; its
        `stamps` and `frame` use the format of the readings. Without a zone, times are not
        converted.
    lags
        p, the number of latest values in a row.
    model
        The size of the model: "default", "compact" or "long". "compact" has a fraction of the cost,
        for fleets of sensors. "long" uses several times as much of the past; start it with a
        history as long as its training set, or it takes months to reach its accuracy.
    budget
        Processor time per sensor and day, such as "0.1s/sensor/day". It chooses the size of the
        model and the cadence of refits: see `affordable`.
    train_size
        N, the rows of a fit; the default depends on the model's size and is 5760 for "default".
    update_every
        m, the steps between refits, counted from the first reading after a refit. The default is a
        day of steps, but at least 96. For steps shorter than five minutes it is at most a quarter
        of `train_size`; for steps of a day or longer, and for an index, it is 24.
    warmup
        Steps before the first fit. Early fits use the history there is. The default is three days,
        but at most 864 steps. For steps of a day or longer, and for an index, it is the shortest
        season plus 32 steps.
    extras
        Names of further columns, whose values are known for every step ahead.
    learn
        False keeps the hyperparameters at their initial values, and uses no ensemble.
    tuner
        A search for hyperparameters on the past, such as `tuners.RandomSearch()`, which is repeated
        from time to time (Algorithm 1). Without a tuner, hyperparameters follow the gradient of the
        errors at the end of every window (Algorithm 2).
    tune_every
        n, the readings between searches. The default is a week of readings, or seven times 24 for
        steps of a day or longer. 0 searches only before the first fit.
    validation_size
        The number of latest rows that a search forecasts; `train_size` by default.
    seed
        Seed of the random draws of the tuner, and of the search for a start.
    start
        The start of the hyperparameters. "default" is the model's own start. "search" looks for a
        better one by about sixty small fits, as soon as there are 960 rows or a whole training set.
        It keeps the model's own start unless another is clearly better on the latest rows. It
        searches again after a change of the stream, at most every 28 refits. There is no search
        with a tuner, or without `learn`.
    bounds
        The smallest and the largest possible value, such as (0, None) for counts, or (0, 100).
        Forecasts and bands stay within. A reading outside is counted as implausible and treated as
        missing, with or without `guard`.
    guard
        False learns from every reading, plausible or not, never rolls tuning back, and uses no
        ensemble. Forecasts may then be negative, far from all readings, or worse than the value one
        season ago.
    preset
        A model to use instead of the default one, with its features and step rule.
    defer_refits
        True leaves refits to you: `observe` never refits, `refit_due` says when a refit is due, and
        `refit` makes it.
    sensor
        Name of the sensor; error messages begin with it.
    holidays
        Days that behave like a Sunday: a list of dates, or the code of a country such as "DE", or
        of a part of it such as "GB-ENG", which needs `pip install 'streamridge[holidays]'`. Days
        are days of the zone. The default model compares a holiday with the last Sundays, and
        leaves it out of the profile of its weekday.

    Examples
    --------
    >>> forecaster = Forecaster(step="1h", train_size=100)
    >>> for hour in range(80):
    ...     time = np.datetime64("2021-06-13T00:00") + np.timedelta64(hour, "h")
    ...     forecaster.observe(time, 100.0 + hour + 50 * np.sin(2 * np.pi * hour / 24))
    >>> forecast = forecaster.predict()
    >>> str(forecast.time[0])[:16], forecast.source, bool(abs(forecast.value[0] - 223) < 5)
    ('2021-06-16T08:00', 'model', True)
    """

    @_named
    def __init__(
        self,
        step: str | int | timedelta = "15min",
        *,
        seasons: tuple[str | int | timedelta, ...] | None = None,
        horizon: int = 1,
        level: Level = 0.9,
        tz: str | None = None,
        lags: int = 16,
        model: SizeName = "default",
        budget: str | None = None,
        train_size: int | None = None,
        update_every: int | None = None,
        warmup: int | None = None,
        extras: tuple[str, ...] = (),
        bounds: BoundPair | None = None,
        learn: bool = True,
        guard: bool = True,
        preset: Preset | None = None,
        tuner: Tuner | None = None,
        tune_every: int | None = None,
        validation_size: int | None = None,
        seed: int = 0,
        start: Start = "default",
        defer_refits: bool = False,
        sensor: str | None = None,
        holidays: GivenHolidays | None = None,
    ) -> None:
        arguments = {**locals()}
        del arguments["self"]
        StepwiseForecaster.__init__(self, chosen_settings(**arguments))

    @classmethod
    def paper(
        cls, step: str | int | timedelta = "15min", *, prototype: bool = False, **settings: Any
    ) -> Forecaster:
        """Return a forecaster with the model and the settings that the paper prints.

        It has no differences, no guard, no correction, and natural coordinates. A forecast is the
        prediction of the model, within `bounds` if there are any. The period counts steps, not
        local time: a zone would shift it by an hour twice a year.

        Parameters
        ----------
        step
            Time between readings.
        prototype
            True takes the settings of the public code of the paper's first author. The period
            starts at two days instead of one, and is learned between 1 and 14 days instead of 0.5
            and 7. The first fit waits for p more steps.
        settings
            Parameters of `Forecaster`, except `tz`, `extras` and `holidays`. The defaults are 20
            lags, 2880 rows, a daily refit, a weekly search, and 60 days before the first fit.
        """
        published = PROTOTYPE if require_flag("prototype", prototype) else PRINTED
        return cls(step, **published.settings(parse_step(step), settings))

    @classmethod
    @reading_arguments(*HISTORY_OPTIONS)
    def start(cls, series: Any, **settings: Unpack[StartArguments]) -> Forecaster:
        """Return a forecaster with a history, whose model is fitted to the end of it.

        This takes little longer than one fit. The result is the same as after observing all
        readings one by one, with the first fit after the last of them. Hyperparameters have their
        initial values, and tune themselves from here on. There is no model yet if the history is
        shorter than the warm-up, or with `defer_refits`.

        Parameters
        ----------
        series
            The history of one sensor: a frame or series of pandas, polars or pyarrow, a `Series`,
            or the path of a file. Five months are enough for the default model.
        settings
            Parameters of `Forecaster`, and reading options: see `ReadingOptions`. The step is
            inferred from the series by default. `sensor` names the column to read, where there are
            several.

        Examples
        --------
        >>> from streamridge.datasets import simulate_roads
        >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=10)
        >>> forecaster = Forecaster.start(roads.frame(), train_size=480)
        >>> forecaster.tuning.has_model, forecaster.predict().source
        (True, 'model')
        """
        preset, given = settings.get("preset"), dict[str, Any](settings)
        extras = require_names(settings.get("extras", ()))
        if isinstance(preset, Preset):
            extras = preset.features.extras
        reading = {name: given.pop(name) for name in HISTORY_OPTIONS if name in given}
        shared: dict[str, Any] = {name: given.get(name) for name in ("step", "tz", "sensor")}
        history = read_history(series, extras=extras, reading=reading, **shared)
        zone, name = history.clock.zone, history.sensor
        own = {"step": history.clock.step, "tz": None if zone is None else zone.key}
        if shared["sensor"] is None and name != UNNAMED:
            own["sensor"] = name
        return cls.from_settings(cls(**{**given, **own}).settings, history)

    @classmethod
    def from_settings(cls, settings: Settings, history: Series | None = None) -> Forecaster:
        """Return a new forecaster with the settings of another, and with a history if given.

        The history is a `Series` of the same step and zone. As with `start`, the model is fitted to
        its end, unless refits are deferred.
        """
        forecaster = cls.__new__(cls)
        StepwiseForecaster.__init__(forecaster, settings)
        if history is not None:
            with about(settings.sensor):
                require_readings("value", history.values)
                for each in settings.preset.features.extras:
                    require_readings(each, history.extras[each])
                forecaster._add_history(history)
        return forecaster

    def __repr__(self) -> str:
        return f"Forecaster({', '.join(f'{name}={word}' for name, word in self._words().items())})"

    def _repr_html_(self) -> str:
        words = self._words()
        return html_table(list(words), [list(words.values())])

    def _words(self) -> dict[str, str]:
        """Return the main settings and the state, in a few words each."""
        settings, state = self._settings, "no readings yet"
        if self._history.has_readings:
            state = "fitted" if self._model is not None else "before its first fit"
        return {
            "sensor": repr(settings.sensor),
            "step": repr(step_name(settings.step)),
            "horizon": str(settings.horizon),
            "method": repr(method_of(settings)),
            "readings": str(self._counts["readings"]),
            "state": repr(state),
        }

    @property
    def settings(self) -> Settings:
        """Return the settings of the forecaster."""
        return self._settings

    @property
    def tuning(self) -> Tuning:
        """Return the view on tuning: hyperparameters, weights, and the actions of an operator."""
        return Tuning(self)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force by name; before the first fit, the initial ones."""
        space = self._settings.model.space
        return space.named(space.values) if self._model is None else self._model.hyperparameters

    @_named
    def relevance(self) -> Relevance:
        """Return which features the forecasts use: lags, profiles and further columns."""
        return relevance_of(self.hyperparameters, self._settings.preset.features.compared)

    @property
    def counts(self) -> dict[str, int]:
        """Return how often each event has happened: readings, gaps, conflicts, fits and so on."""
        counts = {**self._counts}
        if self._model is not None:
            tally = self._model.tally
            counts |= {
                "skipped_moves": self._model.skipped_moves,
                "tunings": tally.tunings,
                "tuning_fits": tally.fits,
                "gradients": tally.gradients,
            }
        return {name: count for name, count in counts.items() if count}

    @property
    def next_time(self) -> Any:
        """Return the time of the next forecast as a datetime64; None before the first reading.

        For an integer index it is a whole number.
        """
        times = self._next_times
        return None if times is None else times[0]

    @property
    def _recent(self) -> RecentReadings:
        """Return the latest readings: two days, or twice the horizon."""
        settings, history = self._settings, self._history
        values = history.timeline.last_readings(2 * max(settings.day, settings.horizon))
        return RecentReadings(history.clock.known, history.next_step - len(values), values)

    @property
    def _next_times(self) -> Times | None:
        """Return the times of the steps ahead, (H,); None before the first reading."""
        history = self._history
        if not history.has_readings:
            return None
        return history.clock.known.times(history.next_step + np.arange(history.horizon))

    @property
    def workspace(self) -> Workspace | None:
        """Return the memory that refits use and keep for the next refit, None by default.

        Without one, each refit allocates new memory, about 80 MB, and frees it. A forecaster with a
        workspace of its own keeps its rows and matrices. The numbers are the same. Setting it to
        None also drops the rows and matrices of the fit; they are rebuilt when they are needed.
        """
        return self._workspace

    @workspace.setter
    @_named
    def workspace(self, workspace: Workspace | None) -> None:
        self._workspace = require_workspace(workspace)
        if self._model is not None:
            self._model.hold(workspace)

    def predict(self, extras: GivenExtras | None = None, level: Level | None = None) -> Forecast:
        """Return the forecast of the next steps; this changes nothing.

        Parameters
        ----------
        extras
            The extra columns of the steps ahead, if the forecaster has any: a value for each step,
            such as {"rain": [0.0, 0.4]} for a horizon of two; or a frame with a column of times and
            a column for each extra. "last" repeats the last known values.
        level
            The level of the band, or several; the forecaster's own by default. Only the bands of
            the forecaster's own levels, and of 90 %, are calibrated by errors. A band of any other
            level is derived from these, by the quantiles of a Gaussian.
        """
        try:
            settings, history, columns = self._settings, self._history, None
            levels = settings.levels if level is None else require_levels(level)
            if extras is not None or settings.preset.features.extras:
                written = history.clock.time_format or NAIVE
                columns = require_upcoming(settings, extras, self._next_times, written)
            if not history.has_readings:
                return Forecast.none(
                    settings.horizon, levels, indexed=isinstance(settings.step, int)
                )
            forecast = self._next_forecast(columns)
            values, limits = self._values(forecast)[:, None], history.limits
            below, above = self._offsets(forecast, levels)
            lower = np.minimum(clipped(values + below, limits), values)
            upper = np.maximum(clipped(values + above, limits), values)
            return Forecast(
                history.clock.known.times(history.next_step + np.arange(settings.horizon)),
                values[:, 0],
                lower[:, 0] if len(levels) == 1 else lower,
                upper[:, 0] if len(levels) == 1 else upper,
                forecast.source,
                levels,
                history.clock.time_format or NAIVE,
                settings.sensor,
                self._recent,
            )
        except StreamRidgeError as error:
            error.sensor = error.sensor or self._settings.sensor
            raise

    def observe(
        self,
        time: object,
        value: float | Decimal | EllipsisType | None = ...,
        extras: ExtraValues | None = None,
    ) -> None:
        """Learn from a reading, or from a frame of readings; after an error, nothing has changed.

        Parameters
        ----------
        time
            ISO 8601 text, a datetime or a numpy.datetime64. A time between two steps belongs to
            the nearest. Steps that are left out are gaps. A reading of an earlier step is a
            duplicate, a conflict (the first reading stays), or fills a gap late.

            Alone, without a value: readings of this sensor, as a frame or series of pandas, polars
            or pyarrow, or a `Series`. They are learned from in the order of their rows. If the
            forecaster has extras, their columns are read too, and rows after the last value only
            tell the extras of later steps.
        value
            The reading; None or NaN if it is missing. A reading outside the known bounds is counted
            as implausible, and is otherwise treated as missing.
        extras
            The extra columns at that time: one number each, or several for that step and the
            steps after it, as `predict` takes them. The last known value replaces missing ones in
            the forecast, but a step without its own values is not learned from.
        """
        try:
            history, counts = self._history, self._counts
            if isinstance(value, EllipsisType):
                rows = new_rows(time, self._settings, history)
            else:
                number = require_reading("value", value)
                columns = None if extras is None else require_observed(self._settings, extras)
                rows = iter([(time, number, columns)])
            for moment, number, columns in rows:
                step, on_grid = history.place(moment)
                counts["readings"] += not isnan(number)
                counts["off_grid"] += not on_grid
                if history.excluded and history.is_excluded(step):
                    counts["excluded"] += 1
                    number = np.nan
                missing = step - history.next_step
                if missing < 0:
                    self._add_late(step, number)
                    continue
                if missing:
                    self._fill_gap(missing)
                self._advance(number, columns)
        except StreamRidgeError as error:
            error.sensor = error.sensor or self._settings.sensor
            raise

    @_named
    def exclude(self, start: object, end: object) -> None:
        """Learn nothing from a span of time, such as a closure or a known fault.

        Its readings count as missing, and forecasts continue through it. The span may be in the
        past or in the future. Readings in the past leave the training set at the next refit, which
        you can force by `refit`; bands and hyperparameters keep what they have learned from them.

        Parameters
        ----------
        start, end
            The first and the last time that is excluded, as `observe` accepts them.
        """
        self._history.exclude(start, end)
        self._forget_window()

    @_named
    def refit(self, workspace: Workspace | None = None) -> None:
        """Learn from the readings since the last refit, and fit the model to all known readings.

        You can call it at any time. If it comes k readings after it was due, it learns from these
        too; until then the fit in force makes the forecasts. The next refit is due `update_every`
        steps after the first reading that follows.

        Parameters
        ----------
        workspace
            Memory for the refit. One workspace can serve many forecasters in turn.
        """
        memory = require_workspace(workspace)
        if self._model is None:
            if not self.refit_due:
                self._require_model()
            self._forget_next()
            self._first_fit(memory)
        else:
            self._forget_next()
            self._count(self._model.refit(memory, *self._window()))

    @_named
    def to_bytes(self, *, since_refit: bool = False) -> bytes:
        """Return the forecaster as bytes, for `from_bytes`.

        Parameters
        ----------
        since_refit
            True returns only the changes since the last refit, a few kB. Before the first refit,
            this is the whole forecaster.
        """
        only_changes = require_flag("since_refit", since_refit) and self._model is not None
        header, state = self._state()
        if only_changes:
            return saving.changes_since_refit(header, state, self._history.timeline.changes())
        return saving.whole(header, state)

    @classmethod
    def from_bytes(cls, content: bytes, later: bytes | None = None) -> Forecaster:
        """Return the forecaster that `to_bytes` was called on; it continues bit for bit.

        Parameters
        ----------
        content
            The whole forecaster.
        later
            The changes since the refit that `content` was saved after, if there are any.
        """
        return cls._loaded(content, later, "content")

    @_named
    def save(self, path: str | Path) -> None:
        """Save the whole forecaster to one file, which is written completely or not at all."""
        file_path, content = require_path(path), self.to_bytes()
        with replacing(file_path) as file:
            file.write(content)

    @classmethod
    def load(cls, path: str | Path) -> Forecaster:
        """Return the forecaster that was saved; it continues bit for bit."""
        file_path = require_path(path)
        return cls._loaded(read_content(file_path), None, str(file_path))

    def __getstate__(self) -> bytes:
        """Return the content of a pickle, which holds the same as `to_bytes`."""
        return self.to_bytes()

    def __setstate__(self, content: bytes) -> None:
        """Continue from the bytes of another forecaster, whose settings and state replace these."""
        self.__dict__ = self._loaded(content, None, "content").__dict__

    @classmethod
    def _loaded(cls, content: bytes, later: bytes | None, name: str) -> Forecaster:
        header, state = saving.loaded(content, later, name)
        try:
            forecaster = cls.from_settings(Settings.of(header["settings"]))
            forecaster._restore(header, state)
        except StateError:
            raise
        except UNREADABLE as error:
            raise StateError(f"{name} does not hold a whole forecaster: {error}") from None
        return forecaster
