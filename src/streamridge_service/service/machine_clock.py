"""The machine's clock, with protection against jumps.

A jump is not believed at once. The time before it stays in use, measured by a clock that never
jumps, until the jump is undone, readings of several sensors agree with the new time, or an
operator confirms it. A restart of the service believes the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from streamridge_service.plan import MINUTE, SECOND

# A difference between the two clocks of the machine that drift does not explain.
JUMP = 30 * SECOND
# How far a reading may be ahead of the time at which it arrives.
AHEAD = 10 * MINUTE
# A jump is believed after the first time if at least this many sensors agree with it, and more than
# disagree. It is believed after the second time if all sensors that sent readings agree.
SENSORS, SOON, LATER = 3, 5 * MINUTE, 15 * MINUTE


def _steady_seconds() -> float:
    """Return the seconds of a clock that never jumps; on Linux it also runs while asleep."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class MachineClock:
    """The machine's clock. Only `now` may be called by several threads."""

    def __init__(
        self,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,  # microseconds since 1970
        steady: Callable[[], float] = _steady_seconds,
    ) -> None:
        self._wall, self._read_steady = wall, steady
        self._offset = wall() - self._steady()  # between the two clocks, when last trusted
        self.jump = 0  # the present error of the clock, in microseconds
        self._jumped_at = 0
        # Sensors with readings since the jump, and whether these agree with the new time.
        self._agrees: dict[int, bool] = {}

    def _steady(self) -> int:
        return int(self._read_steady() * SECOND)

    def now(self) -> int:
        """Return the machine's time; after a jump, the time without it."""
        wall, expected = self._wall(), self._steady() + self._offset
        return wall if abs(wall - expected) <= JUMP else expected

    def check(self) -> str | None:
        """Compare the two clocks, and update `jump`; return what has changed, in words."""
        jump = self._wall() - self._steady() - self._offset
        before, self.jump = self.jump, jump if abs(jump) > JUMP else 0
        if not self.jump:
            self.trust()  # the clock drifts, and is corrected, a little
            return "the clock has returned" if before else None
        if not before or abs(jump - before) > JUMP:
            self._jumped_at, self._agrees = self._steady(), {}
            seconds = round(jump / SECOND)
            return f"the clock jumped by {seconds} seconds; the time before it stays in use"
        if self._is_confirmed():
            self.trust()
            return f"readings confirm the clock, which jumped by {round(jump / SECOND)} seconds"
        return None

    def trust(self) -> None:
        """Use the machine's present time from now on."""
        self._offset, self.jump = self._wall() - self._steady(), 0

    def add_reading(self, sensor: int, moment: int, delay: int) -> None:
        """Compare a reading that has just arrived, at most `delay` late, with the two times."""
        if self.jump:
            fits_new, fits_old = (
                now - delay <= moment <= now + AHEAD for now in (self._wall(), self.now())
            )
            if fits_new or fits_old:
                self._agrees[sensor] = fits_new

    def _is_confirmed(self) -> bool:
        """Return whether enough readings have agreed with the new time, for long enough."""
        agree = sum(self._agrees.values())
        differ, elapsed = len(self._agrees) - agree, self._steady() - self._jumped_at
        if elapsed >= LATER and not differ:
            return agree > 0
        return elapsed >= SOON and agree >= SENSORS and agree > differ
