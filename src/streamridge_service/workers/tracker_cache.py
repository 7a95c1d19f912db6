"""The trackers of a worker, as many in memory as its limit allows.

A tracker takes memory at three levels. An awake tracker holds the rows that forecasts need. A
tracker at rest rebuilds them for each forecast. A parked tracker keeps only its changes since its
snapshot. The memory of the process is measured. Above its limit, awake trackers are put to rest,
and then trackers at rest are parked.

Sensors are used in turn, step after step. The sensor that was unused for longest is then needed
next, so the last used sensors are released first, and the others stay in memory from step to step.
Sensors that are out of use are released before them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from streamridge_service.ledger.records import RefitPoint
from streamridge_service.memory import resident_bytes, return_free_memory
from streamridge_service.workers.tracker import ParkedTracker, Tracker

# Uses of sensors between two measurements.
MEASURE_EVERY = 4
# Memory is released down to this share of the limit, so that the next sensors need no release.
RELEASED_TO = 0.97
# The shares of awake trackers, and of trackers at rest, that are released between measurements.
AWAKE_SHARE, REST_SHARE = 0.05, 0.02
# A sensor that was not used while all others were used this many times is not in use.
ROUNDS = 2


class TrackerCache:
    """The trackers of some sensors; `limit` returns the bytes that the process may hold."""

    def __init__(
        self, limit: Callable[[], int], measured: Callable[[], int] = resident_bytes
    ) -> None:
        self._limit, self._measured = limit, measured
        # Trackers in memory, and the awake ones among them; the last used comes last.
        self._trackers: OrderedDict[int, Tracker] = OrderedDict()
        self._awake: OrderedDict[int, Tracker] = OrderedDict()
        self._parked: dict[int, ParkedTracker] = {}
        self._uses = 0
        self._last_use: dict[int, int] = {}  # number of uses at the last use of each sensor

    def __contains__(self, sensor: int) -> bool:
        return sensor in self._trackers or sensor in self._parked

    def __getitem__(self, sensor: int) -> Tracker:
        return self._trackers[sensor]

    def get(self, sensor: int) -> Tracker | None:
        """Return the tracker of a sensor if it is in memory."""
        return self._trackers.get(sensor)

    def point(self, sensor: int) -> RefitPoint | None:
        """Return the last refit point of a sensor whose tracker is in memory or parked."""
        tracker = self._trackers.get(sensor) or self._parked[sensor]
        return tracker.point

    def parked(self, sensor: int) -> ParkedTracker | None:
        """Return the parked tracker of a sensor."""
        return self._parked.get(sensor)

    def put(self, tracker: Tracker) -> None:
        """Add a tracker; it replaces an earlier tracker of its sensor."""
        sensor = tracker.sensor.id
        self.remove(sensor)
        self._trackers[sensor] = tracker

    def remove(self, sensor: int) -> None:
        """Drop the tracker of a sensor."""
        for known in (self._trackers, self._awake, self._parked):
            known.pop(sensor, None)

    def use(self, sensor: int) -> None:
        """Note that a sensor was used; from time to time, release memory above the limit."""
        self._uses += 1
        tracker = self._trackers.get(sensor)
        if tracker is not None:
            self._last_use[sensor] = self._uses
            self._trackers.move_to_end(sensor)
            if tracker.is_awake:
                self._awake[sensor] = tracker
                self._awake.move_to_end(sensor)
        if self._uses % MEASURE_EVERY == 0:
            self.limit_memory()

    def limit_memory(self) -> None:
        """Release memory if the process holds more than it may."""
        allowed = self._limit()
        if self._measured() <= allowed:
            return
        while self._trackers and self._measured() > RELEASED_TO * allowed:
            if self._awake:
                for _ in range(_share(AWAKE_SHARE, self._awake)):
                    self._awake.pop(self._unneeded(self._awake)).release_memory()
            else:
                for _ in range(_share(REST_SHARE, self._trackers)):
                    self._park(self._unneeded(self._trackers))
            return_free_memory()

    def _unneeded(self, known: OrderedDict[int, Tracker]) -> int:
        """Return the sensor that is needed last: one out of use, or else the last used."""
        oldest = next(iter(known))
        if self._uses - self._last_use.get(oldest, 0) > ROUNDS * len(self._last_use):
            return oldest
        return next(reversed(known))

    def _park(self, sensor: int) -> None:
        self._parked[sensor] = self._trackers.pop(sensor).parked()


def _share(share: float, known: OrderedDict[int, Tracker]) -> int:
    """Return a share of trackers, but no fewer than were used since the last measurement."""
    return min(max(int(share * len(known)), MEASURE_EVERY), len(known))
