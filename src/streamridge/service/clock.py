"""What time it is for a service: that of the machine, or that of its newest reading."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time_ns

from streamridge.service.plan import SECOND

# A difference between the two clocks of the machine that no drift explains.
JUMP = 30 * SECOND


class Clock:
    """The clock of a service, which notices when the machine's clock jumps.

    Parameters
    ----------
    wall
        The machine's clock, in microseconds since 1970.
    steady
        A clock that never jumps, in seconds.
    """

    def __init__(
        self,
        wall: Callable[[], int] = lambda: time_ns() // 1000,
        steady: Callable[[], float] = monotonic,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._start = wall() - self._passed()
        self.jumped = 0  # by how much it is off now, in microseconds

    def _passed(self) -> int:
        return int(self._steady() * SECOND)

    def now(self) -> int:
        """Return the machine's time."""
        return self._wall()

    def look(self) -> int:
        """Return by how much the clock is off what it should show: zero, unless it has jumped."""
        off = self._wall() - self._passed() - self._start
        self.jumped = off if abs(off) > JUMP else 0
        if not self.jumped:
            self._start += off  # it drifts, and is corrected, a little
        return self.jumped

    def accept(self) -> None:
        """Believe the clock as it is now."""
        self._start = self._wall() - self._passed()
        self.jumped = 0
