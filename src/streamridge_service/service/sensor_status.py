"""The status of every sensor: its summary, its newest forecast, and the state that follows.

Only the event loop reads and changes the table. A status is frozen, and a change replaces it, so
other threads may work on statuses, or on a copy of the table, that the event loop gives them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from statistics import fmean
from typing import Literal, get_args

import msgspec

from streamridge.errors import counted
from streamridge_service.ledger.records import Event, IssuedForecast, SensorRow
from streamridge_service.plan import DAY, HOUR, MINUTE, NEVER, Declaration, Plan
from streamridge_service.stream_clock import StreamClock
from streamridge_service.workers.error_scores import Scores
from streamridge_service.workers.sensor_state import SensorSummary

# A sensor is forecast for this long after its last step.
LOST = 7 * 24 * HOUR
# Number of equal readings in a row after which a sensor counts as constant.
REPEATS = 50
# Sensors checked without a pause: about a millisecond of work.
CHUNK = 2000

StateName = Literal[
    "good", "stale", "silent", "constant", "zero", "implausible", "degraded", "rebuilt", "new"
]
STATES: tuple[StateName, ...] = get_args(StateName)


class SensorStatus(msgspec.Struct, frozen=True):
    """All that the service knows about one sensor."""

    sensor: SensorRow
    declared: Declaration
    plan: Plan  # the sensor's own
    summary: SensorSummary = SensorSummary()  # the last report of its worker
    seq: int = 0  # the arrival number up to which its worker has processed readings
    accepted: int = NEVER  # the newest step with a stored reading, which may not be processed yet
    forecast: IssuedForecast | None = None  # the newest one
    fault: str | None = None  # why it cannot be processed, or not be stored
    acknowledged: StateName | None = None  # the state that an operator knows about

    @property
    def is_archived(self) -> bool:
        """Return whether the sensor was archived."""
        return self.sensor.archived is not None

    @property
    def newest(self) -> int:
        """Return the newest step with a reading, processed or not; `NEVER` before the first."""
        return max(self.accepted, self.summary.newest)

    def state(self, now: int) -> tuple[StateName, str]:
        """Return the state at a time, and the reason for it in words."""
        summary, plan = self.summary, self.plan
        age = now - self.newest
        if self.fault is not None:
            return "degraded", self.fault
        if self.newest == NEVER:
            return "new", "there is no reading yet"
        if age > plan.stale_after:
            name: StateName = "silent" if age > plan.silent_after else "stale"
            return name, f"no reading for {_age(age)}"
        if summary.rebuilt:
            return "rebuilt", "the stored state was damaged and was rebuilt from the readings"
        if summary.failed is not None:
            return "degraded", f"the last refit failed: {summary.failed}"
        if summary.doubted:
            return "implausible", "the last reading is far outside the sensor's usual range"
        if summary.equal >= REPEATS:
            name = "zero" if summary.value == 0 else "constant"
            return name, f"{summary.equal} equal readings in a row"
        if not summary.fitted:
            return "new", "there are too few readings for a model yet"
        return "good", ""

    def scores(self, now: int) -> Scores:
        """Return the errors at a time; those of the last day only if it has a reading."""
        scores = self.summary.scores
        return scores if now - self.newest <= DAY else scores.without_last_day

    def reason_without_forecast(self, now: int) -> str | None:
        """Return why the sensor has no forecast at a time; None if it should have one."""
        if self.newest == NEVER:
            return "there is no reading yet"
        if now - self.newest > LOST + self.plan.step:
            return "there was no reading for more than seven days"
        return None


class SensorStatuses:
    """The table of all sensors."""

    def __init__(
        self, plan: Plan, alert_outside: int = 3, stream: StreamClock | None = None
    ) -> None:
        self._plan = plan  # of the service
        self._stream = stream  # follows the newest readings
        self._alert_outside = alert_outside  # readings outside intervals in a row that are an event
        self._by_id: dict[int, SensorStatus] = {}
        self._ids: dict[str, int] = {}
        self._announced: dict[int, StateName] = {}
        self._outside: set[int] = set()  # sensors with such an event
        # At the last check: the number of sensors in each state, of sensors whose last reading was
        # outside its interval, and the mean ratio of errors in the last day and in four weeks.
        self.counts: dict[str, int] = dict.fromkeys(STATES, 0)
        self.outside_count = 0
        self.error_ratio: float | None = None
        # Time of the newest reading of all sensors: used too often to search for it every time.
        self.newest = NEVER
        # Time until which at least one sensor is not stale.
        self.fresh_until = NEVER

    def __getitem__(self, sensor: int) -> SensorStatus:
        return self._by_id[sensor]

    def __contains__(self, sensor: int) -> bool:
        return sensor in self._by_id

    def find(self, name: str) -> SensorStatus | None:
        """Return the status of a sensor by its name; None if it is unknown."""
        sensor = self._ids.get(name)
        return None if sensor is None else self._by_id[sensor]

    def copy(self) -> dict[int, SensorStatus]:
        """Return a copy of the table by sensor id, for use in any thread."""
        return dict(self._by_id)

    @property
    def active_by_step(self) -> Counter[int]:
        """Return the number of sensors that are not archived, by the length of their step."""
        return Counter(each.plan.step for each in self._by_id.values() if not each.is_archived)

    def put(self, sensor: SensorRow) -> SensorStatus:
        """Add a sensor, or update its declaration."""
        declared, known = _declaration(sensor.declared), self._by_id.get(sensor.id)
        if known is None:
            status = SensorStatus(sensor, declared, self._plan.of(declared))
        else:
            status = msgspec.structs.replace(
                known, sensor=sensor, declared=declared, plan=self._plan.of(declared)
            )
        self._by_id[sensor.id], self._ids[sensor.name] = status, sensor.id
        return status

    def set_summary(self, sensor: int, summary: SensorSummary, seq: int = 0) -> SensorStatus:
        """Replace the summary of a sensor, after the readings up to an arrival number."""
        known = self._by_id[sensor]
        status = msgspec.structs.replace(known, summary=summary, seq=max(known.seq, seq))
        self._by_id[sensor] = status
        if self._stream is not None and summary.newest > known.newest:
            self._stream.add([(sensor, summary.newest)])
        if summary.newest != NEVER:
            self._update_newest(status)
        return status

    def set_accepted(self, newest: Mapping[int, int]) -> None:
        """Note readings that were stored: the time of each sensor's newest one."""
        steps = []
        for sensor, time in newest.items():
            status = self._by_id[sensor]
            step = status.plan.step_of(time)
            if step > status.newest:
                self._by_id[sensor] = status = msgspec.structs.replace(status, accepted=step)
                self._update_newest(status)
                steps.append((sensor, step))
        if self._stream is not None:
            self._stream.add(steps)

    def _update_newest(self, status: SensorStatus) -> None:
        self.newest = max(self.newest, status.newest)
        self.fresh_until = max(self.fresh_until, status.newest + status.plan.stale_after)

    def set_fault(self, sensor: int, fault: str | None) -> None:
        """Set why a sensor cannot be processed or stored; None if it can."""
        if sensor in self._by_id:
            self._by_id[sensor] = msgspec.structs.replace(self._by_id[sensor], fault=fault)

    def set_forecast(self, issued: IssuedForecast) -> None:
        """Replace the forecast of a sensor, unless its known one is newer."""
        status = self._by_id[issued.sensor]
        known = status.forecast
        if known is None or (known.time, known.seq) < (issued.time, issued.seq):
            self._by_id[issued.sensor] = msgspec.structs.replace(status, forecast=issued)

    def set_corrected(self, issued: IssuedForecast) -> SensorStatus:
        """Replace the forecast of a sensor by its correction, unless there is a newer one."""
        status = self._by_id[issued.sensor]
        if status.forecast is not None and status.forecast.seq == issued.seq:
            status = msgspec.structs.replace(status, forecast=issued)
            self._by_id[issued.sensor] = status
        return status

    def acknowledge(self, sensor: int, state: StateName | None) -> None:
        """Note that an operator knows about a state of a sensor; None after it has changed."""
        status = self._by_id[sensor]
        if status.acknowledged != state:
            self._by_id[sensor] = msgspec.structs.replace(status, acknowledged=state)

    def restore_acknowledged(self, events: Iterable[Event]) -> None:
        """Find the states that operators know about in the recorded events."""
        for event in events:
            if event.sensor not in self._by_id:
                continue
            if event.kind == "acknowledged":
                known = event.reason.partition(":")[0]
                self.acknowledge(event.sensor, next(each for each in STATES if each == known))
            elif event.kind in STATES:
                self.acknowledge(event.sensor, None)

    def mark_announced(self, now: int) -> None:
        """Count the present states, and treat them as announced, since a start changes nothing."""
        for _ in self.check(now):
            pass

    def _outside_change(self, status: SensorStatus) -> list[tuple[SensorRow, str, str]]:
        """Return the event of a sensor that leaves its intervals for long, or comes back."""
        sensor, run = status.sensor, status.summary.outside
        if run >= self._alert_outside and sensor.id not in self._outside:
            self._outside.add(sensor.id)
            return [(sensor, "outside", f"{counted(run, 'reading')} in a row outside the interval")]
        if not run and sensor.id in self._outside:
            self._outside.remove(sensor.id)
            return [(sensor, "inside", "the last reading is inside the interval again")]
        return []

    def check(self, now: int) -> Iterator[list[tuple[SensorRow, str, str]]]:
        """Check the state of all sensors in chunks; yield the changes since the last check.

        The counts are replaced at the end, so that they always belong to one check.
        """
        ids, counts, ratios, outside = list(self._by_id), Counter[str](), list[float](), 0
        for start in range(0, len(ids), CHUNK):
            changed: list[tuple[SensorRow, str, str]] = []
            for sensor in ids[start : start + CHUNK]:
                status = self._by_id[sensor]
                if status.is_archived:
                    continue
                state, reason = status.state(now)
                counts[state] += 1
                if state != self._announced.get(sensor, "new"):
                    changed.append((status.sensor, state, reason))
                    self.acknowledge(sensor, None)
                self._announced[sensor] = state
                changed += self._outside_change(status)
                outside += status.summary.outside > 0
                ratio = status.scores(now).ratio if status.summary.fitted else None
                if ratio is not None:
                    ratios.append(ratio)
            yield changed
        self.counts = {state: counts[state] for state in STATES}
        self.outside_count = outside
        self.error_ratio = fmean(ratios) if ratios else None


@lru_cache(maxsize=65_536)
def _declaration(body: bytes) -> Declaration:
    return msgspec.json.decode(body, type=Declaration)


def _age(age: int) -> str:
    """Return an age in words: in minutes up to two hours, then in hours."""
    return counted(age // MINUTE, "minute") if age < 2 * HOUR else counted(age // HOUR, "hour")
