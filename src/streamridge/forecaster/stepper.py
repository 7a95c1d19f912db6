"""The inner loop of a forecaster: at each step, forecast, take a reading or a gap, and learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector
from streamridge.errors import FitError
from streamridge.features.base import RowMaker, input_at, samples_at, samples_reading
from streamridge.forecaster.calibration import Calibration, Made
from streamridge.forecaster.self_tuning import SelfTuningModel
from streamridge.forecaster.sensor import Sensor
from streamridge.forecaster.settings import Settings
from streamridge.learners.costs import Costs
from streamridge.learners.state import joined, part

# A first fit needs at least this many rows.
LEAST_ROWS = 12


@dataclass(frozen=True)
class Ahead:
    """The next forecast, with all that is needed to learn from it."""

    values: Vector
    below: Vector
    above: Vector
    row: Vector | None = None  # the model's input, if all its values are trusted
    made: Made | None = None  # the model's forecast, if there is a model


class Stepper:
    """A walk along a sensor, with its past, the model that learns from it, and the model's errors.

    Parameters
    ----------
    settings
        Settings of the forecaster. Readings are checked before they come here.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sensor = Sensor(settings)
        self.model: SelfTuningModel | None = None
        self.counts: Counter[str] = Counter()
        self.costs = Costs()
        self._calibration = Calibration.start(
            settings.horizon, settings.level, corrects=settings.preset.corrects
        )
        self._next_try = 0  # steps at which a first fit is tried again
        self._late: tuple[tuple[int, int], ...] = ()  # steps read late, and when to learn from each
        self._ahead: dict[bytes, Ahead] = {}  # the next forecast, by its further columns

    def changed(self) -> None:
        """Forget the next forecasts: the model has been changed from outside."""
        self._ahead = {}

    def look_back(self, step: int, value: float) -> None:
        """Take a reading of a step that has passed, and learn from the rows it completes."""
        if np.isnan(value):
            return
        arrival = self.sensor.look_back(step, value)
        self.counts[arrival] += 1
        if arrival == "late":
            self._ahead = {}
            due = self.sensor.next_step + self._settings.horizon - 2
            self._late = (*self._late, (step, due))
            self._learn_late()

    def _learn_late(self) -> None:
        """Learn from the rows that late readings completed, once all their labels are known."""
        if not self._late:
            return
        newest = self.sensor.next_step - 1
        if self.model is None:
            self._late = ()
            self._first_fit()
            return
        for step, due in self._late:
            if due <= newest:
                horizon = self._settings.horizon
                rows = samples_reading(self._features, self.sensor.past, step, horizon)
                self.model.admit(rows)
        self._late = tuple(each for each in self._late if each[1] > newest)

    def fill_gap(self, count: int) -> None:
        """Take `count` steps without a reading; those after a season are filled at once."""
        alone = min(count, self._settings.patience + 1 if self.sensor.has_readings else 0)
        for _ in range(alone):
            self.advance(np.nan, None)
        if self.sensor.has_readings and count > alone:
            self.sensor.leap(count - alone)
            self.counts["missing"] += count - alone
            self._calibration = self._calibration.pass_over()
            self._ahead = {}
            if self.model is not None:
                self.model.learner.pass_over(self.sensor.next_step - 1)

    def advance(self, value: float, columns: Vector | None) -> None:
        """Take the next step; the value is NaN without a reading, `columns` None if not known."""
        if not self.sensor.has_readings:
            if not np.isnan(value):  # else there is nothing to fill the gap with
                self.sensor.push(value, value, None, columns)
            return
        ahead = self.look_ahead(columns)
        self._ahead = {}
        if np.isnan(value):
            self.counts["missing"] += 1
            self._calibration = self._calibration.pass_over()
            self.sensor.push_gap(float(ahead.values[0]), columns)
            if self.model is not None:
                self.model.learner.pass_over(self.sensor.next_step - 1)
        else:
            self._take(value, ahead, columns)
        self._learn_late()

    def _take(self, value: float, ahead: Ahead, columns: Vector | None) -> None:
        """Learn from a reading and its forecast."""
        step, in_time = self.sensor.next_step, not self.sensor.silent
        doubting = self._settings.guard and self.model is not None
        band = max(ahead.above[0], -ahead.below[0]) if doubting else None
        verdict = self.sensor.push(value, float(ahead.values[0]), band, columns)
        if verdict != "stuck":  # it would teach the bands that nothing ever changes
            self._calibration = self._calibration.observe(
                step, value, ahead.made if in_time else None, learns=verdict == "good"
            )
        if self.model is None:
            self._first_fit()
        elif verdict == "good":
            events = self.model.observe(step, ahead.row, value)
            self.counts.update(events)
            if "fits" in events:
                self.sensor.renew()
        else:
            self.model.learner.pass_over(step)
            self.counts[verdict] += 1

    def look_ahead(self, columns: Vector | None) -> Ahead:
        """Return the forecast from the next step on, given its further columns; computed once."""
        key = b"" if columns is None else columns.tobytes()
        if key not in self._ahead:
            if self.model is None or self.sensor.silent > self._settings.patience:
                self._ahead = {key: Ahead(*self.sensor.seasonal())}
            else:
                self._ahead = {key: self._modelled(self.model, columns)}
        return self._ahead[key]

    def _modelled(self, model: SelfTuningModel, columns: Vector | None) -> Ahead:
        step = self.sensor.next_step
        inputs, complete = input_at(self._features, self.sensor.past_before(columns), step)
        raw, spreads = model.learner.predict_with_spread(step, inputs.x[0])
        spreads = np.maximum(spreads, self.sensor.least)
        made = self._calibration.made(step, self.sensor.bounded(raw), spreads)
        made = replace(made, values=self.sensor.bounded(made.values))
        below, above = self._calibration.bands.offsets(spreads)
        if self.sensor.silent:
            below, above = self.sensor.widened(below, above)
        return Ahead(made.values, below, above, inputs.x[0] if complete else None, made)

    def _first_fit(self) -> None:
        """Start the model once there is enough history."""
        timeline, horizon = self.sensor.timeline, self._settings.horizon
        if len(timeline) < max(self._settings.warmup, self._next_try):
            return
        self._next_try = len(timeline) + self._settings.update_every // 8 + 1
        if self._settings.guard:
            self.sensor.doubt_history()
        steps = np.arange(timeline.oldest, timeline.newest - horizon + 2)
        history = samples_at(self._features, self.sensor.past, steps, horizon)
        if len(history) < max(LEAST_ROWS, horizon):
            return
        try:
            self.model = SelfTuningModel.started(self._settings, history, self.costs)
        except FitError:  # it may succeed with more readings
            self.counts["failed_refits"] += 1
            return
        self.counts["fits"] += 1
        self.sensor.renew()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, except the counts and the clock, as arrays."""
        return joined(
            {
                "sensor": self.sensor.state(),
                "calibration": self._calibration.state(),
                "model": self.model.state() if self.model else {},
                "costs": {"seconds": np.array(astuple(self.costs))},
                "own": {
                    "late": np.array(self._late, dtype=np.int64).reshape(-1, 2),
                    "next_try": np.array(self._next_try),
                },
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]], *, fitted: bool) -> None:
        """Continue from the state of a stepper with the same settings."""
        self.costs = Costs(*state["costs.seconds"].tolist())
        self._late = tuple((int(step), int(due)) for step, due in state["own.late"])
        self._next_try = int(state["own.next_try"])
        self.sensor.restore(part(state, "sensor"))
        self._calibration = self._calibration.restore(part(state, "calibration"))
        if fitted:
            learned = part(state, "model")
            self.model = SelfTuningModel.resumed(self._settings, learned, self.costs)

    @property
    def _features(self) -> RowMaker:
        return self._settings.preset.features
