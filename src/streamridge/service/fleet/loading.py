"""A tracker made of what the ledger holds: its last snapshot, and what arrived since then."""

from __future__ import annotations

from streamridge.errors import StateError
from streamridge.learners.workspace import Workspace
from streamridge.service.fleet.making import Beginning, started
from streamridge.service.fleet.order import Item
from streamridge.service.fleet.tracker import Tracker
from streamridge.service.ledger.base import DamagedError, Ledger
from streamridge.service.ledger.records import EVERYONE, Issued, SensorRow, Snapshot
from streamridge.service.plan import Plan


def loaded(
    ledger: Ledger, sensor: SensorRow, plan: Plan, done: int
) -> tuple[Tracker, list[Issued], Snapshot | None]:
    """Return a sensor's tracker, the forecasts since its cut, and the cut if it was rebuilt.

    It is rebuilt at once where its snapshot is damaged: a forecast never comes of nothing. `done`
    is the arrival number up to which its forecasts have been issued.
    """
    try:
        snapshot = ledger.snapshot(sensor.id)
        return *caught_up(ledger, sensor, plan, snapshot), None
    except (DamagedError, StateError):
        rebuilt = _rebuilt(ledger, sensor, plan, done)
        return *caught_up(ledger, sensor, plan, rebuilt), rebuilt


def _rebuilt(ledger: Ledger, sensor: SensorRow, plan: Plan, done: int) -> Snapshot | None:
    """Return a snapshot made of a sensor's readings alone; None if it has none."""
    first = ledger.entries(sensor.id)[:1]
    if not first:
        return None
    tracker = Tracker(sensor, plan)
    seq = max(done, first[0].seq)
    entries = ledger.entries(sensor.id, up_to=seq)
    beginning = Beginning.of(entries, plan, tracker.rule)
    cut = beginning.cut(sensor.id, seq, "rebuilt")
    return started(cut, tracker.settings, beginning, tracker.as_now(), Workspace())


def caught_up(
    ledger: Ledger, sensor: SensorRow, plan: Plan, snapshot: Snapshot | None
) -> tuple[Tracker, list[Issued]]:
    """Return the tracker of a snapshot after all that arrived since, and the forecasts made."""
    if snapshot is None:
        tracker = Tracker(sensor, plan)
        return tracker, tracker.catch_up(_since(ledger, sensor.id, 0))
    tracker, cut = Tracker.resumed(sensor, plan, snapshot), snapshot.cut
    items = _since(ledger, sensor.id, min(cut.left, default=cut.seq + 1) - 1)
    since = [item for item in items if item.seq > cut.seq or item.seq in cut.left]
    return tracker, tracker.catch_up(since)


def _since(ledger: Ledger, sensor: int, seq: int) -> list[Item]:
    actions = [*ledger.actions(sensor, after=seq), *ledger.actions(EVERYONE, after=seq)]
    return [*ledger.entries(sensor, after=seq), *actions]
