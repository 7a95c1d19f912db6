"""Times as people write them to steps of a sensor, reading by reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, StateError, shown
from streamridge.series.clock import (
    DAY,
    EPOCH,
    AnyClock,
    Clock,
    IndexClock,
    Length,
    Steps,
    Times,
    parse_zone,
)
from streamridge.series.holidays import Holidays
from streamridge.series.local_time import moments
from streamridge.series.rates import JITTER
from streamridge.series.readings import parse_stamp
from streamridge.series.writing import AS_IS, Writing, zone_of

# A stamp further ahead than this, or outside these years, is taken to be wrong.
LONGEST_GAP = timedelta(days=1000)
# Steps may be long, so that a gap of this many is always believed.
LEAST_STEPS = 100
# The same for an integer index; larger numbers would be seconds since 1970.
MOST_STEPS, LARGEST_INDEX = 1_000_000, 100_000_000
EARLIEST, LATEST = np.datetime64("1800-01-01", "us"), np.datetime64("2500-01-01", "us")


class SensorClock:
    """The clock of one sensor; its first two readings settle where in a step its stamps lie.

    Most sensors stamp round times, multiples of the step since local midnight, or times that lie
    equally far behind them. So a first stamp about a round time sets the clock, and another one
    does until the second: if that is about a round time, and not where the first one lies within
    its step, the clock is set to round times. The first reading then belongs to the round time
    before it: no other reading can, so that none is lost. Steps of more than a day, and those of an
    index, are set by the first reading.

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
        self, step: Length, tz: str | None = None, holidays: Holidays | None = None
    ) -> None:
        self._zone = parse_zone(tz)
        self._most_ahead = MOST_STEPS if isinstance(step, int) else longest_gap(step) // step
        self._holidays = holidays
        self._step = step
        self.clock: AnyClock | None = None
        self._settled = True  # or the second reading may still set the clock to round times
        self.writing: Writing | None = None  # how the latest time was written

    def place(self, time: object, newest: int | None) -> tuple[int, bool]:
        """Return the step nearest to a time, and whether the time is exactly that step's.

        A local time that occurs twice means the moment nearer to the next expected step.
        """
        if isinstance(self._step, int):
            return self._place_index(_require_index(time), self._step, newest)
        candidates, writing = self._moments(time)
        settled, clock = self._settling(candidates, writing, newest, self._step)
        places = [clock.nearest(moment) for moment in candidates.astype(np.int64).tolist()]
        step, on_grid = places[0]
        if newest is not None:
            step, on_grid = min(places, key=lambda place: abs(place[0] - newest - 1))
            self._require_near(step - newest, self._step, time)
        self.clock, self.writing, self._settled = clock, writing, settled
        return step, on_grid

    def _require_near(self, ahead: int, step: timedelta, time: object) -> None:
        """Raise if a time lies so many steps ahead that it must be wrong."""
        if ahead > self._most_ahead:
            days = longest_gap(step).days
            raise InvalidInputError(
                f"time must be within {days} days of the newest reading, got {time!s}."
            )

    def _settling(
        self, candidates: Times, writing: Writing, newest: int | None, step: timedelta
    ) -> tuple[bool, Clock]:
        """Return whether the clock is settled once a reading has come, and the clock."""
        before = self.clock if isinstance(self.clock, Clock) else None
        if before is not None and (self._settled or newest is None):
            return True, before
        stamp = candidates[0]
        own = before or self._made(step, phase_of(stamp, step))
        phase = _round_phase(stamp, writing, step)
        # The steps so far keep their numbers, and become the round times before them.
        rounded = replace(own, phase=phase - step if phase > own.phase else phase)
        is_round = _is_about(stamp, rounded)
        if newest is None:
            return is_round or step > DAY, own
        is_next = int(rounded.steps(candidates)[0]) > newest
        moves = is_round and is_next and not _is_about(stamp, own)
        return is_next, rounded if moves else own

    def adopt(self, clock: AnyClock, writing: Writing | None) -> None:
        """Take over the clock of a series, and how its times were written, if that is known."""
        self.clock, self.writing = clock, writing
        if isinstance(clock, Clock):
            self.clock = replace(clock, holidays=self._holidays)

    def span(self, start: object, end: object) -> tuple[int, int]:
        """Return the first and the last moment of a span of time, for `within`."""
        (first, writing), (last, also) = self._moments(start), self._moments(end)
        if writing.zoned != also.zoned:
            raise InvalidInputError(
                f"start and end must both have an offset or none, got {start!s} and {end!s}."
            )
        if last[-1] < first[0]:
            raise InvalidInputError(f"end must not be before start, got {start!s} to {end!s}.")
        self.writing = self.writing or writing
        return int(first[0].astype(np.int64)), int(last[-1].astype(np.int64))

    def within(self, steps: Steps, spans: Sequence[tuple[int, int]]) -> Mask:
        """Return which steps lie in one of some spans."""
        at = self.known.times(steps).astype(np.int64)
        inside = np.zeros(len(steps), dtype=bool)
        for first, last in spans:
            inside |= (first <= at) & (at <= last)
        return inside

    def _place_index(self, time: int, step: int, newest: int | None) -> tuple[int, bool]:
        clock = self.clock or IndexClock(step, time % step)
        at = clock.steps(np.array([time]))
        if newest is not None and at[0] - newest > MOST_STEPS:
            raise InvalidInputError(
                f"time must be within {MOST_STEPS} steps of the newest reading, got {time}."
            )
        self.clock = clock
        return int(at[0]), bool(clock.times(at)[0] == time)

    @property
    def known(self) -> AnyClock:
        """Return the clock; raise if no reading has set it yet."""
        if self.clock is None:
            raise StateError(
                "clock must be set by a first reading, got none. Observe a reading first."
            )
        return self.clock

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain values."""
        writing = None if self.writing is None else self.writing.plain()
        return {"phase": self._phase, "writing": writing, "settled": self._settled}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a clock with the same step and zone."""
        phase = state["phase"]
        if phase is None:
            self.clock = None
        elif isinstance(self._step, int):
            self.clock = IndexClock(self._step, int(phase))
        else:
            self.clock = self._made(self._step, timedelta(seconds=phase))
        self.writing = self._known_writing(state)
        self._settled = bool(state.get("settled", True))

    def _known_writing(self, state: Mapping[str, Any]) -> Writing | None:
        """Return how times were written, as far as a file says; None if the next one shall tell."""
        if "writing" in state:
            return None if state["writing"] is None else Writing.from_plain(state["writing"])
        # Earlier versions only said whether times had an offset, and only of live readings.
        tz = None if self._zone is None else self._zone.key
        return Writing(zoned=True, zone=tz or "UTC") if state["zoned"] else None

    def _moments(self, time: object) -> tuple[Times, Writing]:
        """Return the moments that a time may mean, and how it is written."""
        if isinstance(self._step, int):
            return np.array([_require_index(time)]), AS_IS
        stamp, offset = parse_stamp(time)
        zoned = offset is not None
        if not EARLIEST <= stamp < LATEST:
            raise InvalidInputError(f"time must be between the years 1800 and 2500, got {time!s}.")
        before = self.writing
        if self._zone is None and before is not None and before.zoned != zoned:
            raise InvalidInputError(
                f"time must have {'an' if before.zoned else 'no'} offset, as the times before it, "
                f"got {time!s}."
            )
        if offset is not None:
            return np.array([stamp]), _written(time, stamp, offset)
        if self._zone is None:
            return np.array([stamp]), AS_IS
        return _moments(stamp, self._zone), Writing(zone=self._zone.key)

    def _made(self, step: timedelta, phase: timedelta) -> Clock:
        return Clock(step, phase, self._zone, self._holidays)

    @property
    def _phase(self) -> float | None:
        if self.clock is None:
            return None
        phase = self.clock.phase
        return phase if isinstance(phase, int) else phase.total_seconds()


