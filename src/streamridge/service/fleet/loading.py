"""A tracker made of what the ledger holds: its last snapshot, and what arrived since then."""

from __future__ import annotations

from streamridge.errors import StateError
from streamridge.service.fleet.order import Item
from streamridge.service.fleet.tracker import Tracker
from streamridge.service.ledger.base import DamagedError, Ledger
from streamridge.service.ledger.records import Issued, SensorRow, Snapshot
from streamridge.service.plan import Plan


def loaded(ledger: Ledger, sensor: SensorRow, plan: Plan) -> tuple[Tracker, list[Issued], bool]:
    """Return a sensor's tracker, the forecasts since its cut, and whether it was rebuilt.

    It is rebuilt where its snapshot is damaged: from its readings, as a new start.
    """
    try:
        snapshot = ledger.snapshot(sensor.id)
        tracker, issued = caught_up(ledger, sensor, plan, snapshot)
    except (DamagedError, StateError):
        tracker = Tracker(sensor, plan)
        tracker.anew = "start"
        entries = ledger.entries(sensor.id)
        tracker.seq = max((entry.seq for entry in entries), default=0)
        return tracker, [], True
    return tracker, issued, False


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
    return [*ledger.entries(sensor, after=seq), *ledger.actions(sensor, after=seq)]
