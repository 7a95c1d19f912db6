"""From a time as someone writes it to the step of a sensor, reading by reading."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.errors import InvalidInputError, StateError
from streamridge.series.clock import Clock, parse_zone
from streamridge.series.local_time import moments
from streamridge.series.readings import parse_time

# A reading further ahead than this is taken for a wrong stamp, as is one outside these years.
LONGEST_GAP = timedelta(days=1000)
EARLIEST, LATEST = np.datetime64("1800-01-01", "us"), np.datetime64("2500-01-01", "us")


class SensorClock:
    """Understands the times of one sensor; its first reading says where in a step its stamps lie.

    Parameters
    ----------
    step
        Time between readings.
    tz
        Zone of times without an offset.

    Examples
    --------
    >>> clock = SensorClock(timedelta(minutes=15))
    >>> first, _ = clock.place("2021-06-13T00:05", newest=None)
    >>> step, on_grid = clock.place("2021-06-13T00:21", newest=first)
    >>> step - first, on_grid
    (1, False)
    """

    def __init__(self, step: timedelta, tz: str | None = None) -> None:
        self._zone = parse_zone(tz)
        self._step = step
        self.clock: Clock | None = None
        self._zoned = False

    def place(self, time: object, newest: int | None) -> tuple[int, bool]:
        """Return the step of a time, and whether the time is exactly there.

        Of a local time that comes twice the one is meant that is nearer to the next step.
        """
        stamp, zoned = parse_time(time)
        if not EARLIEST <= stamp < LATEST:
            raise InvalidInputError(f"time must lie between 1800 and 2500, got {time!s}.")
        if self.clock is not None and self._zone is None and zoned != self._zoned:
            raise InvalidInputError(
                f"time must {'' if self._zoned else 'not '}carry an offset, as those before it, "
                f"got {time!s}."
            )
        local = self._zone is not None and not zoned
        candidates = _moments(stamp, self._zone) if local and self._zone else np.array([stamp])
        clock = self.clock or Clock(self._step, self._phase(candidates[0]), self._zone)
        steps = clock.steps(candidates)
        at = 0 if newest is None else int(np.argmin(np.abs(steps - newest - 1)))
        if newest is not None and (int(steps[at]) - newest) * self._step > LONGEST_GAP:
            raise InvalidInputError(
                f"time must be within {LONGEST_GAP.days} days of the newest reading, got {time!s}."
            )
        self.clock, self._zoned = clock, zoned
        return int(steps[at]), bool(clock.times(steps[at]) == candidates[at])

    @property
    def known(self) -> Clock:
        """Return the clock, which the first reading has set."""
        if self.clock is None:
            raise StateError("a reading must have set the clock first.")
        return self.clock

    def state(self) -> dict[str, float | bool | None]:
        """Return all that changes, as plain values."""
        phase = None if self.clock is None else self.clock.phase.total_seconds()
        return {"phase": phase, "zoned": self._zoned}

    def restore(self, state: dict[str, float | bool | None]) -> None:
        """Go on from a state of a clock of the same step and zone."""
        phase = state["phase"]
        self.clock = (
            None if phase is None else Clock(self._step, timedelta(seconds=phase), self._zone)
        )
        self._zoned = bool(state["zoned"])

    def _phase(self, time: np.datetime64) -> timedelta:
        within = (time - time.astype("M8[D]")) % np.timedelta64(self._step)
        return within.astype("m8[us]").tolist()


def _moments(local: np.datetime64, zone: ZoneInfo) -> np.ndarray:
    candidates = moments(local.astype("M8[us]").tolist(), zone)
    if not candidates:
        raise InvalidInputError(
            f"time must exist, got {local.astype('M8[s]')}, which clocks skip in {zone.key}."
        )
    return np.array(candidates, dtype="M8[us]")