def _round_phase(stamp: np.datetime64, writing: Writing, step: timedelta) -> timedelta:
    """Return where within a step of a clock without a phase the round local times lie."""
    return timedelta(seconds=-int(writing.ahead(np.array([stamp]))[0])) % step


def _is_about(stamp: np.datetime64, clock: Clock) -> bool:
    """Return whether a stamp lies on a step of a clock, but for some jitter."""
    nearest = clock.times(clock.steps(np.array([stamp])))[0]
    return bool(abs(stamp - nearest) <= JITTER * np.timedelta64(clock.step))


def _written(time: object, stamp: np.datetime64, offset: int) -> Writing:
    """Return how a time with an offset is written: in its zone if that has a name."""
    zone = zone_of(time)
    pairs = () if zone is not None else ((int(stamp.astype(np.int64)), offset),)
    return Writing(zoned=True, zone=zone, offsets=pairs)


def longest_gap(step: timedelta) -> timedelta:
    """Return how far two readings may lie apart before a stamp is taken to be wrong."""
    return max(LONGEST_GAP, LEAST_STEPS * step)


def phase_of(time: np.datetime64, step: timedelta) -> timedelta:
    """Return how far a time lies behind the last step of a clock without a phase."""
    within = (time - EPOCH) % np.timedelta64(step)
    return within.astype("m8[us]").tolist()


def _require_index(time: object) -> int:
    """Return a time as a whole number of an index; raise if it is none, or looks like a date."""
    # A length of time is one of NumPy's integers, but no number.
    if isinstance(time, bool | np.timedelta64) or not isinstance(time, int | np.integer):
        raise InvalidInputError(
            f"time must be a whole number, since the step is one, got {shown(time)}."
        )
    if abs(int(time)) > LARGEST_INDEX:
        raise InvalidInputError(
            f"time must be at most {LARGEST_INDEX} in size, got {time}. If it counts seconds or "
            "milliseconds since 1970, pass times and a step such as 15min instead."
        )
    return int(time)


def _moments(local: np.datetime64, zone: ZoneInfo) -> np.ndarray:
    candidates = moments(local.astype("M8[us]").tolist(), zone)
    if not candidates:
        raise InvalidInputError(
            f"time must exist in {zone.key}, got {local.astype('M8[s]')}, which clocks skip there."
        )
    return np.array(candidates, dtype="M8[us]")
