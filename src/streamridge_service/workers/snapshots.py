"""Snapshots of sensors: from a refit, from a new start, and from what the ledger holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec
import numpy as np

from streamridge import Forecaster, Settings, Workspace, series_from_arrays
from streamridge.errors import FitError, StateError
from streamridge_service.ledger.errors import DamagedError, DamagedPageError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import (
    EVERYONE,
    IssuedForecast,
    Kind,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.plan import NEVER, Declaration, Plan
from streamridge_service.workers.sensor_state import (
    SavedState,
    SensorSummary,
    fingerprint,
    hyperparameter_bounds,
    refit_or_raise,
    reproducible_bytes,
    tuning_of,
)
from streamridge_service.workers.steps import LogItem, step_values
from streamridge_service.workers.tracker import ParkedTracker, Tracker

# The history of a new start covers the training set of the default model and this span before it.
# The span is a week shorter than the first rows need. It must not change: logs of earlier versions
# are replayed with it.
LOOK_BACK = 36 * 86_400_000_000


class StartHistory(msgspec.Struct, frozen=True):
    """The history of a new start: complete steps, and readings of a step that is still open."""

    # The recent steps in order, NaN for missing values.
    times: np.ndarray
    values: np.ndarray
    # Arrival numbers of the readings of the newest step, if it is still open.
    unused: tuple[int, ...] = ()

    @classmethod
    def of(cls, readings: Iterable[StoredReading], plan: Plan) -> Self:
        """Return the history of some readings, without held ones; `plan` is the sensor's own."""
        known = [reading for reading in readings if reading.kind != Kind.HELD]
        newest = plan.step_of(max((reading.time for reading in known), default=0))
        start = newest - history_span(plan)
        recent = [reading for reading in known if reading.time > start]
        last = [reading for reading in recent if plan.step_of(reading.time) == newest]
        if plan.rule is None or not all(reading.is_live for reading in last):
            return cls(*step_values(recent, plan))
        complete = [each for each in recent if plan.step_of(each.time) < newest]
        return cls(*step_values(complete, plan), tuple(each.seq for each in last))

    @property
    def until(self) -> int:
        """Return the time of the last step."""
        return int(self.times[-1].astype(np.int64)) if len(self.times) else NEVER

    def point(self, sensor: int, seq: int, kind: str) -> RefitPoint:
        """Return the refit point of a start with this history."""
        return RefitPoint(sensor, seq, self.until, kind, self.unused)


def history_span(plan: Plan) -> int:
    """Return the span of readings that a new start uses, in microseconds."""
    return plan.train_size * plan.step + _look_back(plan)


def _look_back(plan: Plan) -> int:
    """Return the span of a history before its training set, in microseconds."""
    if plan.model == "default":
        return LOOK_BACK
    return plan.settings(Declaration()).preset.features.reach * plan.step


def refitted(saved: SavedState, workspace: Workspace) -> Snapshot:
    """Return the snapshot of a refit point: refitted, or unchanged if that is not due or fails.

    After a failed refit the old fit stays. Before the next attempt, regularization is set to its
    upper bound.
    """
    forecaster, summary = Forecaster.from_bytes(saved.state), saved.summary
    point, failed = saved.point, summary.failed if saved.point.kind == "failed" else None
    if point.kind == "refit":
        summary = msgspec.structs.replace(summary, rebuilt=False)
        try:
            if summary.failed is not None and forecaster.tuning.has_model:
                most = hyperparameter_bounds(forecaster.settings)["regularization"][1]
                forecaster.tuning.set(regularization=most)
            refit_or_raise(forecaster, workspace)
        except FitError as error:
            forecaster, failed = Forecaster.from_bytes(saved.state), error.reason
            point = msgspec.structs.replace(point, kind="failed")
    return _snapshot(point, forecaster, msgspec.structs.replace(summary, failed=failed))


def started(
    point: RefitPoint,
    settings: Settings,
    history: StartHistory,
    before: SavedState,
    workspace: Workspace,
) -> Snapshot:
    """Return the snapshot of a new forecaster that learns from a history.

    A refit point of kind "start" keeps the hyperparameters that were learned before.
    """
    times, values = history.times, history.values
    old = Forecaster.from_bytes(before.state)
    series = series_from_arrays(times, values, step=settings.step, tz=settings.tz)
    forecaster = Forecaster.from_settings(settings, series)
    if forecaster.refit_due:
        forecaster.refit(workspace)
    if point.kind == "start" and old.tuning.has_model and forecaster.tuning.has_model:
        known = forecaster.hyperparameters  # a model of another size may have others
        shared = {name: each for name, each in old.hyperparameters.items() if name in known}
        forecaster.tuning.set(**shared)
    summary = before.summary
    if len(times):
        first = int(times[0].astype(np.int64))
        summary = msgspec.structs.replace(
            summary,
            newest=history.until,
            first=first if summary.first == NEVER else min(first, summary.first),
            value=None if np.isnan(values[-1]) else float(values[-1]),
        )
    summary = msgspec.structs.replace(summary, failed=None, rebuilt=point.kind == "rebuilt")
    return _snapshot(point, forecaster, summary)


