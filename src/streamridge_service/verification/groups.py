"""Verification of groups: their steps are replayed, and the corrections compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from threadpoolctl import threadpool_limits

from streamridge_service.groups.corrections import GroupCorrections, named_forecasts
from streamridge_service.ledger.errors import DamagedError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.plan_log import read_plans
from streamridge_service.ledger.reading import EARLIEST
from streamridge_service.ledger.records import GroupStep, IssuedForecast
from streamridge_service.plan import Declaration, Plan, Plans
from streamridge_service.verification.comparison import nearly_equal_forecasts
from streamridge_service.verification.verify import NOT_EXACT, PRUNED

# Steps that are replayed at once; their forecasts and readings are in memory.
MOST_STEPS = 500


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
    plans = read_plans(ledger)
    with threadpool_limits(1):
        for name, step in ledger.groups() if plans is not None else ():
            assert plans is not None
            try:
                yield _Replay(ledger, plans, name, step).check()
            except DamagedError as error:
                yield GroupCheck(name, fault=error.reason)


@dataclass
class _Replay:
    """The replay of one group."""

    ledger: Ledger
    plans: Plans
    name: str
    step: int
    corrections: GroupCorrections | None = None
    count: int = 0
    is_exact: bool = True

    def check(self) -> GroupCheck:
        """Replay all steps."""
        after = EARLIEST
        while steps := self.ledger.group_steps(self.name, self.step, after=after, most=MOST_STEPS):
            if self.corrections is None and not steps[0].is_first:
                return GroupCheck(self.name, remark=PRUNED)
            fault = self._fault(steps)
            if fault is not None:
                return GroupCheck(self.name, fault=fault)
            after = steps[-1].time
        remark = None if self.is_exact else NOT_EXACT
        return GroupCheck(self.name, None, remark, self.count, self.is_exact)

    def _fault(self, steps: Sequence[GroupStep]) -> str | None:
        """Replay some steps; return the first fault."""
        own = named_forecasts(self.ledger, steps)
        stored = named_forecasts(self.ledger, steps, corrected=True)
        readings = _readings(self.ledger, self.plans.latest, steps)
        for step in steps:
            if not _has_values(step, readings):
                return f"its step at {step.time} has a value that is not in the log."
            corrected = {each.seq: each for each in self._corrections(step).take(step, own)}
            self.count += len(corrected)
            for member in step.members:
                seq = member.following
                if seq and not self._is_same(stored.get(seq), corrected.get(seq, own.get(seq))):
                    return f"its correction at arrival number {seq} differs from the replayed one."
        return None

    def _corrections(self, step: GroupStep) -> GroupCorrections:
        if step.is_first or self.corrections is None:
            seq = max(max(each.own, each.following) for each in step.members)
            plan = msgspec.structs.replace(self.plans.at(seq), step=self.step, rule=None)
            self.corrections = GroupCorrections(plan)
        return self.corrections

    def _is_same(self, stored: IssuedForecast | None, replayed: IssuedForecast | None) -> bool:
        if stored is None or replayed is None or stored == replayed:
            return stored == replayed
        self.is_exact = False
        return nearly_equal_forecasts(stored, replayed)


def _readings(
    ledger: Ledger, plan: Plan, steps: Sequence[GroupStep]
) -> Mapping[int, set[tuple[int, float | None]]]:
    """Return steps and values of readings by sensor; those with a rule have no values of steps."""
    found = {}
    sensors = {each.sensor for step in steps for each in step.members}
    for sensor in ledger.sensors():
        own = plan.of(msgspec.json.decode(sensor.declared, type=Declaration))
        if sensor.id in sensors and own.rule is None:
            start, end = own.times_of(steps[0].time, steps[-1].time + 1)
            readings = ledger.readings(sensor.id, start=start, end=end)
            found[sensor.id] = {(own.step_of(each.time), each.value) for each in readings}
    return found


def _has_values(step: GroupStep, readings: Mapping[int, set[tuple[int, float | None]]]) -> bool:
    """Return whether all values of a step are values of readings."""
    return all(
        each.value is None
        or each.sensor not in readings
        or (step.time, each.value) in readings[each.sensor]
        for each in step.members
    )
