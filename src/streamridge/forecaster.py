"""The user's object: readings in, forecasts with bands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_count, require_number
from streamridge.errors import InvalidInputError, StateError
from streamridge.forecast import Forecast, Source
from streamridge.intervals import ConformalBands
from streamridge.naive import SeasonalNaive
from streamridge.plausibility import Plausibility
from streamridge.presets import Preset, default_preset, paper_preset
from streamridge.protocols.timing import Costs
from streamridge.self_tuning import HyperparameterPath, SelfTuningModel
from streamridge.settings import Settings
from streamridge.storage.checkpoint import read_checkpoint, write_checkpoint
from streamridge.storage.parts import joined, part
from streamridge.streams.clock import DAY, parse_step
from streamridge.streams.learnable import RowMaker, input_at, samples_at, samples_reading
from streamridge.streams.past import Past
from streamridge.streams.sensor_clock import SensorClock
from streamridge.streams.timeline import Timeline

# Steps before the first fit, in days: two of rows with a day behind each.
WARMUP_DAYS = 3
# A first fit needs at least this many rows.
LEAST_ROWS = 12
# The least size of error, as a share of the value.
ROUNDING = 1e-9
KINDS = ("tuning", "fitting", "predicting")


@dataclass(frozen=True)
class Ahead:
    """Is the forecast of the next step with all that is needed to learn from it."""

    step: int
    x: Vector | None  # the row, where a model made the forecast
    complete: bool  # whether the row can be trained on
    values: Vector
    spreads: Vector
    below: Vector
    above: Vector
    source: Source


class Forecaster:
    """Forecasts a sensor's next values with bands, and tunes itself as readings come in.

    Parameters
    ----------
    step
        Time between readings, such as "15min"; it must divide a day.
    horizon
        H, how many steps are forecast.
    level
        The share of values that shall fall into the bands.
    tz
        Zone of the sensor, such as "Europe/London": times without an offset are its local times,
        days and weeks follow its clock, and forecasts are in UTC. Without it times are taken as
        they are.
    lags
        p, how many of the latest values a row holds.
    train_size
        N, the rows of a fit.
    update_every
        m, the readings between refits; a day by default, and 96 at least.
    warmup
        Steps before the first fit; three days by default. Fits use what history there is.
    extras
        Names of further columns that are known a step ahead.
    learn
        False keeps the hyperparameters at their start.
    guard
        False learns from every reading, plausible or not, and never rolls back.
    preset
        Another model than the default one, with its features and step rule.

    Examples
    --------
    >>> forecaster = Forecaster(step="1h", train_size=100)
    >>> for hour in range(80):
    ...     time = np.datetime64("2021-06-13T00:00") + np.timedelta64(hour, "h")
    ...     forecaster.observe(time, 100.0 + 50 * np.sin(2 * np.pi * hour / 24))
    >>> forecast = forecaster.predict()
    >>> str(forecast.time[0])[:16], forecast.source, bool(abs(forecast.value[0] - 143) < 5)
    ('2021-06-16T08:00', 'model', True)
    """

    _ahead: Ahead | None
    _model: SelfTuningModel | None

    def __init__(
        self,
        step: str | timedelta = "15min",
        *,
        horizon: int = 1,
        level: float = 0.9,
        tz: str | None = None,
        lags: int = 16,
        train_size: int = 2880,
        update_every: int | None = None,
        warmup: int | None = None,
        extras: tuple[str, ...] = (),
        learn: bool = True,
        guard: bool = True,
        preset: Preset | None = None,
    ) -> None:
        length = parse_step(step)
        day = DAY // length
        require_count("horizon", horizon)
        self._start(
            Settings(
                step=length,
                preset=preset
                or default_preset(day, lags=lags, horizon=horizon, extras=tuple(extras)),
                horizon=horizon,
                level=level,
                tz=tz,
                train_size=train_size,
                update_every=max(day, 96, horizon) if update_every is None else update_every,
                warmup=WARMUP_DAYS * day if warmup is None else warmup,
                learn=learn,
                guard=guard,
            )
        )

    @classmethod
    def paper(
        cls,
        step: str | timedelta = "15min",
        *,
        lags: int = 20,
        train_size: int = 2880,
        update_every: int = 96,
        warmup: int = 60 * 96,
        **settings: Any,
    ) -> Forecaster:
        """Return the paper's model and settings: no differences, no guard, natural coordinates."""
        return cls(
            step,
            train_size=train_size,
            update_every=update_every,
            warmup=warmup,
            preset=paper_preset(lags=lags),
            **{"guard": False, **settings},
        )

    @classmethod
    def of(cls, settings: Settings) -> Forecaster:
        """Return a new forecaster with the settings of another."""
        forecaster = cls.__new__(cls)
        forecaster._start(settings)
        return forecaster

    @property
    def settings(self) -> Settings:
        """Return what the forecaster was made with."""
        return self._settings

    @property
    def counts(self) -> dict[str, int]:
        """Return how often what has happened: readings, gaps, conflicts, fits and so on."""
        return {name: count for name, count in self._counts.items() if count}

    @property
    def costs(self) -> Costs:
        """Return the seconds spent on tuning, fitting and predicting."""
        return self._costs

    @property
    def has_model(self) -> bool:
        """Tell whether the first fit has been made."""
        return self._model is not None

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force by name; those of the start before the first fit."""
        if self._model is None:
            space = self._settings.preset.model.space
            return space.named(space.values)
        return self._model.learner.hyperparameters

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return which learned hyperparameters sit at their "lower" or "upper" bound."""
        return {} if self._model is None else self._model.learner.active_bounds

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that are held where they are."""
        return () if self._model is None else self._model.learner.frozen

    @property
    def path(self) -> HyperparameterPath:
        """Return where the hyperparameters have been, refit by refit."""
        return self._require_model().path

    def predict(self, extras: Mapping[str, float] | None = None) -> Forecast:
        """Return the forecast of the next steps; nothing changes by it.

        Parameters
        ----------
        extras
            The further columns at the next step, where the forecaster has any.
        """
        if extras is not None or self._settings.preset.features.extras:
            self._announce(self._require_extras(extras))
        if not len(self._timeline):
            return Forecast.none(self._settings.horizon)
        ahead = self._look_ahead()
        times = self._clock.known.times(ahead.step + np.arange(self._settings.horizon))
        lower, upper = ahead.values + ahead.below, ahead.values + ahead.above
        lower = np.minimum(np.maximum(lower, self._plausibility.floor), ahead.values)
        return Forecast(times, ahead.values, lower, upper, ahead.source)

    def observe(
        self, time: object, value: float | None, extras: Mapping[str, float] | None = None
    ) -> None:
        """Learn from a reading; after an error nothing has changed.

        Parameters
        ----------
        time
            ISO 8601 text, a datetime or a numpy.datetime64. A time between two steps goes to the
            nearest. Steps that were left out are gaps. An earlier time is a duplicate, a conflict
            (what was read first stays), or fills a gap late.
        value
            The reading; None or NaN if there is none.
        extras
            The further columns at that time.
        """
        number = _require_value(value)
        columns = None if extras is None else self._require_extras(extras)
        started = len(self._timeline) > 0
        step, on_grid = self._clock.place(time, self._timeline.newest if started else None)
        self._counts["readings"] += 1
        self._counts["off_grid"] += not on_grid
        if not started:
            self._timeline.start_at(step)
        if step <= self._timeline.newest:
            self._look_back(step, number)
            return
        while self._timeline.newest + 1 < step:
            self._advance(np.nan)
        if columns is not None:
            self._announce(columns)
        self._advance(number)

    def set(self, **values: float) -> None:
        """Set hyperparameters by name, `set(**{"drifting.rate": 1e-4})`, and refit at once."""
        self._require_model().assign(values)
        self._ahead = None  # it was made with the old ones

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters where they are from now on."""
        self._require_model().learner.freeze(*names)

    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""
        self._require_model().learner.unfreeze(*names)

    def release(self) -> None:
        """Drop what can be made again; the next refit takes a factorization longer."""
        if self._model is not None:
            self._model.learner.release()

    def save(self, path: str | Path) -> None:
        """Write all that the forecaster is to one file, whole or not at all."""
        header = {
            "kind": "forecaster",
            "settings": self._settings.described(),
            "clock": self._clock.state(),
            "counts": dict(self._counts),
        }
        write_checkpoint(Path(path), header, self._state())

    @classmethod
    def load(cls, path: str | Path) -> Forecaster:
        """Return the forecaster that was saved; it goes on bit for bit."""
        header, state = read_checkpoint(Path(path))
        if header.get("kind") != "forecaster":
            raise StateError(f"{path} must hold a forecaster, got {header.get('kind')!r}.")
        forecaster = cls.of(Settings.of(header["settings"]))
        try:
            forecaster._resume(header, state)
        except (KeyError, ValueError, TypeError) as error:
            raise StateError(f"{path} does not hold a whole forecaster: {error}") from None
        return forecaster

    def _start(self, settings: Settings) -> None:
        features, horizon = settings.preset.features, settings.horizon
        self._settings = settings
        # A late reading can change rows for as long as lags reach; the first fit wants its history.
        behind = max(features.reach, min(settings.warmup, settings.train_size))
        self._timeline = Timeline(features.reach + behind + horizon + 1, len(features.extras))
        self._clock = SensorClock(settings.step, settings.tz)
        self._model = None
        self._naive = SeasonalNaive.start(settings.level)
        self._bands = ConformalBands.start(horizon, settings.level)
        self._plausibility = Plausibility()
        self._resolution = np.inf  # the smallest change between readings
        self._silent = 0  # steps since the last reading
        self._pending: tuple[Ahead, ...] = ()  # the last H forecasts of a model, newest first
        self._ahead = None  # the next forecast, once it has been asked for
        self._counts: Counter[str] = Counter()
        self._costs = Costs()

    def _announce(self, columns: Vector) -> None:
        """Keep the further columns of the next step."""
        self._timeline.announce(columns)
        self._ahead = None

    def _look_back(self, step: int, value: float) -> None:
        """Take a reading of a step that has passed; what was read first stays."""
        timeline = self._timeline
        if np.isnan(value):
            return
        if step < timeline.oldest:
            self._counts["too_late"] += 1
        elif timeline.was_read(step):
            same = timeline.values(np.array([step]))[0] == value
            self._counts["duplicates" if same else "conflicts"] += 1
        else:
            self._counts["late"] += 1
            timeline.correct(step, value)
            self._silent = min(self._silent, timeline.newest - step)
            self._ahead = None
            if self._model is not None:
                horizon = self._settings.horizon
                self._model.admit(samples_reading(self._features, self._past, step, horizon))

    def _advance(self, value: float) -> None:
        """Take the next step, with a reading or without."""
        if not len(self._timeline):
            if np.isnan(value):  # nothing is known yet, nor is there anything to fill a gap with
                return
            self._timeline.push(value, read=True, trusted=True)
            return
        ahead = self._look_ahead()
        self._ahead = None
        if np.isnan(value):
            self._counts["missing"] += 1
            self._silent += 1
            self._timeline.push(float(ahead.values[0]), read=False, trusted=False)
            return
        verdict = self._judge(value, ahead)
        self._settle_bands(value, ahead)
        self._silent = 0
        plausible = verdict != "implausible"
        self._timeline.push(
            value if plausible else float(ahead.values[0]), read=True, trusted=verdict == "good"
        )
        if self._model is None:
            self._first_fit()
        elif verdict == "good":
            self._learn(ahead, value)

    def _look_ahead(self) -> Ahead:
        """Return the forecast of the next step on, made once."""
        if self._ahead is None:
            step = self._timeline.newest + 1
            if self._model is None or self._silent > self._settings.day:
                self._ahead = self._seasonal(step)
            else:
                self._ahead = self._modelled(self._model, step)
        return self._ahead

    def _seasonal(self, step: int) -> Ahead:
        steps = range(step, step + self._settings.horizon)
        values = np.array([self._past.seasonal(ahead, self._settings.day) for ahead in steps])
        below, above = self._naive.offsets(values, self._least)
        return Ahead(step, None, False, values, above, below, above, "seasonal")

    def _modelled(self, model: SelfTuningModel, step: int) -> Ahead:
        inputs, complete = input_at(self._features, self._past, step)
        values, spreads = model.predict(step, inputs.x[0])
        values = self._plausibility.bounded(values)
        spreads = np.maximum(spreads, self._least)
        below, above = self._bands.offsets(spreads)
        if self._silent:
            below, above = self._widened(values, below, above)
        return Ahead(step, inputs.x[0], complete, values, spreads, below, above, "model")

    def _widened(self, values: Vector, below: Vector, above: Vector) -> tuple[Vector, Vector]:
        """Return bands of a silent sensor: wider with time, up to those of a season ago."""
        ahead = 1 + np.arange(len(values))
        wider = np.sqrt((self._silent + ahead) / ahead)
        lowest, highest = self._naive.offsets(values, self._least)
        return (
            np.minimum(below, np.maximum(wider * below, lowest)),
            np.maximum(above, np.minimum(wider * above, highest)),
        )

    def _judge(self, value: float, ahead: Ahead) -> str:
        """Return whether a reading can be learned from, and keep what it says of the sensor."""
        change = abs(value - self._past.latest)
        if 0 < change < self._resolution:
            self._resolution = change
        naive = self._past.seasonal(ahead.step, self._settings.day)
        self._naive = self._naive.observe(value - naive, self._least)
        if not self._settings.guard or self._model is None:
            return "good"
        band = max(ahead.above[0], -ahead.below[0])
        verdict, self._plausibility = self._plausibility.judge(
            value, value - float(ahead.values[0]), band
        )
        if verdict != "good":
            self._counts[verdict] += 1
        return verdict

    def _settle_bands(self, value: float, ahead: Ahead) -> None:
        """Let the bands learn from every forecast of this value that a model made in time."""
        if ahead.source == "model" and not self._silent:
            self._pending = (ahead, *self._pending)
        step, horizon = ahead.step, self._settings.horizon
        for made in self._pending:
            h = step - made.step
            if h < horizon:
                error = value - float(made.values[h])
                self._bands = self._bands.observe(h, error, float(made.spreads[h]))
        self._pending = tuple(made for made in self._pending if step - made.step < horizon - 1)

    def _first_fit(self) -> None:
        """Start the model once there is history enough."""
        timeline, horizon = self._timeline, self._settings.horizon
        if len(timeline) < self._settings.warmup:
            return
        steps = np.arange(timeline.oldest, timeline.newest - horizon + 2)
        history = samples_at(self._features, self._past, steps, horizon)
        if len(history) < max(LEAST_ROWS, horizon):
            return
        self._model = SelfTuningModel(self._settings, history, self._costs)
        self._counts["fits"] += 1
        self._plausibility = self._plausibility.renewed(timeline.readings())

    def _learn(self, ahead: Ahead, value: float) -> None:
        model = self._require_model()
        events = model.observe(ahead.step, ahead.x if ahead.complete else None, value)
        self._counts.update(events)
        if "fits" in events:
            self._plausibility = self._plausibility.renewed(self._timeline.readings())

    @property
    def _past(self) -> Past:
        return Past(self._timeline, self._clock.known)

    @property
    def _features(self) -> RowMaker:
        return self._settings.preset.features

    @property
    def _least(self) -> float:
        """Return the least size of error: half the smallest change seen, or a rounding."""
        latest = abs(self._past.latest)
        smallest = self._resolution / 2 if np.isfinite(self._resolution) else 0.0
        return max(smallest, ROUNDING * max(latest, 1.0))

    def _require_model(self) -> SelfTuningModel:
        if self._model is None:
            raise InvalidInputError(
                f"the model must have been fitted first, after {self._settings.warmup} steps; "
                f"there are {len(self._timeline)}."
            )
        return self._model

    def _require_extras(self, extras: Mapping[str, float] | None) -> Vector:
        names = self._settings.preset.features.extras
        given = {} if extras is None else dict(extras)
        if set(given) != set(names):
            wanted = ", ".join(names) or "nothing"
            raise InvalidInputError(f"extras must give {wanted}, got {', '.join(given) or 'none'}.")
        return np.array([_require_value(given[name]) for name in names])

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return all that changes, as arrays."""
        parts: dict[str, Mapping[str, Any]] = {
            "timeline": self._timeline.state(),
            "naive": self._naive.state(),
            "bands": self._bands.state(),
            "plausibility": self._plausibility.state(),
            "model": self._model.state() if self._model else {},
            "pending": {
                "steps": np.array([made.step for made in self._pending], dtype=np.int64),
                "values": self._stacked([made.values for made in self._pending]),
                "spreads": self._stacked([made.spreads for made in self._pending]),
            },
            "self": {
                "resolution": np.array(self._resolution),
                "silent": np.array(self._silent),
                "seconds": np.array([getattr(self._costs, kind) for kind in KINDS]),
            },
        }
        return joined(parts)

    def _resume(self, header: Mapping[str, Any], state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `save` has written."""
        self._clock.restore(header["clock"])
        self._counts = Counter(header["counts"])
        self._timeline.restore(part(state, "timeline"))
        self._naive = self._naive.restore(part(state, "naive"))
        self._bands = self._bands.restore(part(state, "bands"))
        self._plausibility = self._plausibility.restore(part(state, "plausibility"))
        own, pending = part(state, "self"), part(state, "pending")
        self._resolution, self._silent = float(own["resolution"]), int(own["silent"])
        self._costs = Costs(*own["seconds"].tolist())
        self._pending = tuple(
            Ahead(int(step), None, False, values, spreads, spreads, spreads, "model")
            for step, values, spreads in zip(
                pending["steps"], pending["values"], pending["spreads"], strict=True
            )
        )
        learned = part(state, "model")
        if learned:
            self._model = SelfTuningModel.resumed(self._settings, learned, self._costs)

    def _stacked(self, rows: list[Vector]) -> Matrix:
        return np.array(rows).reshape(len(rows), self._settings.horizon)


def _require_value(value: float | None) -> float:
    """Return a reading as a number, NaN if there is none."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return np.nan
    return require_number("value", value)
