"""The sensors whose refits are due when a service starts, as the log tells.

Refits that waited or ran when the service ended must not wait for the next reading: its forecast
would come from another fit than without the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamridge_service.ledger.records import StoredReading
from streamridge_service.service.sensor_status import SensorStatus


def due_refits(
    statuses: Mapping[int, SensorStatus],
    recent: Iterable[StoredReading],
    restarted: Iterable[int],
    earlier: Mapping[int, int],
) -> tuple[int, ...]:
    """Return the sensors that may wait for a refit or a new start.

    Parameters
    ----------
    statuses
        The statuses of all sensors at their last snapshots.
    recent
        The newest readings of all sensors in order of arrival.
    restarted
        Sensors that were reset or declared anew since their last snapshots.
    earlier
        By sensor: the time of the newest reading before the recent ones.
    """
    starts, first, newest = set(restarted), dict(earlier), dict(earlier)
    for reading in recent:
        sensor, time = reading.sensor, reading.time
        if not reading.is_live and reading.seq > statuses[sensor].seq:
            starts.add(sensor)
        first[sensor] = min(time, first.get(sensor, time))
        newest[sensor] = max(time, newest.get(sensor, time))
    due = (sensor for sensor in newest if _is_due(statuses[sensor], first[sensor], newest[sensor]))
    return tuple(sorted(starts.union(due)))


def _is_due(status: SensorStatus, first: int, newest: int) -> bool:
    """Return whether a refit may be due, given the first and the newest known reading."""
    plan = status.plan
    since = status.summary.newest if status.seq else plan.step_of(first)
    return plan.step_of(newest) - plan.next_refit(status.sensor.name, since) > plan.open_for
