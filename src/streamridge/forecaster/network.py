"""Many sensors on one grid of times, whose forecasts help each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part, require_count
from streamridge.errors import InvalidInputError, StateError, listed, shown, warn
from streamridge.files.atomic import replacing
from streamridge.files.checkpoint import UNREADABLE, decoded, encoded, read_content
from streamridge.files.frames import make_frame
from streamridge.files.reading import read_readings, read_series
from streamridge.files.reading_options import ReadingOptions, require_options
from streamridge.forecaster.arguments import SharedArguments
from streamridge.forecaster.candidates import Candidates, NeighbourChoice
from streamridge.forecaster.forecast import Forecast, Level, require_levels
from streamridge.forecaster.forecast_table import forecast_columns, of_levels, with_near
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import starting_at
from streamridge.forecaster.neighbours import Intervals, Neighbours
from streamridge.forecaster.new_rows import require_rate, row_times
from streamridge.forecaster.plausibility import BoundPair
from streamridge.forecaster.relevance import Relevance
from streamridge.forecaster.sensor_group import SensorGroup, require_engine
from streamridge.forecaster.settings import (
    Settings,
    require_path,
    require_reading,
    require_readings,
)
from streamridge.forecaster.sizes import SizeName
from streamridge.series.holidays import GivenHolidays, parse_holidays
from streamridge.series.lengths import step_name
from streamridge.series.sensor_clock import SensorClock
from streamridge.series.series import Series

# A new sensor starts at the hyperparameters of the others if there are at least this many.
LEAST_OTHERS = 3
KIND = "network"

T = TypeVar("T")


class NetworkArguments(SharedArguments, total=False):
    """The settings that all sensors of a network share; see `Forecaster`."""

    tz: str | None
    model: SizeName
    horizon: int
    warmup: int | None


class Network(SensorGroup):
    """Forecasters of many sensors with the same step, which are corrected by their neighbours.

    Each sensor has a `Forecaster` of its own. The latest errors of neighbouring sensors correct its
    forecasts: see `streamridge.forecaster.neighbours`. All sensors take their steps together.

    Parameters
    ----------
    step
        Time between readings, such as "15min"; or a whole number, the step of an integer index.
    sensors
        Names of sensors to begin with. A new name in `observe` or `update` adds a sensor.
    neighbours
        Which sensors may correct each other. "auto" finds neighbours among all sensors, "none" has
        no corrections. A mapping from a sensor to a list of sensors names the candidates. A mapping
        from a sensor to its position, a pair of numbers, lets the 20 nearest sensors be candidates.
    engine
        A `concurrent.futures.Executor` for refits, such as a pool of processes; None refits in this
        process. The results are the same.
    settings
        Parameters of `Forecaster`, except `sensor` and `extras`. With `defer_refits`, only `refit`
        refits. Otherwise `observe` refits the sensors that are due, a few at each step, so that
        refits of many sensors spread over the day. A first fit is made at once.

    Examples
    --------
    >>> network = Network("1h", train_size=100)
    >>> for hour in range(80):
    ...     time = np.datetime64("2021-06-13T00:00") + np.timedelta64(hour, "h")
    ...     flow = 100.0 + hour + 50 * np.sin(2 * np.pi * hour / 24)
    ...     network.observe(time, {"north": flow, "south": 2 * flow})
    >>> network.sensors, list(network.predict().columns)
    (('north', 'south'), ['sensor', 'time', 'value', 'lower', 'upper'])
    """

    def __init__(
        self,
        step: str | int | timedelta = "15min",
        *,
        sensors: Iterable[str] = (),
        neighbours: NeighbourChoice = "auto",
        engine: Executor | None = None,
        **settings: Unpack[NetworkArguments],
    ) -> None:
        require_options("Network", settings, tuple(NetworkArguments.__annotations__))
        given: dict[str, Any] = dict(settings)
        self._defer_refits = bool(given.get("defer_refits", False))
        self._begin(Forecaster(step, **given).settings, neighbours)
        self.engine = require_engine(engine)
        self._add_all(_names(sensors))

    def _begin(self, settings: Settings, neighbours: NeighbourChoice) -> None:
        """Begin without sensors."""
        SensorGroup.__init__(self)
        self._settings = replace(settings, defer_refits=True)
        self._candidates = Candidates(neighbours)
        self._layer = Neighbours.of(settings) if self._candidates.choice != "none" else None
        self._clock = SensorClock(settings.step, settings.tz)

    @classmethod
    def start(
        cls,
        data: Any,
        *,
        step: str | int | timedelta | None = None,
        neighbours: NeighbourChoice = "auto",
        engine: Executor | None = None,
        **settings: Unpack[NetworkArguments],
    ) -> Network:
        """Return a network whose sensors are fitted to their histories.

        Neighbours are learned from here on, within days.

        Parameters
        ----------
        data
            The readings of all sensors: a long or wide frame, a dict of series, or a file.
        step
            Time between readings; by default it is inferred, and must be the same for all sensors.
        neighbours, engine, settings
            As for `Network`.
        """
        read = read_series(data, ReadingOptions(step=step, tz=settings.get("tz")))
        warn((*map(str, read.left_out), *read.notes))
        steps = {series.clock.step: name for name, series in read.series.items()}
        if len(steps) > 1:
            raise InvalidInputError(
                "all sensors of a network must have the same step, got "
                f"{listed([f'{step_name(each)} ({name})' for each, name in steps.items()])}. "
                "Pass step, or make a network for each."
            )
        network = cls(next(iter(steps)), neighbours=neighbours, engine=engine, **settings)
        network._add_histories(read.series)
        warn((f"{name}: {reason}" for name, reason in network.failures.items()), RuntimeWarning)
        return network

    def _add_histories(self, histories: Mapping[str, Series]) -> None:
        for name, series in histories.items():
            self._sensors[name] = Forecaster.from_settings(
                replace(self._settings, sensor=name), series
            )
        first = next(iter(histories.values()))
        _require_same_grid(first, histories.values())
        self._clock.adopt(first.clock, first.time_format)
        self._newest = max(each.start + len(each) - 1 for each in histories.values())
        self._resize([-1] * len(self._sensors))
        for name in self.sensors:
            self._attempt(name, partial(_skip_to, newest=self._time_of(self._newest)))
        if not self._defer_refits:
            self.refit()

    def __repr__(self) -> str:
        return (
            f"Network(step={step_name(self._settings.step)!r}, sensors={len(self)}, "
            f"horizon={self._settings.horizon}, refits due={len(self.refit_due)}, "
            f"failed={len(self.failures)})"
        )

    def add(
        self,
        sensor: str,
        *,
        bounds: BoundPair | None = None,
        holidays: GivenHolidays | None = None,
    ) -> None:
        """Add a sensor, which starts at the typical hyperparameters of the others.

        Parameters
        ----------
        sensor
            Its name. A sensor that failed may be added again.
        bounds, holidays
            Settings of `Forecaster` that differ from the network's; None for the network's.
        """
        self._require_new(sensor)
        settings = self._settings
        if bounds is not None:
            settings = replace(settings, bounds=bounds)
        if holidays is not None:
            settings = replace(settings, holidays=parse_holidays(holidays))
        if sensor in self._sensors:
            self.remove(sensor)
        self._add_all([sensor], settings)

    def _require_new(self, sensor: object) -> None:
        """Raise unless this can be the name of a new sensor, or of one that has failed."""
        if not isinstance(sensor, str) or not sensor.strip():
            raise InvalidInputError(f"sensor must be a name, got {shown(sensor)}.")
        if sensor in self._sensors and sensor not in self.failures:
            raise InvalidInputError(f"sensor must be new, got {sensor!r}, which the network has.")

    def _add_all(self, sensors: Sequence[str], settings: Settings | None = None) -> None:
        """Add new sensors, all checked before the first is added."""
        for name in sensors:
            self._require_new(name)
        own = settings or self._settings
        typical = starting_at(self._typical(own), own) if sensors else own
        for name in sensors:
            forecaster = Forecaster.from_settings(replace(typical, sensor=name))
            if self._clock.clock is not None and self._clock.time_format is not None:
                forecaster._history.clock.adopt(self._clock.clock, self._clock.time_format)
            self._sensors[name] = forecaster
        if sensors:
            self._resize([*range(len(self) - len(sensors)), *[-1] * len(sensors)])

    def remove(self, sensor: str) -> None:
        """Remove a sensor; the others forget it as a neighbour."""
        self[sensor]  # raises if there is no such sensor
        place = self.sensors.index(sensor)
        for each in (self._sensors, self._due, self.failures):
            each.pop(sensor, None)
        self._resize([each for each in range(len(self) + 1) if each != place])

    def _typical(self, settings: Settings) -> dict[str, float]:
        """Return the medians of the others' hyperparameters, in logarithms where positive.

        There are none before three sensors are fitted.
        """
        space = settings.preset.joint.space
        fitted = [each.hyperparameters for each in self._sensors.values() if each.tuning.has_model]
        same = [each for each in fitted if tuple(each) == space.names]
        if len(same) < LEAST_OTHERS:
            return {}
        values = np.array([list(each.values()) for each in same])
        return space.named(space.feasible.project(medians(values)))

    def _resize(self, places: Sequence[int]) -> None:
        if self._layer is not None:
            self._layer.resize(places)

    def observe(self, time: object, values: Mapping[str, float | None]) -> None:
        """Take the next step with the readings of one time; after an error, nothing has changed.

        Parameters
        ----------
        time
            The time of the readings, as `Forecaster.observe` takes it.
        values
            Readings by sensor; pass all readings of one time together. A sensor without one, or
            with None, has a gap at this time, until a later call with the same time fills it: the
            reading is then late, and no refit is counted from it. A new name adds a sensor.
        """
        if not isinstance(values, Mapping):
            raise InvalidInputError(
                f"values must be a mapping from sensors to readings, got {shown(values)}. "
                "Use update for frames."
            )
        readings = {name: require_reading(str(name), value) for name, value in values.items()}
        clock = copy(self._clock)
        step, _ = clock.place(time, self._newest)
        self._add_all([name for name in readings if name not in self._sensors])
        self._clock = clock
        if self._newest is not None and step <= self._newest:
            self._add_late(time, self._newest - step, readings)
            return
        self._advance(time, step, readings)
        if not self._defer_refits:
            self._refit_some(self._settings.update_every)

    def update(self, data: Any) -> None:
        """Take steps with the rows of a long or wide frame, in the order of their times.

        Parameters
        ----------
        data
            New readings of some sensors or all: a frame of pandas, polars or pyarrow, a dict of
            series, or a file.
        """
        for time, values in self._new_rows(data):
            self.observe(time, values)

    def _new_rows(self, data: Any) -> list[tuple[Any, dict[str, float]]]:
        """Return the time and the readings of each step, in order; raise if one is refused.

        Readings of one step may have different times: jitter, or the repeated hour in autumn.
        """
        collector = read_readings(data, ReadingOptions(tz=self._settings.tz))
        warn(collector.notes)
        rows: dict[int, tuple[Any, dict[str, float]]] = {}
        clock = copy(self._clock)
        for name in collector.every_name:
            readings, newest = collector.take(name), self._newest
            require_readings(name, readings.values)
            require_rate(readings, self._settings)
            for time, value in zip(row_times(readings), readings.values.tolist(), strict=True):
                step, _ = clock.place(time, newest)
                newest = step if newest is None else max(newest, step)
                row = rows.setdefault(step, (time, {}))[1]
                if isnan(row.get(name, np.nan)):
                    row[name] = value
        return [rows[step] for step in sorted(rows)]

    def forecasts(
        self, sensors: Iterable[str] | None = None, level: Level | None = None
    ) -> dict[str, Forecast]:
        """Return the forecasts of the next steps by sensor; this changes nothing.

        Parameters
        ----------
        sensors
            The names of some sensors; all by default. Sensors without a reading, and failed ones,
            are left out if none are named.
        level
            The level of the intervals, or several; the network's own by default.
        """
        made, own = self._own_forecasts(), self._settings.levels
        levels = own if level is None else require_levels(level)
        if levels != own:  # the first level shows the sizes of errors
            every = tuple(dict.fromkeys((own[0], *levels)))
            made = self._own_forecasts(every)
        corrected = self._corrected(made)
        if levels != own:
            corrected = {name: of_levels(each, levels) for name, each in corrected.items()}
        if sensors is None:
            return corrected
        return {name: self._known_forecast(corrected, name) for name in _names(sensors)}

    def predict(
        self,
        horizon: int | None = None,
        *,
        sensors: Iterable[str] | None = None,
        level: Level | None = None,
        backend: str | None = None,
    ) -> Any:
        """Return the forecasts of the next steps as one frame; this changes nothing.

        Parameters
        ----------
        horizon
            The number of steps, at most the network's; all by default.
        sensors, level
            As for `forecasts`.
        backend
            The library of the frame: "pandas", "polars" or "pyarrow"; by default one that is
            installed.

        Returns
        -------
        frame
            The columns "sensor", "time", "value", "lower" and "upper"; see `streamridge.forecast`.
        """
        steps = self._settings.horizon if horizon is None else horizon
        require_count("horizon", steps, most=self._settings.horizon)
        made = [each.first(steps) for each in self.forecasts(sensors, level).values()]
        if not made:
            failed = "".join(f" {name} failed: {why}." for name, why in self.failures.items())
            raise InvalidInputError(f"a sensor must have a forecast, got none.{failed}")
        return make_frame(forecast_columns(made), backend)

    def neighbours_of(self, sensor: str) -> dict[str, float]:
        """Return the neighbours of a sensor, and how far each moves its forecasts as a rule.

        The unit is the expected size of an error: 0.5 moves a forecast by half of that. The
        strongest neighbour comes first.
        """
        self[sensor]  # raises if there is no such sensor
        place = self.sensors.index(sensor)
        if self._layer is None:
            return {}
        return self._layer.heard(self.sensors)[place]

    def relevance(self, sensor: str) -> Relevance:
        """Return which features and which neighbours the forecasts of a sensor use."""
        return replace(self[sensor].relevance(), neighbours=self.neighbours_of(sensor))

    def save(self, path: str | Path) -> None:
        """Save the whole network to one file, which is written completely or not at all."""
        file_path, content = require_path(path), self.to_bytes()
        with replacing(file_path) as file:
            file.write(content)

    @classmethod
    def load(cls, path: str | Path, engine: Executor | None = None) -> Network:
        """Return the network that was saved; it continues bit for bit."""
        file_path = require_path(path)
        return cls._loaded(read_content(file_path), str(file_path), engine)

    def to_bytes(self) -> bytes:
        """Return the network as bytes, for `from_bytes`."""
        header = {
            "kind": KIND,
            "settings": self._settings.described(),
            "defer_refits": self._defer_refits,
            "neighbours": self._candidates.choice,
            "sensors": list(self.sensors),
            "clock": self._clock.state(),
            "newest": self._newest,
            "due": self._due,
            "failures": self.failures,
        }
        arrays: dict[str, NDArray[Any]] = {
            f"sensor.{at}": np.frombuffer(each.to_bytes(), dtype=np.uint8)
            for at, each in enumerate(self._sensors.values())
        }
        layer = {} if self._layer is None else self._layer.state()
        return encoded(header, arrays | joined({"neighbours": layer}))

    @classmethod
    def from_bytes(cls, content: bytes, engine: Executor | None = None) -> Network:
        """Return the network that `to_bytes` was called on; it continues bit for bit."""
        return cls._loaded(content, "content", engine)

    @classmethod
    def _loaded(cls, content: bytes, name: str, engine: Executor | None) -> Network:
        header, arrays = decoded(content, name)
        if header.get("kind") != KIND:
            raise StateError(f"{name} must hold a network, got a {header.get('kind')!r}.")
        network = cls.__new__(cls)
        try:
            network._begin(Settings.of(header["settings"]), header["neighbours"])
            network._defer_refits, network.engine = header["defer_refits"], engine
            network._clock.restore(header["clock"])
            network._newest, network._due = header["newest"], header["due"]
            network.failures = header["failures"]
            network._sensors = {
                sensor: Forecaster.from_bytes(arrays[f"sensor.{at}"].tobytes())
                for at, sensor in enumerate(header["sensors"])
            }
            if network._layer is not None:
                network._layer.restore(part(arrays, "neighbours"))
        except StateError:
            raise
        except UNREADABLE as error:
            raise StateError(f"{name} does not hold a whole network: {error}") from None
        return network

    def _known_forecast(self, made: Mapping[str, Forecast], sensor: str) -> Forecast:
        """Return the forecast of a named sensor; raise if there is none."""
        if sensor in made:
            return made[sensor]
        self[sensor]  # raises if there is no such sensor
        reason = self.failures.get(sensor, "it has no reading yet")
        raise InvalidInputError(f"{sensor}: there must be a forecast, but {reason}.")

    def _own_forecasts(self, level: Level | None = None) -> dict[str, Forecast]:
        """Return the forecasts of all sensors that have a reading, before corrections."""
        every = {
            name: self._attempt(name, lambda each: each.predict(level=level))
            for name, forecaster in self._sensors.items()
            if forecaster.next_time is not None
        }
        return {name: made for name, made in every.items() if made is not None}

    def _stacked(self, made: Mapping[str, Forecast]) -> Intervals:
        """Return the near forecasts of all sensors and the ends of their intervals."""
        near = 1 if self._layer is None else self._layer.horizon
        levels = len(next(iter(made.values())).levels) if made else 1
        values = np.full((len(self), near), np.nan)
        lower, upper = np.full((2, len(self), near, levels), np.nan)
        for place, (name, forecaster) in enumerate(self._sensors.items()):
            each, next_step = made.get(name), forecaster._history.next_step
            if each is not None and self._newest is not None and next_step == self._newest + 1:
                values[place] = each.value[:near]
                lower[place] = each.lower[:near].reshape(near, -1)
                upper[place] = each.upper[:near].reshape(near, -1)
        return values, lower, upper

    def _corrected(self, made: dict[str, Forecast]) -> dict[str, Forecast]:
        """Return forecasts after the corrections by neighbours, which move near steps only."""
        if self._layer is None:
            return made
        values, lower, upper = self._layer.corrected(*self._stacked(made))
        places = {name: place for place, name in enumerate(self._sensors)}
        return {
            name: each
            if np.isnan(values[at, 0])
            else with_near(each, values[at], lower[at], upper[at])
            for name, each in made.items()
            for at in [places[name]]
        }

    def _advance(self, time: object, step: int, readings: Mapping[str, float]) -> None:
        """Take the step of a time, and the steps without readings before it."""
        layer, stacked = self._layer, self._stacked({})
        if layer is not None and self._newest is not None:
            if step == self._newest + 1:
                stacked = self._stacked(self._own_forecasts())
            layer.skip(step - self._newest - 1)
        for name in self._sensors:
            self._attempt(name, partial(_step, time=time, value=readings.get(name, np.nan)))
        self._newest = step
        if layer is not None:
            layer.observe(np.array([self._taken(name, 0) for name in self._sensors]), *stacked)
            layer.choose(lambda place: self._candidates.of(self.sensors[place], self.sensors))
        self._note_due()

    def _add_late(self, time: object, back: int, readings: Mapping[str, float]) -> None:
        """Add readings of the newest step or of an earlier one."""
        for place, name in enumerate(self._sensors):
            value = readings.get(name, np.nan)
            if isnan(value):
                continue
            self._attempt(name, partial(_step, time=time, value=value))
            if self._newest is not None:  # a new sensor begins before the newest step
                self._attempt(name, partial(_skip_to, newest=self._time_of(self._newest)))
            taken = self._taken(name, back)
            if self._layer is not None and not isnan(taken):
                self._layer.add_late(place, back, taken)

    def _taken(self, name: str, back: int) -> float:
        """Return the reading `back` steps ago that a sensor learned from; NaN if there is none."""
        history = self._sensors[name]._history
        if (
            name in self.failures
            or not history.has_readings
            or history.timeline.newest != self._newest
        ):
            return np.nan
        return float(history.timeline.last_readings(back + 1)[0])

    def _time_of(self, step: int) -> Any:
        """Return the time of a step, as users write times."""
        times = self._clock.known.times(np.array([step]))
        if isinstance(self._settings.step, int) or self._clock.time_format is None:
            return times[0]
        return self._clock.time_format.datetimes(times)[0]


def _step(forecaster: Forecaster, time: object, value: float) -> None:
    """Let a forecaster take a step; one without a reading yet waits for its first."""
    if forecaster.next_time is not None or not isnan(value):
        forecaster.observe(time, value)


def _names(sensors: Iterable[str]) -> list[str]:
    """Return names of sensors, each once; one name may stand alone."""
    return [sensors] if isinstance(sensors, str) else list(dict.fromkeys(sensors))


def _require_same_grid(first: Series, every: Iterable[Series]) -> None:
    """Raise unless the steps of all series begin at the same times."""
    for each in every:
        if (each.clock.times(np.zeros(1, int)) != first.clock.times(np.zeros(1, int))).any():
            raise InvalidInputError(
                f"all sensors of a network must be read at the same times, got {first.sensor!r} "
                f"and {each.sensor!r} at different parts of a step. Round the times first."
            )


def _skip_to(forecaster: Forecaster, newest: object) -> None:
    """Let a forecaster skip the steps up to a time that it has no readings of."""
    if forecaster.next_time is not None:
        forecaster.observe(newest, None)


def medians(values: Matrix) -> Vector:
    """Return the median of each column, in logarithms if all of its values are positive."""
    positive = (values > 0).all(axis=0)
    logs = np.log(np.where(positive, values, 1.0))
    return np.where(positive, np.exp(np.median(logs, axis=0)), np.median(values, axis=0))
