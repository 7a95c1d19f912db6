"""The forecaster that users work with: readings go in, forecasts with bands come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from streamridge.arrays import require_count, require_flag
from streamridge.errors import InvalidInputError, about, shown
from streamridge.files.atomic import replacing
from streamridge.files.checkpoint import read_content
from streamridge.forecaster import saving
from streamridge.forecaster.bounds import BoundPair
from streamridge.forecaster.cadence import default_cadence
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.history import READING, read_history
from streamridge.forecaster.inputs import (
    require_columns,
    require_names,
    require_path,
    require_reading,
    require_readings,
    require_workspace,
)
from streamridge.forecaster.levels import Level, require_levels
from streamridge.forecaster.methods import method_of
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.published import PRINTED, PROTOTYPE
from streamridge.forecaster.self_tuning import HyperparameterPath, SelfTuningModel
from streamridge.forecaster.settings import Settings, Start
from streamridge.forecaster.sizes import SizeName, affordable, size_of
from streamridge.forecaster.stepper import Stepper
from streamridge.learners.costs import Costs
from streamridge.learners.workspace import Workspace
from streamridge.series.clock import Times, amount, parse_step, step_name
from streamridge.series.holidays import GivenHolidays, parse_holidays
from streamridge.series.seasons import parse_seasons
from streamridge.series.series import Series
from streamridge.series.writing import AS_IS
from streamridge.texts import counted, html_table
from streamridge.tuners.base import Tuner

# What the readings of a series without a name are called.
UNNAMED = "value"
# More steps ahead, or more lags, would take hours to fit; farther lags weigh nothing at the start.
MOST_AHEAD, MOST_LAGS = 20_160, 3000

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


def _require_free(by: str, **decided: object) -> None:
    """Raise if something is given that another setting decides."""
    for name, value in decided.items():
        if not (value is None or (isinstance(value, str) and value == "default")):
            raise InvalidInputError(
                f"{name} must be left out with a {by}, which decides it, got {shown(value)}."
            )


def _sensor_of(forecaster: Forecaster, options: Mapping[str, Any]) -> str | None:
    """Return the name of a forecaster's sensor; of one that is being made, the name given to it."""
    settings: Settings | None = vars(forecaster).get("_settings")
    name = options.get("sensor") if settings is None else settings.sensor
    return name if isinstance(name, str) and name.strip() else None


