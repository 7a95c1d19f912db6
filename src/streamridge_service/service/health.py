"""The health of a service: its disk, its state, and whether it is ready."""

from __future__ import annotations

from streamridge.errors import counted
from streamridge_service.plan import HOUR, NEVER
from streamridge_service.problems import CATALOGUE, Problem
from streamridge_service.service.machine_clock import MachineClock
from streamridge_service.service.writer import Writer

# Disk growth is extrapolated only after this many hours.
LEAST_HOURS = 0.05


class Health:
    """The state of a service, with its reasons; `min_free` bytes of the disk must stay free."""

    def __init__(self, clock: MachineClock, writer: Writer, min_free: int) -> None:
        self._clock, self._writer, self._min_free = clock, writer, min_free
        self.state = "starting"
        # Why the service is not live, as found by the last check.
        self.reasons: list[str] = []
        # Bytes of data, of the log, and free on the disk, at the last measurement.
        self.disk: dict[str, int] = {}
        # Further reasons why the service is not live, although it is ready.
        self.notes: dict[str, str] = {}
        self._is_disk_unknown = False  # whether the last measurement failed
        self.crashing_workers = 0  # the number of workers that crash repeatedly
        self._first_size: tuple[int, int] | None = None  # when, and bytes of data

    @property
    def is_disk_full(self) -> bool:
        """Return whether less of the disk is free than must be."""
        return "free" in self.disk and self.disk["free"] < self._min_free

    @property
    def is_ready(self) -> bool:
        """Return whether the service can store readings and make forecasts."""
        if self.state in ("starting", "stopping") or self.crashing_workers:
            return False
        return not self.is_disk_full and self._writer.error_code is None

    def reasons_now(self) -> list[str]:
        """Return all reasons why the service is not live or not ready at this moment."""
        reasons, code = list(self.reasons), self._writer.error_code
        if self.state in ("starting", "stopping"):
            reasons.insert(0, f"the service is {self.state}")
        if code and not any(code in reason for reason in reasons):
            reasons.append(_failing_writes(code))
        return reasons

    def require_writable(self) -> None:
        """Raise a `Problem` if readings cannot be stored."""
        if self.state == "stopping":
            raise Problem("sr-stopping", "The service is stopping; nothing was stored.")
        if self.is_disk_full:
            raise Problem("sr-disk-full", "The disk has too little free space; nothing was stored.")

    def check(self, now: int, fresh_until: int) -> None:
        """Update the state and its reasons; after `fresh_until` all sensors are stale."""
        reasons = []
        if self._writer.error_code is not None:
            reasons.append(_failing_writes(self._writer.error_code))
        if self.is_disk_full:
            reasons.append("the disk is nearly full")
        if self._is_disk_unknown:
            reasons.append("the disk cannot be measured")
        if self.crashing_workers:
            reasons.append(f"{counted(self.crashing_workers, 'worker')} crashed repeatedly")
        if self._clock.jump:
            reasons.append("the machine's clock has jumped")
        reasons += self.notes.values()
        is_stale = now > fresh_until != NEVER
        if is_stale:
            reasons.append("all sensors are stale")
        self.reasons = reasons
        if self.state != "stopping":
            state = "stale" if is_stale and len(reasons) == 1 else "degraded"
            self.state = state if reasons else "live"

    def set_disk(self, sizes: dict[str, int] | None) -> None:
        """Take over a measurement of the storage; None if it failed."""
        self._is_disk_unknown = sizes is None
        if sizes is None:
            return
        self.disk = sizes
        self._first_size = self._first_size or (self._clock.now(), sizes["data"])

    @property
    def days_left(self) -> float | None:
        """Return the days until the disk is full at the present pace; None if unknown."""
        if self._first_size is None or "free" not in self.disk:
            return None
        since, before = self._first_size
        hours = (self._clock.now() - since) / HOUR
        growth = self.disk["data"] - before
        if hours < LEAST_HOURS or growth <= 0:
            return None
        return self.disk["free"] / (growth / hours) / 24


def _failing_writes(code: str) -> str:
    """Return the reason of a service whose writes fail with a code."""
    title = CATALOGUE[code].title
    return f"writes fail: {title[0].lower()}{title[1:]} ({code})"
