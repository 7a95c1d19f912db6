"""The user's object: readings in, forecasts with bands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_count, require_number
from streamridge.calibration import Calibration, Made
from streamridge.errors import InvalidInputError, NotPositiveDefiniteError, StateError
from streamridge.forecast import Forecast
from streamridge.presets import Preset, default_preset, paper_preset
from streamridge.protocols.timing import Costs
from streamridge.self_tuning import HyperparameterPath, SelfTuningModel
from streamridge.sensor import Sensor
from streamridge.settings import Settings
from streamridge.storage.checkpoint import read_checkpoint, write_checkpoint
from streamridge.storage.parts import joined, part
from streamridge.streams.clock import DAY, parse_step
from streamridge.streams.learnable import RowMaker, input_at, samples_at, samples_reading

# Steps before the first fit, in days: two of rows with a day behind each.
WARMUP_DAYS = 3
# Readings of a greater size would overflow when they are squared and summed.
LARGEST = 1e12
# A first fit needs at least this many rows.
LEAST_ROWS = 12


@dataclass(frozen=True)
class Ahead:
    """Is the next forecast with all that is needed to learn from it."""

    values: Vector
    below: Vector
    above: Vector
    row: Vector | None = None  # what a model saw, if its values are all trusted
    made: Made | None = None  # what a model made of it


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
        if isinstance(extras, str) or (preset is not None and extras):
            raise InvalidInputError(
                "extras must be a tuple of names, without a preset, which has its own, "
                f"got {extras!r}."
            )
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
        """Return the paper's model and settings: no differences, no guard, natural coordinates.

        Its period counts steps, not local time: a zone would shift it by an hour twice a year.
        """
        for name in ("tz", "extras"):
            if settings.get(name):
                raise InvalidInputError(
                    f"{name} must be left out with the paper's model, got {settings[name]!r}. "
                    "The default model can do with it."
                )
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
        skipped = 0 if self._model is None else self._model.learner.skipped_moves
        counts = {**self._counts, "skipped_moves": skipped}
        return {name: count for name, count in counts.items() if count}

    @property
    def costs(self) -> Costs:
        """Return the seconds spent on tuning, fitting and predicting."""
        return self._costs

    @property
    def has_readings(self) -> bool:
        """Tell whether there has been a reading."""
        return self._sensor.has_readings

    @property
    def next_time(self) -> np.datetime64:
        """Return the time that is forecast next, once there has been a reading."""
        return self._sensor.clock.known.times(np.array([self._sensor.next_step]))[0]

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
        if not self._sensor.has_readings:
            return Forecast.none(self._settings.horizon)
        ahead = self._look_ahead()
        steps = self._sensor.next_step + np.arange(self._settings.horizon)
        lower = np.maximum(ahead.values + ahead.below, self._sensor.floor)
        return Forecast(
            self._sensor.clock.known.times(steps),
            ahead.values.copy(),
            np.minimum(lower, ahead.values),
            ahead.values + ahead.above,
            "seasonal" if ahead.made is None else "model",
        )

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
        number = _require_value("value", value)
        columns = None if extras is None else self._require_extras(extras)
        step, on_grid = self._sensor.place(time)
        self._counts["readings"] += 1
        self._counts["off_grid"] += not on_grid
        if step < self._sensor.next_step:
            self._look_back(step, number)
            return
        self._fill_gap(step - self._sensor.next_step)
        if columns is not None:
            self._announce(columns)
        self._advance(number)

    def set(self, **values: float) -> None:
        """Set hyperparameters by name, `set(**{"drifting.rate": 1e-4})`, and refit at once."""
        self._require_model().assign(values)
        self._counts["fits"] += 1
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
            "clock": self._sensor.clock.state(),
            "counts": dict(self._counts),
            "fitted": self.has_model,
        }
        write_checkpoint(Path(path), header, self._state())

    @classmethod
    def load(cls, path: str | Path) -> Forecaster:
        """Return the forecaster that was saved; it goes on bit for bit."""
        header, state = read_checkpoint(Path(path))
        if header.get("kind") != "forecaster":
            raise StateError(f"{path} must hold a forecaster, got {header.get('kind')!r}.")
        try:
            forecaster = cls.of(Settings.of(header["settings"]))
            forecaster._resume(header, state)
        except StateError:
            raise
        except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
            raise StateError(f"{path} does not hold a whole forecaster: {error}") from None
        return forecaster

    def _start(self, settings: Settings) -> None:
        self._settings = settings
        self._sensor = Sensor(settings)
        self._calibration = Calibration.start(
            settings.horizon, settings.level, corrects=settings.preset.corrects
        )
        self._model = None
        self._next_try = 0  # steps before which no first fit is tried again
        self._late: tuple[tuple[int, int], ...] = ()  # late steps, and when to learn from them
        self._ahead = None  # the next forecast, once it has been asked for
        self._counts: Counter[str] = Counter()
        self._costs = Costs()

    def _announce(self, columns: Vector) -> None:
        """Keep the further columns of the next step."""
        self._sensor.timeline.announce(columns)
        self._ahead = None

    def _look_back(self, step: int, value: float) -> None:
        """Take a reading of a step that has passed, and learn from the rows it completes."""
        if np.isnan(value):
            return
        arrival = self._sensor.look_back(step, value)
        self._counts[arrival] += 1
        if arrival == "late":
            self._ahead = None
            due = self._sensor.next_step + self._settings.horizon - 2
            self._late = (*self._late, (step, due))
            self._learn_late()

    def _learn_late(self) -> None:
        """Learn from the rows that late readings completed, once all their labels are known."""
        if not self._late:
            return
        newest = self._sensor.next_step - 1
        if self._model is None:
            self._late = ()
            self._first_fit()
            return
        for step, due in self._late:
            if due <= newest:
                horizon = self._settings.horizon
                rows = samples_reading(self._features, self._sensor.past, step, horizon)
                self._model.admit(rows)
        self._late = tuple(each for each in self._late if each[1] > newest)

    def _fill_gap(self, count: int) -> None:
        """Take steps without a reading; from a day on all are filled alike, and at once."""
        alone = min(count, self._settings.day + 1 if self._sensor.has_readings else 0)
        for _ in range(alone):
            self._advance(np.nan)
        if self._sensor.has_readings and count > alone:
            self._sensor.leap(count - alone)
            self._counts["missing"] += count - alone
            self._calibration = self._calibration.pass_over()
            self._ahead = None
            if self._model is not None:
                self._model.pass_over(self._sensor.next_step - 1)

    def _advance(self, value: float) -> None:
        """Take the next step, with a reading or without."""
        if not self._sensor.has_readings:
            if not np.isnan(value):  # else there is nothing to fill the gap with
                self._sensor.push(value, forecast=value, band=None)
            return
        ahead = self._look_ahead()
        self._ahead = None
        if np.isnan(value):
            self._counts["missing"] += 1
            self._calibration = self._calibration.pass_over()
            self._sensor.push_gap(float(ahead.values[0]))
            if self._model is not None:
                self._model.pass_over(self._sensor.next_step - 1)
        else:
            self._take(value, ahead)
        self._learn_late()

    def _take(self, value: float, ahead: Ahead) -> None:
        """Learn from a reading and the forecast of it."""
        step, in_time = self._sensor.next_step, not self._sensor.silent
        doubting = self._settings.guard and self._model is not None
        band = max(ahead.above[0], -ahead.below[0]) if doubting else None
        verdict = self._sensor.push(value, float(ahead.values[0]), band)
        if verdict != "stuck":  # it would teach the bands that nothing ever changes
            self._calibration = self._calibration.observe(
                step, value, ahead.made if in_time else None, learns=verdict == "good"
            )
        if self._model is None:
            self._first_fit()
        elif verdict == "good":
            events = self._model.observe(step, ahead.row, value)
            self._counts.update(events)
            if "fits" in events:
                self._sensor.renew()
        else:
            self._model.pass_over(step)
            self._counts[verdict] += 1

    def _look_ahead(self) -> Ahead:
        """Return the forecast of the next step on, made once."""
        if self._ahead is None:
            if self._model is None or self._sensor.silent > self._settings.day:
                self._ahead = Ahead(*self._sensor.seasonal())
            else:
                self._ahead = self._modelled(self._model)
        return self._ahead

    def _modelled(self, model: SelfTuningModel) -> Ahead:
        step = self._sensor.next_step
        inputs, complete = input_at(self._features, self._sensor.past, step)
        raw, spreads = model.predict(step, inputs.x[0])
        spreads = np.maximum(spreads, self._sensor.least)
        made = self._calibration.made(step, self._sensor.bounded(raw), spreads)
        made = replace(made, values=self._sensor.bounded(made.values))
        below, above = self._calibration.bands.offsets(spreads)
        if self._sensor.silent:
            below, above = self._sensor.widened(below, above)
        return Ahead(made.values, below, above, inputs.x[0] if complete else None, made)

    def _first_fit(self) -> None:
        """Start the model once there is history enough."""
        timeline, horizon = self._sensor.timeline, self._settings.horizon
        if len(timeline) < max(self._settings.warmup, self._next_try):
            return
        self._next_try = len(timeline) + self._settings.update_every // 8 + 1
        if self._settings.guard:
            self._sensor.doubt_history()
        steps = np.arange(timeline.oldest, timeline.newest - horizon + 2)
        history = samples_at(self._features, self._sensor.past, steps, horizon)
        if len(history) < max(LEAST_ROWS, horizon):
            return
        try:
            self._model = SelfTuningModel(self._settings, history, self._costs)
        except NotPositiveDefiniteError:  # more readings may mend it
            self._counts["failed_refits"] += 1
            return
        self._counts["fits"] += 1
        self._sensor.renew()

    @property
    def _features(self) -> RowMaker:
        return self._settings.preset.features

    def _require_model(self) -> SelfTuningModel:
        if self._model is None:
            raise InvalidInputError(
                f"the model must have been fitted first, after {self._settings.warmup} steps; "
                f"there are {len(self._sensor.timeline)}."
            )
        return self._model

    def _require_extras(self, extras: Mapping[str, float] | None) -> Vector:
        names = self._settings.preset.features.extras
        if extras is not None and not isinstance(extras, Mapping):
            raise InvalidInputError(f"extras must be numbers by name, got {extras!r}.")
        given = {} if extras is None else dict(extras)
        if set(given) != set(names):
            wanted = ", ".join(names) or "nothing"
            raise InvalidInputError(f"extras must give {wanted}, got {', '.join(given) or 'none'}.")
        return np.array([_require_value(name, given[name]) for name in names])

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return all that changes, as arrays."""
        return joined(
            {
                "sensor": self._sensor.state(),
                "calibration": self._calibration.state(),
                "model": self._model.state() if self._model else {},
                "costs": {"seconds": np.array(astuple(self._costs))},
                "own": {
                    "late": np.array(self._late, dtype=np.int64).reshape(-1, 2),
                    "next_try": np.array(self._next_try),
                },
            }
        )

    def _resume(self, header: Mapping[str, Any], state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `save` has written."""
        self._counts = Counter(header["counts"])
        self._costs = Costs(*state["costs.seconds"].tolist())
        self._late = tuple((int(step), int(due)) for step, due in state["own.late"])
        self._next_try = int(state["own.next_try"])
        self._sensor.clock.restore(header["clock"])
        self._sensor.restore(part(state, "sensor"))
        self._calibration = self._calibration.restore(part(state, "calibration"))
        if header["fitted"]:
            learned = part(state, "model")
            self._model = SelfTuningModel.resumed(self._settings, learned, self._costs)


def _require_value(name: str, value: float | None) -> float:
    """Return a reading as a number, NaN if there is none."""
    # pandas has missing values of its own, which are not even equal to themselves.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, float | np.floating) and np.isnan(value):
        return np.nan
    number = require_number(name, value)
    if abs(number) > LARGEST:
        raise InvalidInputError(f"{name} must be at most {LARGEST:g} in size, got {value}.")
    return number