class Forecaster:
    """A forecaster of one sensor, with bands, whose model tunes itself as readings come in.

    Parameters
    ----------
    step
        Time between readings, such as "15min", "7d" or "1mo", a twelfth of a year. A whole number
        counts units of an integer index, so that times are whole numbers.
    seasons
        After what time the series tends to repeat itself, such as ("1d", "7d"); () if it never
        does. By default day and week for steps below a day, week and year for days, a year for
        weeks and months, and none for an index.
    horizon
        H, how many steps are forecast.
    level
        The share of values that should fall into the bands; or several shares, for a band each.
        They change no forecast: readings are judged by the band of 90 %, which is always learned.
    tz
        Time zone of the sensor, such as "Europe/London". Times without an offset are then local,
        days and weeks follow the local clock, and the array of a forecast's times is in UTC; its
        `stamps` and `frame` have them as they came in. Without a zone, times are taken as they
        are.
    lags
        p, how many of the latest values a row holds.
    model
        The size of the model: "default"; "compact", at a fraction of its cost; or "long", which
        knows several times as much of the past. See `streamridge.forecaster.sizes`.
    budget
        Processor time of a sensor and day, such as "0.1s/sensor/day", that chooses the size of the
        model and how often it is refitted: see `affordable`, which says what it is.
    train_size
        N, the rows of a fit; by default those of the model's size, 2880 of the default one.
    update_every
        m, the steps between refits, counted from the first reading after one; by default a day of
        them, but at least 96, and at most a quarter of `train_size` where steps are shorter than
        five minutes. For steps of a day or longer, and for an index, 24.
    warmup
        Steps before the first fit. Early fits use the history there is. Three days by default, less
        where that is more than 864 steps; for steps of a day or longer, and for an index, the
        shortest season and 32 steps.
    extras
        Names of further columns, whose values are known one step ahead.
    learn
        False keeps the hyperparameters at their initial values, and mixes no other experts in.
    tuner
        A search for hyperparameters on the past, such as `tuners.RandomSearch()`, that is repeated
        now and then (Algorithm 1). Without one, they follow the errors at every window's end
        (Algorithm 2).
    tune_every
        n, the readings between searches; a week of them by default, or seven times 24 for steps of
        a day or longer. 0 searches only before the first fit.
    validation_size
        How many of the latest rows a search forecasts; `train_size` by default.
    seed
        Seed of the random draws of the tuner, and of the search for a start.
    start
        Where the hyperparameters start. "search" looks for a good start by some sixty small fits
        as soon as 960 rows are known, or a whole training set if it is smaller; it keeps the
        model's own start unless another is clearly better on the latest rows. It searches again
        after a change of the stream, at most every 28 refits. "default" learns from where the
        model starts. Nothing is searched with a tuner, or without `learn`.
    bounds
        The least and the greatest value that the sensor can show, such as (0, None) for counts, or
        (0, 100). No forecast and no band goes beyond. A reading beyond cannot be right, whatever
        `guard` says: it is counted as implausible, and its step is filled as if there was none.
    guard
        False learns from every reading, plausible or not, never rolls tuning back, and leaves
        forecasts as the model makes them, with no other expert: also below zero, far from all
        readings, or worse than the value a season ago of late.
    preset
        A model to use instead of the default one, with its features and step rule.
    defer_refits
        True leaves refits to you: `observe` never refits, `refit_due` tells when it is time, and
        `refit` does it.
    sensor
        Name of the sensor, with which messages begin.
    holidays
        Days that run like a Sunday: a list of dates, or the code of a country such as "DE", or of
        a part of it such as "GB-ENG", which needs `pip install 'streamridge[holidays]'`. Days are
        those of the zone. The default model compares a holiday with the last Sundays, and leaves
        it out of what is typical of its weekday.

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
        length = parse_step(step)
        lengths = parse_seasons(seasons, length)
        periods = tuple(amount(season) / amount(length) for season in lengths)
        require_count("horizon", horizon, most=MOST_AHEAD)
        require_count("lags", lags, most=MOST_LAGS)
        size = size_of(model)
        if preset is not None:
            _require_free("preset", model=model, budget=budget)
        if budget is not None:
            _require_free("budget", model=model, train_size=train_size, update_every=update_every)
            size = affordable(budget, length, horizon=horizon).size
        train_size = size.train_size if train_size is None else train_size
        require_count("train_size", train_size)
        names = require_names(extras)
        if preset is not None and names:
            raise InvalidInputError(
                f"extras must be left out with a preset, which has its own, got {extras!r}."
            )
        if preset is None:
            preset = size.preset(lengths, length, lags=lags, horizon=horizon, extras=names)
        cadence = default_cadence(length, periods, horizon, train_size)
        if update_every is None:
            update_every = size.every * cadence.update_every
        self._settings = Settings(
            step=length,
            seasons=lengths,
            preset=preset,
            horizon=horizon,
            level=level,
            tz=tz,
            train_size=train_size,
            update_every=update_every,
            warmup=cadence.warmup if warmup is None else warmup,
            learn=learn,
            guard=guard,
            tuner=tuner,
            tune_every=cadence.tune_every if tune_every is None else tune_every,
            validation_size=train_size if validation_size is None else validation_size,
            seed=seed,
            start=start,
            defer_refits=defer_refits,
            bounds=bounds,
            sensor=sensor,
            holidays=None if holidays is None else parse_holidays(holidays),
        )
        self._stepper = Stepper(self._settings)

    @classmethod
    def compact(cls, step: str | int | timedelta = "15min", **settings: Any) -> Forecaster:
        """Return a forecaster that costs a fraction of the default one, for fleets of sensors.

        Its model has the kernel of the default one, on landmarks: see `NystromRidge`.

        Parameters
        ----------
        step
            Time between readings.
        settings
            Those of a `Forecaster`.
        """
        return cls(step, model="compact", **settings)

    @classmethod
    def long(cls, step: str | int | timedelta = "15min", **settings: Any) -> Forecaster:
        """Return a forecaster that knows several times as much of the past as the default one.

        Its model has the kernel of the default one, on landmarks, and starts to forget more slowly.
        Start it with a history as long as its training set, or it takes months to show what it can.

        Parameters
        ----------
        step
            Time between readings.
        settings
            Those of a `Forecaster`; `train_size` may go up to a year of steps and more.
        """
        return cls(step, model="long", **settings)

    @classmethod
    def paper(cls, step: str | int | timedelta = "15min", **settings: Any) -> Forecaster:
        """Return a forecaster with the model and the settings that the paper prints.

        No differences, no guard, no correction, natural coordinates; a forecast is what the model
        says, within `bounds` if there are any. The period counts steps, not local time: a zone
        would shift it by an hour twice a year.

        Parameters
        ----------
        step
            Time between readings.
        settings
            Those of a `Forecaster`, apart from `tz`, `extras` and `holidays`. By default 20 lags,
            2880 rows, a refit every day, a search every week, and 60 days before the first fit.
        """
        return cls(step, **PRINTED.settings(parse_step(step), settings))

    @classmethod
    def prototype(cls, step: str | int | timedelta = "15min", **settings: Any) -> Forecaster:
        """Return a forecaster with the settings of the public code of the paper's first author.

        It differs from `paper` in the period, which starts at two days instead of one and is
        learned between one day and 14 instead of half a day and seven, and in the first fit, which
        waits for as many more steps as there are lags.
        """
        return cls(step, **PROTOTYPE.settings(parse_step(step), settings))

    @classmethod
    def start(cls, series: Any, **settings: Any) -> Forecaster:
        """Return a forecaster that knows a history, with a model fitted to its end.

        This takes little longer than one fit. The forecaster is the one that would have come of all
        readings, one after the other, had the first fit waited for the last of them. Its
        hyperparameters are the initial ones, and tune themselves from here on. There is no model
        yet if the history is shorter than the warm-up, or with `defer_refits`.

        Parameters
        ----------
        series
            The history of one sensor: a frame or series of pandas, polars or pyarrow, a `Series`,
            or the path of a file. One month is enough for the default model.
        settings
            Those of a `Forecaster`. The step is found from the series by default; `sensor` also
            says which column to take, where there are several. Beside them, how to read it: `gap`,
            `layout`, `fold`, `aggregate`, `from_` and `to`, as `replay` takes them.

        Examples
        --------
        >>> from streamridge.datasets import simulate_roads
        >>> roads = simulate_roads(np.random.default_rng(0), detectors=1, days=10)
        >>> forecaster = Forecaster.start(roads.frame(), train_size=480)
        >>> forecaster.has_model, forecaster.predict().source
        (True, 'model')
        """
        preset = settings.get("preset")
        extras = require_names(settings.get("extras", ()))
        if isinstance(preset, Preset):
            extras = preset.features.extras
        reading = {name: settings.pop(name) for name in READING if name in settings}
        shared: dict[str, Any] = {name: settings.get(name) for name in ("step", "tz", "sensor")}
        history = read_history(series, extras=extras, **shared, **reading)
        zone, name = history.clock.zone, history.sensor
        own = {"step": history.clock.step, "tz": None if zone is None else zone.key}
        if shared["sensor"] is None and name != UNNAMED:
            own["sensor"] = name
        forecaster = cls(**{**settings, **own})
        with about(forecaster.settings.sensor):
            require_readings("value", history.values)
            for each in extras:
                require_readings(each, history.extras[each])
            forecaster._stepper.take_history(history)
        return forecaster

    @classmethod
    def of(cls, settings: Settings, history: Series | None = None) -> Forecaster:
        """Return a new forecaster with the settings of another, which knows a history if given.

        The history is a `Series` of the same step and zone. As with `start`, the model is fitted to
        its end, unless refits are deferred.
        """
        forecaster = cls._of_parts(settings, Stepper(settings))
        if history is not None:
            forecaster._stepper.take_history(history)
        return forecaster

    def __repr__(self) -> str:
        return f"Forecaster({', '.join(f'{name}={word}' for name, word in self._words().items())})"

    def _repr_html_(self) -> str:
        words = self._words()
        return html_table(list(words), [list(words.values())])

    def _words(self) -> dict[str, str]:
        """Return what the forecaster is and where it stands, in a few words each."""
        settings = self._settings
        return {
            "sensor": repr(settings.sensor),
            "step": repr(step_name(settings.step)),
            "horizon": str(settings.horizon),
            "method": repr(method_of(settings)),
            "readings": str(self._stepper.counts["readings"]),
            "state": repr(self._state),
        }

    @property
    def _state(self) -> str:
        if self.has_model:
            return "fitted"
        return "before its first fit" if self.has_readings else "no readings yet"

    @property
    def settings(self) -> Settings:
        """Return the settings that the forecaster was made with."""
        return self._settings

    @property
    def counts(self) -> dict[str, int]:
        """Return how often each event has happened: readings, gaps, conflicts, fits and so on."""
        counts = {**self._stepper.counts}
        if self._stepper.model is not None:
            learner = self._stepper.model.learner
            tally = self._stepper.model.tally
            counts |= {
                "skipped_moves": learner.skipped_moves,
                "tunings": tally.tunings,
                "tuning_fits": tally.fits,
                "gradients": tally.gradients,
            }
        return {name: count for name, count in counts.items() if count}

    @property
    def costs(self) -> Costs:
        """Return the seconds spent on tuning, fitting and predicting."""
        return self._stepper.costs

    @property
    def has_readings(self) -> bool:
        """Return whether there has been a reading."""
        return self._stepper.sensor.has_readings

    @property
    @_named
    def next_time(self) -> np.datetime64:
        """Return the time of the next forecast; there must have been a reading."""
        return self._stepper.sensor.clock.known.times(np.array([self._stepper.sensor.next_step]))[0]

    @property
    def has_model(self) -> bool:
        """Return whether the first fit has been made."""
        return self._stepper.model is not None

    @property
    def refit_due(self) -> bool:
        """Return whether it is time for a refit, or for the first fit.

        It becomes due with a reading, and only with `defer_refits` does it stay due after it. Gaps
        count as well: after a long one, the first reading is the last of its window.
        """
        return self._stepper.refit_due

    @property
    def workspace(self) -> Workspace | None:
        """Return the memory that refits use and hold for the next one, None by default.

        Without one, each refit takes new memory, about 130 MB for 2,880 rows, and gives it back. A
        forecaster with a workspace of its own refits faster, because the factor of the last fit is
        still there when the window's gradient needs it. The numbers are the same.
        """
        return self._stepper.workspace

    @workspace.setter
    @_named
    def workspace(self, workspace: Workspace | None) -> None:
        self._stepper.hold(require_workspace(workspace))

    @property
    def experts(self) -> dict[str, float]:
        """Return the weights of the experts in the next forecast by name, which sum to one.

        "model" is the self-tuned model, "start" a fit to a quarter of its rows at the
        hyperparameters it started from; the others are the last reading and the values a season
        ago, such as "day" and "week". Empty before the first fit, and where nothing is mixed:
        without `learn` or `guard`.
        """
        return self._stepper.experts

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force by name; before the first fit, the initial ones."""
        if self._stepper.model is None:
            space = self._settings.model.space
            return space.named(space.values)
        return self._stepper.model.learner.hyperparameters

    @property
    def correction(self) -> dict[str, float]:
        """Return how the last errors correct the next forecast, as it was learned.

        `half_life` is the number of steps after which an error counts half, `share` the share of
        the mean of the last errors that is added one step ahead. Empty, if nothing is corrected.
        """
        correction = self._stepper.correction
        if correction is None:
            return {}
        return {"half_life": correction.half_life, "share": correction.share}

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return the learned hyperparameters at a bound, each with "lower" or "upper"."""
        return {} if self._stepper.model is None else self._stepper.model.learner.active_bounds

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` keeps constant."""
        return () if self._stepper.model is None else self._stepper.model.learner.frozen

    @property
    @_named
    def path(self) -> HyperparameterPath:
        """Return the path of the hyperparameters, refit by refit."""
        return self._require_model().path

    @property
    @_named
    def refit_times(self) -> Times:
        """Return the times of the refits in `path`, shape (n,)."""
        return self._stepper.sensor.clock.known.times(self.path.steps)

    def predict(
        self, extras: Mapping[str, float] | None = None, level: Level | None = None
    ) -> Forecast:
        """Return the forecast of the next steps; this changes nothing.

        Parameters
        ----------
        extras
            Values of the further columns at the next step, if the forecaster has any.
        level
            The level of the band, or several; those of the forecaster by default. Only the bands of
            levels that the forecaster was made with, and that of 90 %, are calibrated by what
            happened. A band of any other level is derived from these, by the quantiles of a
            Gaussian.
        """
        with about(self._settings.sensor):  # without a decorator: every step passes here
            sensor, columns = self._stepper.sensor, None
            levels = self._settings.levels if level is None else require_levels(level)
            if extras is not None or self._settings.preset.features.extras:
                columns = require_columns(self._settings.preset.features.extras, extras)
            if not sensor.has_readings:
                indexed = isinstance(self._settings.step, int)
                return Forecast.none(self._settings.horizon, levels, indexed=indexed)
            ahead = self._stepper.look_ahead(columns)
            steps = sensor.next_step + np.arange(self._settings.horizon)
            return Forecast.banded(
                sensor.clock.known.times(steps),
                ahead.values.copy(),
                self._stepper.bands(ahead, levels),
                source=ahead.source,
                levels=levels,
                writing=sensor.clock.writing or AS_IS,
            )

    def observe(
        self, time: object, value: float | None, extras: Mapping[str, float] | None = None
    ) -> None:
        """Learn from a reading; if an error is raised, nothing has changed.

        Parameters
        ----------
        time
            ISO 8601 text, a datetime or a numpy.datetime64. A time between two steps belongs to
            the nearest. Steps that are left out are gaps. A reading of an earlier step is a
            duplicate, a conflict (the first reading stays), or fills a gap late.
        value
            The reading; None or NaN if there is none. One outside the known bounds is counted as
            implausible, and is else taken for none.
        extras
            Values of the further columns at that time. Without them, the step's row is not learned
            from.
        """
        with about(self._settings.sensor):  # without a decorator: every step passes here
            number = require_reading("value", value)
            names = self._settings.preset.features.extras
            columns = None if extras is None else require_columns(names, extras)
            stepper = self._stepper
            step, on_grid = stepper.sensor.place(time)
            stepper.counts["readings"] += 1
            stepper.counts["off_grid"] += not on_grid
            if stepper.sensor.is_excluded(step):
                stepper.counts["excluded"] += 1
                number = np.nan
            if step < stepper.sensor.next_step:
                stepper.look_back(step, number)
                return
            stepper.fill_gap(step - stepper.sensor.next_step)
            stepper.advance(number, columns)

    @_named
    def exclude(self, start: object, end: object) -> None:
        """Learn nothing from a span of time, such as a closure or a known fault.

        Its readings count as missing, so forecasts go on through it as through a silence. It may
        lie ahead or behind. What has been learned from readings behind stays in bands and
        hyperparameters; they leave the training set at the next refit, which `refit` brings about
        at once.

        Parameters
        ----------
        start, end
            The first and the last time that is excluded, as `observe` takes them.
        """
        self._stepper.sensor.exclude(start, end)
        self._stepper.changed()

    @_named
    def refit(self, workspace: Workspace | None = None) -> None:
        """Learn from the readings since the last refit, and fit the model to all that is known.

        It may come at any time. Coming k readings after it was due, it learns from these as well;
        forecasts until then are those of the fit in force. The next one is due `update_every` steps
        after the first reading that follows.

        Parameters
        ----------
        workspace
            Memory for the refit. One workspace can serve many forecasters in turn.
        """
        stepper = self._stepper
        if stepper.model is None and not stepper.refit_due:
            self._require_model()
        stepper.refit(require_workspace(workspace))

    @_named
    def set(self, /, **values: float) -> None:
        """Set hyperparameters by name, such as `set(**{"drifting.rate": 1e-4})`, and refit."""
        self._require_model().assign(values)
        self._stepper.counts["fits"] += 1
        self._stepper.changed()

    @_named
    def freeze(self, *names: str) -> None:
        """Keep hyperparameters constant from now on."""
        self._require_model().learner.freeze(*names)

    @_named
    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""
        self._require_model().learner.unfreeze(*names)

    @_named
    def release(self) -> None:
        """Drop what can be recomputed, at the cost of a factorization at the next refit."""
        if self._stepper.model is not None:
            self._stepper.model.release()

    @_named
    def to_bytes(self, *, since_refit: bool = False) -> bytes:
        """Return the forecaster as bytes, for `from_bytes`.

        Parameters
        ----------
        since_refit
            True returns only what has changed since the last refit, a few kB; before the first
            refit, that is all.
        """
        form = saving.since_refit if require_flag("since_refit", since_refit) else saving.to_bytes
        return form(self._settings, self._stepper)

    @classmethod
    def from_bytes(cls, content: bytes, later: bytes | None = None) -> Forecaster:
        """Return the forecaster that `to_bytes` was called on; it continues bit for bit.

        Parameters
        ----------
        content
            The whole forecaster.
        later
            What has changed since the refit that `content` was taken after, if that is newer.
        """
        return cls._of_parts(*saving.from_bytes(content, later, "content"))

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
        return cls._of_parts(*saving.from_bytes(read_content(file_path), None, str(file_path)))

    @classmethod
    def _of_parts(cls, settings: Settings, stepper: Stepper) -> Forecaster:
        forecaster = cls.__new__(cls)
        forecaster._settings, forecaster._stepper = settings, stepper
        return forecaster

    def _require_model(self) -> SelfTuningModel:
        if self._stepper.model is None:
            raise InvalidInputError(
                "the model must have been fitted first, after "
                f"{counted(self._stepper.first_try, 'step')} at the earliest, "
                f"got {len(self._stepper.sensor.timeline)} so far."
            )
        return self._stepper.model
