"""The clock of a stream: the time that a share of the sensors has reached.

A few sensors do not move it while others send. Readings with a wrong date therefore do not make all
other sensors look silent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from statistics import median_low

from streamridge_service.plan import DAY

# One of this many sensors must have reached a time, and at least `QUORUM` where there are enough.
SHARE, QUORUM = 4, 3
# Sensors count for this long after their last reading.
ACTIVE = 7 * DAY
# If at least this many of the last readings came from fewer sensors, these move the clock.
RECENT = 100
# Readings further ahead are not believed at once. Few sensors need this many each, in a row.
FAR, FEW = 2 * DAY, 3


class StreamClock:
    """The time of a stream; None before the first reading.

    Parameters
    ----------
    most
        The largest number of sensors that it remembers. Names of further ones do not count.
    """

    def __init__(self, most: int = 1_000_000) -> None:
        self._most = most
        self.now: int | None = None
        self._agreed: int | None = None  # the newest time that enough sensors have reached
        self._reached: dict[Hashable, int] = {}  # the time that each sensor has reached
        self._ahead: list[int] = []  # those of these times that are later than agreed, sorted
        self._recent: deque[tuple[Hashable, int]] = deque()
        self._senders: Counter[Hashable] = Counter()  # of the recent readings

    def add(self, readings: Sequence[tuple[Hashable, int]]) -> None:
        """Add readings in the order in which they arrived: sensors and times."""
        if not readings:
            return
        if len(self._reached) == 1 and len(self._recent) >= FEW and self.now is not None:
            self._agree(self.now)  # a second sensor may begin with its past
        for sensor, time in readings:
            self._note(sensor, time)
        needed = self._needed
        if len(self._ahead) >= max(needed, 2):
            self._agree(self._ahead[-needed])
        self._remember(readings, max(RECENT, 2 * needed))
        if self._agreed is None or len(self._reached) == 1:
            self.now = self._believed()
        elif len(self._senders) < needed and len(self._recent) >= RECENT:
            self.now = max(self._agreed, self._believed())
        else:
            self.now = self._agreed

    @property
    def _needed(self) -> int:
        """Return the number of sensors that must have reached a time."""
        count = len(self._reached)
        return max(min(QUORUM, 1 + count // 2), -(-count // SHARE))

    def _note(self, sensor: Hashable, time: int) -> None:
        """Note the time that a sensor has reached; a far earlier reading corrects a wrong one."""
        known = self._reached.get(sensor)
        if known is not None:
            if known - FAR <= time <= known:
                return
            if self._is_ahead(known):
                del self._ahead[bisect_left(self._ahead, known)]
        elif len(self._reached) >= self._most:
            return
        self._reached[sensor] = time
        if self._is_ahead(time):
            insort(self._ahead, time)

    def _is_ahead(self, time: int) -> bool:
        return self._agreed is None or time > self._agreed

    def _agree(self, time: int) -> None:
        """Set the agreed time; once a day, forget the sensors that are not active any more."""
        before, self._agreed = self._agreed, time
        del self._ahead[: bisect_right(self._ahead, time)]
        if before is not None and time // DAY > before // DAY:
            active = (item for item in self._reached.items() if item[1] > time - ACTIVE)
            self._reached = dict(active)

    def _remember(self, readings: Sequence[tuple[Hashable, int]], size: int) -> None:
        """Replace the oldest of the recent readings."""
        self._recent.extend(readings[-size:])
        self._senders.update(sensor for sensor, _ in readings[-size:])
        while len(self._recent) > size:
            sensor, _ = self._recent.popleft()
            self._senders[sensor] -= 1
            if not self._senders[sensor]:
                del self._senders[sensor]

    def _believed(self) -> int:
        """Return the time of the newest of the recent readings that can be believed."""
        times = [time for _, time in self._recent]
        now = median_low(times) if self.now is None else self.now
        last = times[-FEW * len(self._senders) :]
        last += [self._reached.get(sensor, now) for sensor in self._senders]
        if len(times) >= FEW and min(last) > now + FAR:
            return max(last)
        return max([now, *(time for time in times if time <= now + FAR)])
