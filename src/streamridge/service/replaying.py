"""Forecasters made again from the log alone: every cut of a sensor, one after the other.

Nothing is read from stored states, and nothing is changed. The log is a sensor's readings, what was
asked of it, and the cuts at which its forecaster was refitted or made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streamridge.learners.workspace import Workspace
from streamridge.service.fleet.making import Beginning, refitted, started
from streamridge.service.fleet.order import Item
from streamridge.service.fleet.tracker import Ripe, Tracker
from streamridge.service.following import plans_of
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import (
    EVERYONE,
    Action,
    Cut,
    Entry,
    Issued,
    SensorRow,
    Snapshot,
)
from streamridge.service.plan import MINUTE, Declaration, Plan, Plans, Rule

# Why a refit failed is not in the log; that it did is.
UNKNOWN_REASON = "its refit failed"
# Kinds of cuts at which a forecaster is made of the readings, not of the one before it.
ANEW = ("start", "reset", "rebuilt")
NO_DECLARATION = msgspec.json.encode(Declaration())


@dataclass(frozen=True)
class Log:
    """All that a sensor's forecaster depends on, as it was read.

    Parameters
    ----------
    sensor
        The sensor as declared now.
    items
        What arrived, in order.
    cuts, tunings
        Its cuts in order, and the hyperparameters that each one left.
    plans
        How the service has forecast.
    """

    sensor: SensorRow
    items: list[Item]
    cuts: list[Cut]
    tunings: list[bytes]
    plans: Plans

    @classmethod
    def of(cls, ledger: Ledger, sensor: SensorRow) -> Log:
        """Read the log of a sensor, which may grow meanwhile: cuts first, then what they used."""
        cuts = ledger.cuts(sensor.id)
        tunings = [tuning for _, tuning in ledger.tunings(sensor.id)]
        items: list[Item] = [*ledger.entries(sensor.id), *ledger.actions(sensor.id)]
        items += ledger.actions(EVERYONE)
        items.sort(key=lambda item: item.seq)
        plans = plans_of(ledger) or Plans(((0, Plan(15 * MINUTE)),))  # if it was never served
        return cls(sensor, items, cuts, tunings[: len(cuts)], plans)

    @property
    def changes(self) -> list[Action]:
        """Return what begins a new forecaster: a declaration of the sensor, or another plan."""
        return [
            item
            for item in self.items
            if isinstance(item, Action) and item.kind in ("configure", "plan")
        ]

    @property
    def is_whole(self) -> bool:
        """Return whether the first reading of the sensor is there for sure, and made it."""
        first = next((item for item in self.items if isinstance(item, Entry)), None)
        return first is not None and first.received == self.sensor.created

    def sensor_at(self, seq: int) -> SensorRow:
        """Return the sensor as it was declared at an arrival number."""
        known = [each.body for each in self.changes if each.kind == "configure" and each.seq <= seq]
        declared = known[-1] if known else NO_DECLARATION
        return msgspec.structs.replace(self.sensor, declared=declared)

    def rule_at(self, seq: int) -> Rule | None:
        """Return how readings within a step combined at an arrival number."""
        return declaration_of(self.sensor_at(seq)).rule or self.plans.at(seq).rule

    @property
    def tells_its_declaration(self) -> bool:
        """Return whether the sensor is declared as the log says, as far as forecasts go."""
        told = declaration_of(self.sensor_at(self.items[-1].seq if self.items else 0))
        return declaration_of(self.sensor).forecasting == told.forecasting

    def since(self, cut: Cut | None, up_to: int | None = None) -> list[Item]:
        """Return what a forecaster takes after a cut, up to an arrival number."""
        after, left = (0, ()) if cut is None else (cut.seq, cut.left)
        return [
            item
            for item in self.items
            if (item.seq > after or item.seq in left) and (up_to is None or item.seq <= up_to)
        ]


def declaration_of(sensor: SensorRow) -> Declaration:
    """Return what is declared of a sensor."""
    return msgspec.json.decode(sensor.declared, type=Declaration)


def cuts_again(log: Log) -> Iterator[Snapshot]:
    """Make every cut of a log again, in order."""
    before: Snapshot | None = None
    workspace = Workspace()
    for cut in log.cuts:
        before = _made(log, cut, before, workspace)
        yield before


def issued_since(log: Log, snapshot: Snapshot | None, up_to: int) -> list[Issued]:
    """Return the forecasts that a fit makes of what arrived after its cut, up to a number."""
    cut = None if snapshot is None else snapshot.cut
    return _tracker(log, snapshot, up_to).catch_up(log.since(cut, up_to))


def _made(log: Log, cut: Cut, before: Snapshot | None, workspace: Workspace) -> Snapshot:
    """Return what a cut leaves, made of what the one before it left."""
    if cut.kind == "rebuilt":  # there was nothing to go on from: not even hyperparameters
        return _started(log, cut, _tracker(log, None, cut.seq).as_now(), workspace)
    tracker = _tracker(log, before, cut.seq)
    known = log.since(None if before is None else before.cut, cut.seq)
    items = [item for item in known if item.seq not in cut.left]
    tracker.catch_up([*items, *_end_of_step(tracker, cut)])
    ripe = Ripe(cut, tracker.to_bytes(), tracker.standing)
    if cut.kind in ANEW:
        return _started(log, cut, ripe, workspace)
    if cut.kind == "failed":
        failed = msgspec.structs.replace(ripe.standing, failed=UNKNOWN_REASON)
        ripe = msgspec.structs.replace(ripe, standing=failed)
    return refitted(ripe, workspace)


def _end_of_step(tracker: Tracker, cut: Cut) -> list[Item]:
    """Return what ends the last step before a cut, where readings within a step combine."""
    if tracker.rule is None or (cut.kind in ANEW and not cut.left):
        return []
    after = cut.until + tracker.plan.step
    return [Entry(cut.seq + 1, cut.sensor, after, None, received=0)]


def _started(log: Log, cut: Cut, before: Ripe, workspace: Workspace) -> Snapshot:
    """Return what a new start leaves, which is made of the readings of late."""
    tracker = _tracker(log, None, cut.seq)
    entries = [item for item in log.items if isinstance(item, Entry) and item.seq <= cut.seq]
    beginning = Beginning.of(entries, tracker.plan, tracker.rule)
    made = beginning.cut(cut.sensor, cut.seq, cut.kind)
    return started(made, tracker.settings, beginning, before, workspace)


def _tracker(log: Log, snapshot: Snapshot | None, seq: int) -> Tracker:
    """Return the tracker that a snapshot left, with declaration and plan as at a number."""
    sensor, plan = log.sensor_at(seq), log.plans.at(seq)
    return Tracker(sensor, plan) if snapshot is None else Tracker.resumed(sensor, plan, snapshot)
