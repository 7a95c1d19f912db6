"""The clock of a stream: the time that the readings of several sensors have reached.

No sensor moves it alone while others send. A reading with a wrong date therefore does not make all
other sensors look silent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from heapq import nlargest
from statistics import median_low

from streamridge_service.plan import DAY

# Sensors that must have reached a time, where there are enough.
QUORUM = 3
# If the last readings, this many, came from fewer sensors, these move the clock.
RECENT = 100
# Readings further ahead are not believed at once. Few sensors need this many of them in a row.
FAR, FEW = 2 * DAY, 3


class StreamClock:
    """The time of a stream; None before the first reading."""

    def __init__(self) -> None:
        self.now: int | None = None
        self._newest: dict[Hashable, int] = {}  # time of each sensor's newest reading
        self._leaders: list[Hashable] = []  # the sensors with the newest readings
        self._recent: deque[tuple[Hashable, int]] = deque(maxlen=RECENT)
        self._agreed: int | None = None  # the newest time that enough sensors have reached

    def add(self, readings: Sequence[tuple[Hashable, int]]) -> None:
        """Add readings in the order in which they arrived: sensors and times."""
        if not readings:
            return
        count, was_settled = len(self._newest), len(self._recent) >= FEW
        newer = set(self._leaders)
        for sensor, time in readings:
            if time > self._newest.get(sensor, time - 1):
                self._newest[sensor] = time
                newer.add(sensor)
        self._leaders = nlargest(QUORUM, newer, key=self._newest.__getitem__)
        self._recent.extend(readings[-RECENT:])
        if count == 1 and was_settled:  # a second sensor may begin with its past
            self._agreed = self.now
        self.now = self._reached()

    def _reached(self) -> int:
        """Return the time that enough sensors have reached."""
        count, senders = len(self._newest), len({sensor for sensor, _ in self._recent})
        needed = min(QUORUM, 1 + count // 2)
        if count == 1:
            return self._reached_by_few()
        agreed = self._newest[self._leaders[needed - 1]]
        self._agreed = agreed if self._agreed is None else max(agreed, self._agreed)
        if senders < needed and len(self._recent) == RECENT:
            return max(self._agreed, self._reached_by_few())
        return self._agreed

    def _reached_by_few(self) -> int:
        """Return the time of the newest of the recent readings that can be believed."""
        times = [time for _, time in self._recent]
        now = median_low(times) if self.now is None else self.now
        last = times[-FEW:]
        if len(last) == FEW and min(last) > now + FAR:
            return max(last)
        return max([now, *(time for time in times if time <= now + FAR)])
