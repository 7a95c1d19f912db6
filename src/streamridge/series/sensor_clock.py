"""Times of a live stream to steps of a sensor, reading by reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.errors import InvalidInputError, StateError, shown
from streamridge.series.clock import AnyClock, Clock, IndexClock
from streamridge.series.clock_fitting import clock_of_times
from streamridge.series.holidays import Holidays
from streamridge.series.lengths import DAY, Length
from streamridge.series.step_detection import JITTER
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import Steps, Times, parse_time
from streamridge.series.zones import parse_zone, utc_candidates, zone_of

# A time further ahead than this, or outside these years, is refused.
LONGEST_GAP = timedelta(days=1000)
# A gap of this many steps is always accepted, since steps may be long.
LEAST_STEPS = 100
# The limits of an integer index; larger numbers would be seconds since 1970.
MOST_STEPS, LARGEST_INDEX = 1_000_000, 100_000_000
EARLIEST, LATEST = np.datetime64("1000-01-01", "us"), np.datetime64("2500-01-01", "us")


class SensorClock:
    """The clock of one sensor; its first two readings settle where in a step its stamps lie.

    Most sensors stamp round times, which are multiples of the step since local midnight, or times
    with a constant offset from these. A first time about a round time sets the clock. Any other
    first time sets it until the second reading: if that is about a round time, and has another
    offset than the first, the clock is set to round times. The first reading then belongs to the
    round time before it, to which no other reading can belong. Steps of more than a day and steps
    of an index are set by the first reading.

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
        self.time_format: TimeFormat | None = None  # how the latest time was written

    def place(self, time: object, newest: int | None) -> tuple[int, bool]:
        """Return the step nearest to a time, and whether the time is exactly that step's.

        A local time that occurs twice means the moment nearer to the next expected step.
        """
        if isinstance(self._step, int):
            return self._place_index(_require_index(time), self._step, newest)
        candidates, time_format = self._moments(time)
        settled, clock = self._settling(candidates, time_format, newest, self._step)
        if time_format.offsets:  # the offset of local time may have changed
            [(_, seconds)] = time_format.offsets
            written = clock.calendar.with_offset(candidates[0], seconds)
            clock = clock if written == clock.calendar else replace(clock, calendar=written)
            time_format = self._continued(candidates[0], seconds) or time_format
        places = [clock.nearest(moment) for moment in candidates.astype(np.int64).tolist()]
        step, on_grid = places[0]
        if newest is not None:
            step, on_grid = min(places, key=lambda place: abs(place[0] - newest - 1))
            if step - newest > self._most_ahead:
                days = longest_gap(self._step).days
                raise InvalidInputError(
                    f"time must be within {days} days of the newest reading, got {time!s}."
                )
        self.clock, self.time_format, self._settled = clock, time_format, settled
        return step, on_grid

    def _continued(self, moment: np.datetime64, seconds: int) -> TimeFormat | None:
        """Return the format of the times before, if its zone was inferred and is still right."""
        before = self.time_format
        if before is None or not before.is_inferred:
            return None
        return before if before.with_offset(moment, seconds) == before else None

    def _settling(
        self, candidates: Times, time_format: TimeFormat, newest: int | None, step: timedelta
    ) -> tuple[bool, Clock]:
        """Return whether the clock is final after a reading, and the clock."""
        before = self.clock if isinstance(self.clock, Clock) else None
        if before is not None and (self._settled or newest is None):
            return True, before
        stamp = candidates[0]
        own = before or clock_of_times(
            candidates[:1], step, self._zone, time_format, self._holidays
        )
        phase = _round_phase(stamp, time_format, own)
        # The steps so far keep their numbers and become the round times before them.
        rounded = replace(own, phase=phase - step if phase > own.phase else phase)
        is_round = _is_about(stamp, rounded)
        if newest is None:
            return is_round or step > DAY, own
        is_next = int(rounded.steps(candidates)[0]) > newest
        moves = is_round and is_next and not _is_about(stamp, own)
        return is_next, rounded if moves else own

    def adopt(self, clock: AnyClock, time_format: TimeFormat) -> None:
        """Use the clock of a series, and its time format."""
        self.clock, self.time_format = clock, time_format
        if isinstance(clock, Clock):
            self.clock = replace(clock, holidays=self._holidays)

    def span(self, start: object, end: object) -> tuple[int, int]:
        """Return the first and the last moment of a span of time, for `within`."""
        (first, time_format), (last, also) = self._moments(start), self._moments(end)
        if time_format.zoned != also.zoned:
            raise InvalidInputError(
                f"start and end must both have an offset or none, got {start!s} and {end!s}."
            )
        if last[-1] < first[0]:
            raise InvalidInputError(f"end must not be before start, got {start!s} to {end!s}.")
        self.time_format = self.time_format or time_format
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
        time_format = None if self.time_format is None else self.time_format.to_json()
        phase = None if self.clock is None else self.clock.phase
        plain = phase.total_seconds() if isinstance(phase, timedelta) else phase
        state = {"phase": plain, "writing": time_format, "settled": self._settled}
        if isinstance(self.clock, Clock) and self.clock.follows_calendar:
            state["calendar"] = self.clock.calendar.to_json()
        if isinstance(self.clock, Clock) and self.clock.even:
            state["even"] = True
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a clock with the same step and zone."""
        phase = state["phase"]
        if phase is None:
            self.clock = None
        elif isinstance(self._step, int):
            self.clock = IndexClock(self._step, int(phase))
        else:
            self.clock = Clock(
                self._step,
                timedelta(seconds=phase),
                self._zone,
                self._holidays,
                TimeFormat.from_json(state.get("calendar")),
                even=bool(state.get("even")),
            )
        written = state["writing"]
        self.time_format = None if written is None else TimeFormat.from_json(written)
        self._settled = bool(state["settled"])

    def _moments(self, time: object) -> tuple[Times, TimeFormat]:
        """Return the moments in UTC that a time may mean, and how it is written."""
        if isinstance(self._step, int):
            return np.array([_require_index(time)]), NAIVE
        stamp, offset = parse_time(time)
        zoned = offset is not None
        if not EARLIEST <= stamp < LATEST:
            raise InvalidInputError(f"time must be between the years 1000 and 2500, got {time!s}.")
        before = self.time_format
        if self._zone is None and before is not None and before.zoned != zoned:
            raise InvalidInputError(
                f"time must have {'an' if before.zoned else 'no'} offset, as the times before it, "
                f"got {time!s}. A forecaster that is started with tz=, such as "
                'tz="Europe/London", takes both.'
            )
        if offset is not None:
            return np.array([stamp]), _written(time, stamp, offset)
        if self._zone is None:
            return np.array([stamp]), NAIVE
        return _moments(stamp, self._zone), TimeFormat(zone=self._zone.key)


def _round_phase(stamp: np.datetime64, time_format: TimeFormat, clock: Clock) -> timedelta:
    """Return where within a step of a clock without a phase the round local times lie."""
    if clock.follows_calendar:
        return timedelta(0)
    return timedelta(seconds=-int(time_format.offsets_at(np.array([stamp]))[0])) % clock.step


def _is_about(stamp: np.datetime64, clock: Clock) -> bool:
    """Return whether a time lies on a step of a clock, apart from some jitter."""
    nearest = clock.times(clock.steps(np.array([stamp])))[0]
    return bool(abs(stamp - nearest) <= JITTER * np.timedelta64(clock.step))


def _written(time: object, stamp: np.datetime64, offset: int) -> TimeFormat:
    """Return the format of a time with an offset, with its zone if that has a name."""
    zone = zone_of(time)
    pairs = () if zone is not None else ((int(stamp.astype(np.int64)), offset),)
    return TimeFormat(zoned=True, zone=zone, offsets=pairs)


def longest_gap(step: timedelta) -> timedelta:
    """Return the longest time between two readings; a longer one is refused."""
    return max(LONGEST_GAP, LEAST_STEPS * step)


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
    candidates = utc_candidates(local.astype("M8[us]").tolist(), zone)
    if not candidates:
        raise InvalidInputError(
            f"time must exist in {zone.key}, got {local.astype('M8[s]')}, which clocks skip there."
        )
    return np.array(candidates, dtype="M8[us]")
