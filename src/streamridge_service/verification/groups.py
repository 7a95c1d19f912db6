"""Verification of groups: their steps are replayed, and the corrections compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from streamridge import Neighbours
from streamridge_service.groups.corrections import GroupCorrections, named_forecasts
from streamridge_service.ledger.errors import DamagedError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.reading import EARLIEST
from streamridge_service.ledger.records import GroupStep, IssuedForecast, SensorRow
from streamridge_service.plan import Plan
from streamridge_service.verification.comparison import nearly_equal_forecasts
from streamridge_service.verification.log_replay import SensorLog
from streamridge_service.verification.verify import NOT_EXACT, PRUNED

# Forecasts that are in memory at once.
MOST_FORECASTS = 20_000


@dataclass(frozen=True)
class GroupCheck:
    """The result of verifying a group."""

    group: str
    fault: str | None = None  # the fault; None if there is none
    remark: str | None = None  # a remark, such as why the group could not be replayed
    corrections: int = 0  # number of corrected forecasts that were compared
    is_exact: bool = False  # whether all are equal bit for bit


def check_groups(ledger: Ledger) -> Iterator[GroupCheck]:
    """Replay all groups, one after the other, and compare their corrections with the stored ones.

    The sensors' own forecasts are taken as they are stored: `check_sensors` verifies them.
    """
    sensors = {sensor.id: sensor for sensor in ledger.sensors()}
    with threadpool_limits(1):
        for name, step in ledger.groups():
            try:
                yield _Replay(ledger, sensors, name, step).check()
            except DamagedError as error:
                yield GroupCheck(name, fault=error.reason)


@dataclass
class _Replay:
    """The replay of one group."""

    ledger: Ledger
    sensors: Mapping[int, SensorRow]
    name: str
    step: int
    corrections: GroupCorrections | None = None
    count: int = 0
    is_exact: bool = True

    def __post_init__(self) -> None:
        self._plans: dict[int, Plan | None] = {}  # of sensors that never had a rule

    def check(self) -> GroupCheck:
        """Replay all steps from the first one with which the group begins."""
        after, most = EARLIEST, 1
        while steps := self.ledger.group_steps(self.name, self.step, after=after, most=most):
            fault = self._fault(steps)
            if fault is not None:
                return GroupCheck(self.name, fault=fault)
            after, most = steps[-1].time, max(MOST_FORECASTS // len(steps[-1].members), 1)
        if self.corrections is None:
            return GroupCheck(self.name, remark=PRUNED)
        remark = None if self.is_exact else NOT_EXACT
        return GroupCheck(self.name, None, remark, self.count, self.is_exact)

    def _fault(self, steps: Sequence[GroupStep]) -> str | None:
        """Replay some steps; return the first fault."""
        own = named_forecasts(self.ledger, steps)
        stored = named_forecasts(self.ledger, steps, corrected=True)
        readings = self._readings(steps)
        for step in steps:
            if step.begins is not None:
                self.corrections = GroupCorrections(self.step, Neighbours(*step.begins))
            if self.corrections is None:  # the steps before were pruned
                continue
            if not _has_values(step, readings):
                return f"its step at {step.time} has a value that is not in the log."
            corrected = {each.seq: each for each in self.corrections.take(step, own)}
            self.count += len(corrected)
            for member in step.members:
                seq = member.following
                if seq and not self._is_same(stored.get(seq), corrected.get(seq, own.get(seq))):
                    return f"its correction at arrival number {seq} differs from the replayed one."
        return None

    def _readings(self, steps: Sequence[GroupStep]) -> dict[int, set[tuple[int, float | None]]]:
        """Return steps and values of readings by sensor, without sensors that ever had a rule."""
        found = {}
        for sensor in {each.sensor for step in steps for each in step.members}:
            if sensor not in self._plans:
                self._plans[sensor] = self._plan(self.sensors[sensor])
            own = self._plans[sensor]
            if own is not None:
                start, end = own.times_of(steps[0].time, steps[-1].time + 1)
                readings = self.ledger.readings(sensor, start=start, end=end)
                found[sensor] = {(own.step_of(each.time), each.value) for each in readings}
        return found

    def _plan(self, sensor: SensorRow) -> Plan | None:
        """Return the plan of a sensor; None if it ever had a rule, which combines readings."""
        log = SensorLog.of_actions(self.ledger, sensor)
        plans = [log.plan_at(seq) for seq in (0, *(each.seq for each in log.changes))]
        return None if any(plan.rule for plan in plans) else plans[-1]

    def _is_same(self, stored: IssuedForecast | None, replayed: IssuedForecast | None) -> bool:
        if stored is None or replayed is None or stored == replayed:
            return stored == replayed
        self.is_exact = False
        return nearly_equal_forecasts(stored, replayed)


def _has_values(step: GroupStep, readings: Mapping[int, set[tuple[int, float | None]]]) -> bool:
    """Return whether all values of a step are values of readings."""
    return all(
        each.value is None
        or each.sensor not in readings
        or (step.time, each.value) in readings[each.sensor]
        for each in step.members
    )
