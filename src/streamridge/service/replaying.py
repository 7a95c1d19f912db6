"""Forecasters made again from the log alone: every cut of a sensor, one after the other.

Nothing is read from stored states, and nothing is changed. The log is a sensor's readings, what was
asked of it, and the cuts at which its forecaster was refitted or made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streamridge.learners.workspace import Workspace
from streamridge.service.fleet.making import history_of, refitted, started
from streamridge.service.fleet.order import Item
from streamridge.service.fleet.tracker import Ripe, Standing, Tracker
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Action, Cut, Entry, Issued, SensorRow, Snapshot
from streamridge.service.plan import Declaration, Plan, Rule
from streamridge.service.sameness import nearly_equal

# Why a refit failed is not in the log; that it did is.
UNKNOWN_REASON = "its refit failed"
# Kinds of cuts at which a forecaster is made of the readings, not of the one before it.
ANEW = ("start", "reset")
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
    """

    sensor: SensorRow
    items: list[Item]
    cuts: list[Cut]
    tunings: list[bytes]

    @classmethod
    def of(cls, ledger: Ledger, sensor: SensorRow) -> Log:
        """Read the log of a sensor, which may grow meanwhile: cuts first, then what they used."""
        cuts = ledger.cuts(sensor.id)
        tunings = [tuning for _, tuning in ledger.tunings(sensor.id)]
        items: list[Item] = [*ledger.entries(sensor.id), *ledger.actions(sensor.id)]
        return cls(sensor, sorted(items, key=lambda item: item.seq), cuts, tunings[: len(cuts)])

    @property
    def configured(self) -> list[Action]:
        """Return when it was declared anew, after its first reading."""
        return [
            item for item in self.items if isinstance(item, Action) and item.kind == "configure"
        ]

    @property
    def began_undeclared(self) -> bool:
        """Return whether the sensor was made by its first reading, before it was declared."""
        first = next((item for item in self.items if isinstance(item, Entry)), None)
        return first is not None and first.received == self.sensor.created

    def sensor_at(self, seq: int) -> SensorRow:
        """Return the sensor as it was declared at an arrival number."""
        configured = self.configured
        known = [action.body for action in configured if action.seq <= seq]
        if known:
            return msgspec.structs.replace(self.sensor, declared=known[-1])
        return (
            msgspec.structs.replace(self.sensor, declared=NO_DECLARATION)
            if configured
            else (self.sensor)
        )

    def rule_at(self, seq: int, plan: Plan) -> Rule | None:
        """Return how readings within a step combined at an arrival number."""
        declared = msgspec.json.decode(self.sensor_at(seq).declared, type=Declaration)
        return declared.rule or plan.rule

    def since(self, cut: Cut | None, up_to: int | None = None) -> list[Item]:
        """Return what a forecaster takes after a cut, up to an arrival number."""
        after, left = (0, ()) if cut is None else (cut.seq, cut.left)
        return [
            item
            for item in self.items
            if (item.seq > after or item.seq in left) and (up_to is None or item.seq <= up_to)
        ]


@dataclass(frozen=True)
class Again:
    """A cut that was made again, and whether it was made without what the one before it left."""

    snapshot: Snapshot
    rebuilt: bool = False


def replayed(ledger: Ledger, sensor: SensorRow, plan: Plan) -> Snapshot | None:
    """Return the last snapshot of a sensor, made again from its log; None if it has no cut."""
    last = None
    for again in cuts_again(Log.of(ledger, sensor), plan):
        last = again.snapshot
    return last


def cuts_again(log: Log, plan: Plan) -> Iterator[Again]:
    """Make every cut of a log again, in order."""
    before: Snapshot | None = None
    workspace = Workspace()
    for cut, tuning in zip(log.cuts, log.tunings, strict=True):
        again = _made(log, cut, before, plan, workspace)
        if cut.kind == "start" and not nearly_equal(again.tuning, tuning):
            # Where a state was damaged, there was nothing to go on from: not even hyperparameters.
            anew = _started(log, cut, _nothing(log, cut, plan), plan, workspace)
            if nearly_equal(anew.tuning, tuning):
                yield Again(anew, rebuilt=True)
                before = anew
                continue
        yield Again(again)
        before = again


def issued_since(log: Log, snapshot: Snapshot | None, plan: Plan, up_to: int) -> list[Issued]:
    """Return the forecasts that a fit makes of what arrived after its cut, up to a number."""
    cut = None if snapshot is None else snapshot.cut
    tracker = _tracker(log, snapshot, plan, up_to)
    return tracker.catch_up(log.since(cut, up_to))


def _made(
    log: Log, cut: Cut, before: Snapshot | None, plan: Plan, workspace: Workspace
) -> Snapshot:
    """Return what a cut leaves, made of what the one before it left."""
    tracker = _tracker(log, before, plan, cut.seq)
    known = log.since(None if before is None else before.cut, cut.seq)
    items = [item for item in known if item.seq not in cut.left]
    tracker.catch_up([*items, *_end_of_step(tracker, cut)])
    ripe = Ripe(cut, tracker.to_bytes(), tracker.standing)
    if cut.kind in ANEW:
        return _started(log, cut, ripe, plan, workspace)
    if cut.kind == "failed":
        failed = msgspec.structs.replace(ripe.standing, failed=UNKNOWN_REASON)
        ripe = msgspec.structs.replace(ripe, standing=failed)
    return refitted(ripe, workspace)


def _end_of_step(tracker: Tracker, cut: Cut) -> list[Item]:
    """Return what ends the last step before a cut, where readings within a step combine."""
    if tracker.rule is None or cut.kind in ANEW:
        return []
    after = cut.until + tracker.plan.step
    return [Entry(cut.seq + 1, cut.sensor, after, None, received=0)]


def _started(log: Log, cut: Cut, before: Ripe, plan: Plan, workspace: Workspace) -> Snapshot:
    """Return what a new start leaves, which is made of the readings of late."""
    tracker = Tracker(log.sensor_at(cut.seq), plan)
    entries = [item for item in log.items if isinstance(item, Entry) and item.seq <= cut.seq]
    history = history_of(entries, plan)
    return started(cut, tracker.settings, history, before, workspace, plan=plan, rule=tracker.rule)


def _nothing(log: Log, cut: Cut, plan: Plan) -> Ripe:
    """Return a forecaster that knows nothing."""
    return Ripe(cut, Tracker(log.sensor_at(cut.seq), plan).to_bytes(), Standing())


def _tracker(log: Log, snapshot: Snapshot | None, plan: Plan, seq: int) -> Tracker:
    """Return the tracker that a snapshot left, of the sensor as it was declared at a number."""
    sensor = log.sensor_at(seq)
    return Tracker(sensor, plan) if snapshot is None else Tracker.resumed(sensor, plan, snapshot)
