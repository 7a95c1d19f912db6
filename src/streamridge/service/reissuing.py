"""Forecasts made again from a log: each as it was issued, by the fit that was in force then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from streamridge.service.ledger.records import Entry, Issued, Kind, Snapshot
from streamridge.service.replaying import Log, issued_since
from streamridge.service.sameness import nearly_equal_forecasts


def forecast_fault(
    log: Log, issued: Sequence[Issued], done: int, made: Sequence[Snapshot], *, exact: bool
) -> str | None:
    """Return what is wrong with the forecasts of a sensor, the first fault only.

    Parameters
    ----------
    log
        The log of the sensor.
    issued
        Its forecasts as they are stored.
    done
        Up to this arrival number, forecasts of all readings have been stored.
    made
        Its cuts, made again.
    exact
        Whether forecasts must be the same to the last bit.
    """
    by_fit: dict[int, list[Issued]] = defaultdict(list)
    for each in issued:
        by_fit[each.fit].append(each)
    known = {each.seq for each in issued}
    ends = [*(each.cut.seq for each in made), done]
    fits = [_Fit(log, fit, end, exact) for fit, end in zip([None, *made], ends, strict=True)]
    # Fits of one arrival number cannot be told apart.
    for number, alike in groupby(fits, key=lambda fit: fit.number):
        group = by_fit.pop(number, [])
        faults = [fit.fault(group, known) for fit in alike]
        if None not in faults:
            return faults[-1]
    for number, group in by_fit.items():
        return f"its forecast at arrival number {group[0].seq} is of no fit in its log, {number}."
    return None


@dataclass(frozen=True)
class _Fit:
    """The forecasts of one fit, made again."""

    log: Log
    snapshot: Snapshot | None
    # Up to here none may be missing.
    end: int
    exact: bool

    @property
    def number(self) -> int:
        """Return the number by which forecasts name this fit."""
        return 0 if self.snapshot is None else self.snapshot.cut.seq

    def fault(self, group: Sequence[Issued], known: set[int]) -> str | None:
        """Return what is wrong with the forecasts of this fit."""
        made = self._made(max([self.end, *(issued.seq for issued in group)]))
        for issued in group:
            if not self._is_same(issued, made.get(issued.seq)) and not self._was_same(issued):
                return f"its forecast at arrival number {issued.seq} is not what its log gives."
        missing = [seq for seq in made if self.number < seq <= self.end and seq not in known]
        if missing:
            return f"its forecast at arrival number {min(missing)} is missing."
        return None

    def _made(self, up_to: int) -> dict[int, Issued]:
        """Return forecasts by arrival number, each with declaration and plan of its time."""
        changes = [action.seq - 1 for action in self.log.changes if action.seq <= up_to]
        made: dict[int, Issued] = {}
        for end in (*changes, up_to):
            for issued in issued_since(self.log, self.snapshot, end):
                made.setdefault(issued.seq, issued)
        return made

    def _is_same(self, stored: Issued, made: Issued | None) -> bool:
        if made is None or stored == made or self.exact:
            return stored == made
        return nearly_equal_forecasts(stored, made)

    def _was_same(self, stored: Issued) -> bool:
        """Return whether a forecast was right when it was made: before earlier steps arrived."""
        return any(
            self._is_same(stored, self._made(end).get(stored.seq))
            for end in (stored.seq, *self._overtaken(stored.seq))
        )

    def _overtaken(self, seq: int) -> list[int]:
        """Return the numbers of readings that arrived after one, and are of earlier steps."""
        plan, rule = self.log.plans.at(seq), self.log.rule_at(seq)
        steps = {
            item.seq: plan.step_of(item.time, rule)
            for item in self.log.items
            if isinstance(item, Entry) and item.kind == Kind.LIVE
        }
        if seq not in steps:
            return []
        reach = steps[seq] - plan.open_for
        return [each for each, step in steps.items() if each > seq and reach <= step < steps[seq]]
