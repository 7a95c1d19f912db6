"""Times as people write them to steps of a sensor, reading by reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, StateError
from streamridge.series.clock import Clock, Steps, Times, parse_zone
from streamridge.series.holidays import Holidays
from streamridge.series.local_time import moments
from streamridge.series.readings import parse_time

# A stamp further ahead than this, or outside these years, is taken to be wrong.
LONGEST_GAP = timedelta(days=1000)
EARLIEST, LATEST = np.datetime64("1800-01-01", "us"), np.datetime64("2500-01-01", "us")


class SensorClock:
    """The clock of one sensor; the first reading sets where in a step its stamps lie.

    Parameters
    ----------
    step
        Time between readings.
    tz
        Time zone of times without an offset.
    holidays
        The days that run like a Sunday, if they are known.

    Examples
    --------
    >>> clock = SensorClock(timedelta(minutes=15))
    >>> first, _ = clock.place("2021-06-13T00:05", newest=None)
    >>> step, on_grid = clock.place("2021-06-13T00:21", newest=first)
    >>> step - first, on_grid
    (1, False)
    """

    def __init__(
        self, step: timedelta, tz: str | None = None, holidays: Holidays | None = None
    ) -> None:
        self._zone = parse_zone(tz)
        self._holidays = holidays
        self._step = step
        self.clock: Clock | None = None
        self._zoned: bool | None = None  # whether times have offsets, once one was given

    def place(self, time: object, newest: int | None) -> tuple[int, bool]:
        """Return the step nearest to a time, and whether the time is exactly that step's.

        A local time that occurs twice means the moment nearer to the next expected step.
        """
        candidates, zoned = self._moments(time)
        clock = self.clock or self._made(self._phase(candidates[0]))
        steps = clock.steps(candidates)
        at = 0 if newest is None else int(np.argmin(np.abs(steps - newest - 1)))
        if newest is not None and (int(steps[at]) - newest) * self._step > LONGEST_GAP:
            raise InvalidInputError(
                f"time must be within {LONGEST_GAP.days} days of the newest reading, got {time!s}."
            )
        self.clock, self._zoned = clock, zoned
        return int(steps[at]), bool(clock.times(steps[at]) == candidates[at])

    def adopt(self, clock: Clock) -> None:
        """Take over the clock of a series; later times may have offsets or not."""
        self.clock = replace(clock, holidays=self._holidays)

    def span(self, start: object, end: object) -> tuple[int, int]:
        """Return the first and the last moment of a span of time, for `within`."""
        (first, zoned), (last, also) = self._moments(start), self._moments(end)
        if zoned != also:
            raise InvalidInputError(
                f"start and end must both have an offset or none, got {start!s} and {end!s}."
            )
        if last[-1] < first[0]:
            raise InvalidInputError(f"end must not be before start, got {start!s} to {end!s}.")
        self._zoned = zoned
        return int(first[0].astype(np.int64)), int(last[-1].astype(np.int64))

    def within(self, steps: Steps, spans: Sequence[tuple[int, int]]) -> Mask:
        """Return which steps lie in one of some spans."""
        at = self.known.times(steps).astype(np.int64)
        inside = np.zeros(len(steps), dtype=bool)
        for first, last in spans:
            inside |= (first <= at) & (at <= last)
        return inside

    @property
    def known(self) -> Clock:
        """Return the clock; raise if no reading has set it yet."""
        if self.clock is None:
            raise StateError(
                "clock must be set by a first reading, got none. Observe a reading first."
            )
        return self.clock

    def state(self) -> dict[str, float | bool | None]:
        """Return everything that changes, as plain values."""
        phase = None if self.clock is None else self.clock.phase.total_seconds()
        return {"phase": phase, "zoned": self._zoned}

    def restore(self, state: dict[str, float | bool | None]) -> None:
        """Continue from the state of a clock with the same step and zone."""
        phase = state["phase"]
        self.clock = None if phase is None else self._made(timedelta(seconds=phase))
        self._zoned = None if state["zoned"] is None else bool(state["zoned"])

    def _moments(self, time: object) -> tuple[Times, bool]:
        """Return the moments that a time may mean, and whether it has an offset."""
        stamp, zoned = parse_time(time)
        if not EARLIEST <= stamp < LATEST:
            raise InvalidInputError(f"time must be between the years 1800 and 2500, got {time!s}.")
        if self._zone is None and self._zoned not in (None, zoned):
            raise InvalidInputError(
                f"time must have {'an' if self._zoned else 'no'} offset, as the times before it, "
                f"got {time!s}."
            )
        if self._zone is None or zoned:
            return np.array([stamp]), zoned
        return _moments(stamp, self._zone), zoned

    def _made(self, phase: timedelta) -> Clock:
        return Clock(self._step, phase, self._zone, self._holidays)

    def _phase(self, time: np.datetime64) -> timedelta:
        within = (time - time.astype("M8[D]")) % np.timedelta64(self._step)
        return within.astype("m8[us]").tolist()


def _moments(local: np.datetime64, zone: ZoneInfo) -> np.ndarray:
    candidates = moments(local.astype("M8[us]").tolist(), zone)
    if not candidates:
        raise InvalidInputError(
            f"time must exist in {zone.key}, got {local.astype('M8[s]')}, which clocks skip there."
        )
    return np.array(candidates, dtype="M8[us]")
