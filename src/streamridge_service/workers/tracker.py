"""One sensor and its position in the log: readings are processed as they arrive.

The state of a tracker is a function of the sensor's log alone: of the readings in the order of
`steps.in_order`, and of its refit points. It can be dropped at any time, and loaded again from its
last snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import numpy as np

from streamridge import Forecast, Forecaster
from streamridge.errors import InvalidInputError, StreamRidgeError
from streamridge_service.ledger.records import (
    Action,
    IssuedForecast,
    Kind,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.plan import NEVER, Declaration, Plan
from streamridge_service.workers.error_scores import anomaly_score
from streamridge_service.workers.sensor_state import (
    SavedState,
    SensorSummary,
    refit_or_raise,
    reproducible_bytes,
    tuning_of,
)
from streamridge_service.workers.steps import LogItem, combined_value, fills_step, in_order, is_late

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
# A sensor is forecast for this long after its last step.
FORECAST_FOR = 8 * DAY


class OutOfOrderError(Exception):
    """A reading comes before one that was processed: the tracker must be loaded again."""


class ParkedTracker(msgspec.Struct, frozen=True):
    """The state of a tracker that its snapshot does not hold."""

    changes: bytes  # of the forecaster since its last refit; before the first one, all of it
    summary: SensorSummary
    seq: int
    point: RefitPoint | None
    restart: Literal["", "start", "reset"]
    failed_actions: dict[int, str]
    open_step: dict[int, StoredReading]
    pending: SavedState | None  # its state, too, without what the snapshot holds


class Tracker:
    """One sensor: its forecaster, and its position in the log."""

    def __init__(self, sensor: SensorRow, plan: Plan) -> None:
        self.declared = msgspec.json.decode(sensor.declared, type=Declaration)
        self.sensor, self.plan = sensor, plan.of(self.declared)
        self.settings = plan.settings(self.declared)
        self.forecaster = Forecaster.from_settings(self.settings)
        self.summary = SensorSummary()
        self.seq = 0  # the last arrival number that was processed
        self.point: RefitPoint | None = None
        # Whether a new forecaster is needed: "start" keeps hyperparameters, "reset" does not.
        self.restart: Literal["", "start", "reset"] = ""
        self.failed_actions: dict[int, str] = {}  # since the refit point, with the reasons
        # The last step, and its reading if the model uses it.
        self.learned: tuple[int, float | None] = NEVER, None
        self._released = False  # whether the memory of the fit was released since its last use
        # Readings of the newest step by time, if a rule combines them.
        self._open_step: dict[int, StoredReading] = {}
        self._pending: SavedState | None = None
        # The time since which a refit is awaited, and the step of that refit.
        self._next_refit: tuple[int, int] | None = None

    @classmethod
    def resumed(cls, sensor: SensorRow, plan: Plan, snapshot: Snapshot) -> Tracker:
        """Return the tracker of a snapshot, at its refit point."""
        tracker = cls(sensor, plan)
        tracker.forecaster = Forecaster.from_bytes(snapshot.state)
        tracker.summary = msgspec.json.decode(snapshot.summary, type=SensorSummary)
        tracker.point = snapshot.point
        tracker.seq = snapshot.point.seq
        return tracker

    @classmethod
    def unparked(
        cls, sensor: SensorRow, plan: Plan, parked: ParkedTracker, snapshot: Snapshot | None
    ) -> Tracker:
        """Return a parked tracker as it was; `snapshot` is the one of its refit point."""
        tracker, whole = cls(sensor, plan), parked.changes if snapshot is None else snapshot.state
        tracker.forecaster = Forecaster.from_bytes(whole, parked.changes)
        tracker.summary, tracker.seq, tracker.point = parked.summary, parked.seq, parked.point
        tracker.restart, tracker.failed_actions = parked.restart, parked.failed_actions
        tracker._open_step, pending = parked.open_step, parked.pending
        if pending is not None:
            whole = pending.state if snapshot is None else snapshot.state
            state = reproducible_bytes(Forecaster.from_bytes(whole, pending.state))
            tracker._pending = msgspec.structs.replace(pending, state=state)
        return tracker

    def parked(self) -> ParkedTracker:
        """Return the state that the last snapshot does not hold, for `unparked`."""
        pending = self._pending
        if pending is not None:
            changes = Forecaster.from_bytes(pending.state).to_bytes(since_refit=True)
            pending = msgspec.structs.replace(pending, state=changes)
        return ParkedTracker(
            self.forecaster.to_bytes(since_refit=True),
            self.summary,
            self.seq,
            self.point,
            self.restart,
            self.failed_actions,
            self._open_step,
            pending,
        )

    @property
    def has_readings(self) -> bool:
        """Return whether the forecaster has a reading."""
        return self.forecaster.next_time is not None

    @property
    def fit_seq(self) -> int:
        """Return the arrival number of the last refit point; zero before the first."""
        return 0 if self.point is None else self.point.seq

    @property
    def newest(self) -> int:
        """Return the time of the newest step that has a reading, processed or still open."""
        if not self._open_step:
            return self.summary.newest
        return max(self.summary.newest, self.plan.step_of(max(self._open_step)))

    def catch_up(self, items: Iterable[LogItem]) -> list[IssuedForecast]:
        """Process all items since the refit point in order; return the forecasts.

        Actions that fail are skipped, as they were the first time.
        """
        known = sorted(items, key=lambda item: item.seq)
        waiting = {item.seq for item in known}
        forecasts = []
        for item in in_order(known, self.newest, self.plan):
            waiting.discard(item.seq)
            try:
                forecasts += self._process(item, waiting)
            except StreamRidgeError as error:
                self.seq = max(self.seq, item.seq)
                self.failed_actions[item.seq] = error.reason
        return forecasts

    def process(self, item: LogItem) -> list[IssuedForecast]:
        """Process an item that has just arrived; return the forecast, if there is one.

        Raises `OutOfOrderError`, and changes nothing, if it comes before a processed step.
        """
        if isinstance(item, StoredReading):
            step, newest = self.plan.step_of(item.time), self.newest
            is_behind = step < newest or (step == newest and fills_step(item, self.plan))
            if is_behind and not is_late(item, step, newest, self.plan):
                raise OutOfOrderError
        return self._process(item, set())

    def _process(self, item: LogItem, waiting: set[int]) -> list[IssuedForecast]:
        """Process one item; `waiting` are the arrival numbers of items that come after it."""
        if isinstance(item, StoredReading) and item.is_live and self.plan.rule:
            return self._combine(item, waiting)
        self.seq = max(self.seq, item.seq)
        if isinstance(item, Action):
            self.apply(item)
            return []
        if item.is_live:
            return self._observe(item, waiting)
        if item.kind != Kind.HELD:
            self.restart = self.restart or "start"
        return []

    def _observe(self, reading: StoredReading, waiting: set[int]) -> list[IssuedForecast]:
        """Process the reading of the next step, or of an earlier one."""
        step = self.plan.step_of(reading.time)
        if step > self.summary.newest:
            self._learn(step, reading.value, waiting)
            return [self.forecast(reading.seq)]
        self.forecaster.observe(to_datetime(step), reading.value)  # late, duplicate or conflict
        return []

    def _combine(self, reading: StoredReading, waiting: set[int]) -> list[IssuedForecast]:
        """Add a reading to its step; the first reading of a later step closes the step before."""
        step, newest, forecasts = self.plan.step_of(reading.time), self.newest, []
        if step > newest and self._open_step:
            value = combined_value(list(self._open_step.values()), self.plan.rule)
            self._open_step = {}
            self._learn(newest, value, {*waiting, reading.seq})
            forecasts = [self.forecast(reading.seq)]
        self.seq = max(self.seq, reading.seq)
        if step >= newest:  # otherwise its step is closed
            self._open_step[reading.time] = reading
        return forecasts

    def _learn(self, step: int, value: float | None, waiting: set[int]) -> None:
        """Learn from the next step; save the state if a refit is due."""
        self._released = False
        forecaster = self.forecaster
        ahead = forecaster.predict() if self.has_readings else None
        before = forecaster.counts.get("implausible", 0)
        forecaster.observe(to_datetime(step), value)
        doubted = forecaster.counts.get("implausible", 0) > before
        self.summary = self.summary.after(step, value, doubted=doubted)
        self.learned = step, None if doubted else value
        if ahead is not None and value is not None and _starts_at(ahead, step):
            forecast, lower, upper = (float(e[0]) for e in (ahead.value, ahead.lower, ahead.upper))
            score = anomaly_score(value, forecast, lower, upper)
            outside = not lower <= value <= upper
            self.summary = self.summary.scored(value - forecast, score, outside=outside)
        if self._is_refit_due(step):
            self._pending = self._state_at(step, waiting)

    def forecast(self, seq: int) -> IssuedForecast:
        """Return the forecast of the next steps, issued after an arrival number."""
        self._released = False
        forecast = self.forecaster.predict()
        first = int(forecast.time[0].astype("M8[us]").astype(np.int64))
        if not np.isfinite(forecast.value).all():
            return IssuedForecast(seq, self.sensor.id, first, self.fit_seq, "none", (), (), ())
        bands = forecast.value, forecast.lower, forecast.upper
        values, lower, upper = (tuple(each.tolist()) for each in bands)
        source, fit = forecast.source, self.fit_seq
        return IssuedForecast(seq, self.sensor.id, first, fit, source, values, lower, upper)

    def forecast_from(self, now: int) -> IssuedForecast | None:
        """Return the forecast of the steps after a time, as if no reading came until then.

        The tracker does not change. The result is None if the next forecast already starts later,
        or if the last reading is too old.
        """
        behind = (now - self.summary.newest) // self.plan.step
        too_old = now - self.summary.newest > FORECAST_FOR + self.plan.step
        if behind < 1 or too_old or not self.has_readings:
            return None
        copy = Tracker(self.sensor, self.plan)
        copy.point = self.point
        copy.forecaster = Forecaster.from_bytes(self.forecaster.to_bytes())
        copy.forecaster.observe(to_datetime(self.summary.newest + behind * self.plan.step), None)
        return copy.forecast(self.seq)

    def _is_refit_due(self, step: int) -> bool:
        """Return whether the forecaster is due for a refit, or for a snapshot, at this step."""
        last = self._pending.point if self._pending is not None else self.point
        since = self.summary.first if last is None else last.until
        if self._next_refit is None or self._next_refit[0] != since:
            self._next_refit = since, self.plan.next_refit(self.sensor.name, since)
        return step >= self._next_refit[1]

    def _state_at(self, step: int, waiting: set[int]) -> SavedState:
        """Return the state after a step, for a refit point."""
        kind = "refit" if self.forecaster.tuning.has_model or self.forecaster.refit_due else "kept"
        unused = tuple(sorted(each for each in waiting if each <= self.seq))
        point = RefitPoint(self.sensor.id, self.seq, step, kind, unused)
        return SavedState(point, self.to_bytes(), self.summary)

    def saved_state(self) -> SavedState:
        """Return the current state, for a refit point without a refit."""
        unused = {each.seq for each in self._open_step.values()}
        saved = self._state_at(self.summary.newest, unused)
        return msgspec.structs.replace(
            saved, point=msgspec.structs.replace(saved.point, kind="kept")
        )

    @property
    def due_refit(self) -> SavedState | None:
        """Return the state to refit, once no reading can come before its refit point any more."""
        pending = self._pending
        if pending is None or self.newest - pending.point.until <= self.plan.open_for:
            return None
        return pending

    @property
    def is_awake(self) -> bool:
        """Return whether the rows that forecasts need may be in memory."""
        return self.summary.fitted and not self._released

    def release_memory(self) -> None:
        """Free the rows that forecasts need, which can be computed again."""
        self.forecaster.workspace = None
        self._released = True

    def to_bytes(self) -> bytes:
        """Return the forecaster as bytes, which depend on the log alone."""
        return reproducible_bytes(self.forecaster)

    def apply(self, action: Action) -> None:
        """Apply an action; raise and change nothing if it is not possible."""
        body: dict[str, Any] = msgspec.json.decode(action.body)
        tuning = self.forecaster.tuning
        match action.kind:
            case "set":
                tuning.set(**body["values"])
            case "rollback":
                tuning.rollback()
            case "freeze":
                tuning.freeze(*body["names"])
            case "unfreeze":
                tuning.unfreeze(*body["names"])
            case "exclude":
                self.forecaster.exclude(body["start"], body["end"])
            case "retune":
                refit_or_raise(self.forecaster)
            case "reset":
                self.restart = "reset"
            case "configure" | "plan":
                if self.has_readings:
                    self.restart = self.restart or "start"
            case other:
                raise InvalidInputError(f"action must be a known action, got {other!r}.")

    def tuning(self) -> dict[str, Any]:
        """Return hyperparameters, those at a bound, frozen ones, and the weights of experts."""
        return tuning_of(self.forecaster)


def to_datetime(time: int) -> datetime:
    """Return microseconds since 1970 as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=time)


def _starts_at(forecast: Forecast, step: int) -> bool:
    """Return whether a forecast starts at a step; after a gap it does not."""
    return bool(forecast.time[0] == np.datetime64(step, "us"))