def _snapshot(point: RefitPoint, forecaster: Forecaster, summary: SensorSummary) -> Snapshot:
    summary = msgspec.structs.replace(summary, fitted=forecaster.tuning.has_model)
    return Snapshot(
        point,
        reproducible_bytes(forecaster),
        msgspec.json.encode(summary),
        msgspec.json.encode(tuning_of(forecaster)),
        fingerprint(),
    )


def load_tracker(
    ledger: Ledger, sensor: SensorRow, plan: Plan, done: int, newer: Snapshot | None = None
) -> tuple[Tracker, list[IssuedForecast], Snapshot | None]:
    """Return a sensor's tracker, the forecasts since its refit point, and a rebuilt snapshot.

    A snapshot that is damaged, or in a format of an earlier version, is rebuilt from the readings.
    If these cannot be read either, an error is raised.
    Otherwise the third result is None. Forecasts up to the arrival number `done` were issued. The
    snapshot `newer` is used instead of the stored one, if given.
    """
    try:
        snapshot = newer or ledger.snapshot(sensor.id)
        return *caught_up(ledger, sensor, plan, snapshot), None
    except (DamagedError, DamagedPageError, StateError):
        rebuilt = _rebuilt(ledger, sensor, plan, done)
        return *caught_up(ledger, sensor, plan, rebuilt), rebuilt


def unparked(
    ledger: Ledger,
    sensor: SensorRow,
    plan: Plan,
    parked: ParkedTracker,
    newer: Snapshot | None = None,
) -> Tracker | None:
    """Return a parked tracker as it was; None if its snapshot is damaged, or not the last one.

    The snapshot `newer` is used instead of the stored one, if given.
    """
    try:
        snapshot = newer or ledger.snapshot(sensor.id) if parked.summary.fitted else None
        if snapshot is not None and snapshot.point != parked.point:
            return None
        return Tracker.unparked(sensor, plan, parked, snapshot)
    except (DamagedError, DamagedPageError, StateError):
        return None


def _rebuilt(ledger: Ledger, sensor: SensorRow, plan: Plan, done: int) -> Snapshot | None:
    """Return a snapshot from a sensor's readings alone; None if it has none."""
    readings = ledger.readings(sensor.id)
    if not readings:
        return None
    tracker = Tracker(sensor, plan)
    seq = max(done, readings[0].seq, _last_before_live(readings, done))
    known = [each for each in readings if each.seq <= seq]
    history = StartHistory.of(known, tracker.plan)
    point = history.point(sensor.id, seq, "rebuilt")
    return started(point, tracker.settings, history, tracker.saved_state(), Workspace())


def _last_before_live(readings: Iterable[StoredReading], done: int) -> int:
    """Return the last arrival number before the first live reading after `done`.

    Forecasts are issued for live readings only, so that all readings before it are learned at once.
    """
    seq = 0
    for reading in readings:
        if reading.seq > done and reading.is_live:
            break
        seq = reading.seq
    return seq


def caught_up(
    ledger: Ledger, sensor: SensorRow, plan: Plan, snapshot: Snapshot | None
) -> tuple[Tracker, list[IssuedForecast]]:
    """Return the tracker of a snapshot after all later items of the log, and the forecasts."""
    if snapshot is None:
        tracker = Tracker(sensor, plan)
        return tracker, tracker.catch_up(_items_after(ledger, sensor.id, 0))
    tracker, point = Tracker.resumed(sensor, plan, snapshot), snapshot.point
    items = _items_after(ledger, sensor.id, min(point.unused, default=point.seq + 1) - 1)
    since = [item for item in items if item.seq > point.seq or item.seq in point.unused]
    return tracker, tracker.catch_up(since)


def _items_after(ledger: Ledger, sensor: int, seq: int) -> list[LogItem]:
    actions = [*ledger.actions(sensor, after=seq), *ledger.actions(EVERYONE, after=seq)]
    return [*ledger.readings(sensor, after=seq), *actions]
