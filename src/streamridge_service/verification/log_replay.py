"""Replay of a sensor's log: every refit, one after the other, and the forecasts in between.

The log is a sensor's readings, the actions on it, and its refit points. Stored states are not read,
and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from streamridge import Workspace
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.plan_log import read_plans
from streamridge_service.ledger.records import (
    EVERYONE,
    Action,
    IssuedForecast,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.plan import MINUTE, Declaration, Plan, Plans
from streamridge_service.workers.sensor_state import SavedState
from streamridge_service.workers.snapshots import StartHistory, refitted, started
from streamridge_service.workers.steps import LogItem
from streamridge_service.workers.tracker import Tracker

# The log records that a refit failed, but not why.
UNKNOWN_REASON = "its refit failed"
# Kinds of refit points that start a new forecaster from the readings.
STARTS = ("start", "reset", "rebuilt")
NO_DECLARATION = msgspec.json.encode(Declaration())


@dataclass(frozen=True)
class SensorLog:
    """The log of a sensor, on which its forecaster depends."""

    sensor: SensorRow  # the sensor with its current declaration
    items: list[LogItem]  # readings and actions in order of arrival
    # The refit points in order, and the hyperparameters after each.
    points: list[RefitPoint]
    tunings: list[bytes]
    plans: Plans

    @classmethod
    def of(cls, ledger: Ledger, sensor: SensorRow) -> SensorLog:
        """Read the log of a sensor; refit points first, since the log may grow meanwhile."""
        points = ledger.refit_points(sensor.id)
        tunings = [tuning for _, tuning in ledger.tunings(sensor.id)]
        log = cls.of_actions(ledger, sensor)
        items = sorted([*ledger.readings(sensor.id), *log.items], key=lambda item: item.seq)
        return replace(log, items=items, points=points, tunings=tunings[: len(points)])

    @classmethod
    def of_actions(cls, ledger: Ledger, sensor: SensorRow) -> SensorLog:
        """Read the actions of a log only."""
        items: list[LogItem] = [*ledger.actions(sensor.id), *ledger.actions(EVERYONE)]
        items.sort(key=lambda item: item.seq)
        plans = read_plans(ledger) or Plans(((0, Plan(15 * MINUTE)),))  # if it was never served
        return cls(sensor, items, [], [], plans)

    @property
    def changes(self) -> list[Action]:
        """Return the actions that start a new forecaster: declarations and plans."""
        return [
            item
            for item in self.items
            if isinstance(item, Action) and item.kind in ("configure", "plan")
        ]

    @property
    def has_first_reading(self) -> bool:
        """Return whether the first reading of the sensor is certainly still stored."""
        first = next((item for item in self.items if isinstance(item, StoredReading)), None)
        return first is not None and first.received == self.sensor.created

    def sensor_at(self, seq: int) -> SensorRow:
        """Return the sensor with its declaration at an arrival number."""
        known = [each.body for each in self.changes if each.kind == "configure" and each.seq <= seq]
        declared = known[-1] if known else NO_DECLARATION
        return msgspec.structs.replace(self.sensor, declared=declared)

    def plan_at(self, seq: int) -> Plan:
        """Return the plan of the sensor at an arrival number."""
        return self.plans.at(seq).of(_declaration(self.sensor_at(seq)))

    @property
    def declaration_matches(self) -> bool:
        """Return whether the stored declaration equals the last one in the log."""
        logged = _declaration(self.sensor_at(self.items[-1].seq if self.items else 0))
        return _declaration(self.sensor).forecasting == logged.forecasting

    def since(self, point: RefitPoint | None, up_to: int | None = None) -> list[LogItem]:
        """Return the items that a forecaster processes after a refit point."""
        after, unused = (0, ()) if point is None else (point.seq, point.unused)
        return [
            item
            for item in self.items
            if (item.seq > after or item.seq in unused) and (up_to is None or item.seq <= up_to)
        ]


def _declaration(sensor: SensorRow) -> Declaration:
    return msgspec.json.decode(sensor.declared, type=Declaration)


def replayed_refits(log: SensorLog) -> Iterator[Snapshot]:
    """Yield the snapshot after each refit point of a log, in order."""
    before: Snapshot | None = None
    workspace = Workspace()
    for point in log.points:
        before = _replayed(log, point, before, workspace)
        yield before


def forecasts_since(log: SensorLog, snapshot: Snapshot | None, up_to: int) -> list[IssuedForecast]:
    """Return the forecasts from a snapshot on, up to an arrival number."""
    point = None if snapshot is None else snapshot.point
    return _tracker(log, snapshot, up_to).catch_up(log.since(point, up_to))


def _replayed(
    log: SensorLog, point: RefitPoint, before: Snapshot | None, workspace: Workspace
) -> Snapshot:
    """Return the snapshot after a refit point, given the snapshot before it."""
    if point.kind == "rebuilt":  # it starts without hyperparameters of an earlier forecaster
        return _replayed_start(log, point, _tracker(log, None, point.seq).saved_state(), workspace)
    tracker = _tracker(log, before, point.seq)
    known = log.since(None if before is None else before.point, point.seq)
    items = [item for item in known if item.seq not in point.unused]
    tracker.catch_up([*items, *_end_of_step(tracker, point)])
    saved = SavedState(point, tracker.to_bytes(), tracker.summary)
    if point.kind in STARTS:
        return _replayed_start(log, point, saved, workspace)
    if point.kind == "failed":
        failed = msgspec.structs.replace(saved.summary, failed=UNKNOWN_REASON)
        saved = msgspec.structs.replace(saved, summary=failed)
    return refitted(saved, workspace)


def _end_of_step(tracker: Tracker, point: RefitPoint) -> list[LogItem]:
    """Return an item that closes the last step before a refit point, if a rule combines steps."""
    if tracker.plan.rule is None or (point.kind in STARTS and not point.unused):
        return []
    after = point.until + tracker.plan.step
    return [StoredReading(point.seq + 1, point.sensor, after, None, received=0)]


def _replayed_start(
    log: SensorLog, point: RefitPoint, before: SavedState, workspace: Workspace
) -> Snapshot:
    """Return the snapshot after a new start."""
    tracker = _tracker(log, None, point.seq)
    readings = [
        item for item in log.items if isinstance(item, StoredReading) and item.seq <= point.seq
    ]
    history = StartHistory.of(readings, tracker.plan)
    replayed = history.point(point.sensor, point.seq, point.kind)
    return started(replayed, tracker.settings, history, before, workspace)


def _tracker(log: SensorLog, snapshot: Snapshot | None, seq: int) -> Tracker:
    """Return the tracker of a snapshot, with the declaration and the plan at an arrival number."""
    sensor, plan = log.sensor_at(seq), log.plans.at(seq)
    return Tracker(sensor, plan) if snapshot is None else Tracker.resumed(sensor, plan, snapshot)
