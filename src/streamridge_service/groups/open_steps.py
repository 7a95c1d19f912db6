"""The steps of a group that still wait for readings of some sensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from streamridge_service.ledger.records import GroupMember, IssuedForecast
from streamridge_service.plan import NEVER, SECOND

# A step waits for sensors that have not reported: this share of its length, at most a minute.
# Sensors that usually come later are waited for longer, up to half of a step.
PATIENCE, MOST_SECONDS, MOST_PATIENCE = 0.1, 60.0, 0.5
# Patience beyond the delay of a late sensor, and what is left of it after a step without one.
MARGIN, KEPT = 1.25, 0.98
# As long as fewer sensors have reported than this share, a step waits for its whole length.
QUORUM = 0.25
# A step does not wait any more once a sensor has reported this many later ones.
MOST_OPEN = 96


class CompleteStep(msgspec.Struct, frozen=True):
    """A step that waits no more, and the forecasts that its members name, by arrival number."""

    time: int
    members: tuple[GroupMember, ...]
    forecasts: dict[int, IssuedForecast]


class OpenSteps:
    """Collects the own forecasts of a group's sensors, until all have reported a step.

    A sensor reports a step with the forecast that it makes after it.
    """

    def __init__(self, step: int, newest: int = NEVER) -> None:
        self._step = step
        self.newest = newest  # the last complete step
        self._begun = 0.0  # seconds at which it was first reported
        self.patience = self._least = min(PATIENCE * step / SECOND, MOST_SECONDS)
        # By sensor: own forecasts by their first step, and readings by step.
        self._forecasts: dict[int, dict[int, IssuedForecast]] = defaultdict(dict)
        self._values: dict[int, dict[int, float | None]] = defaultdict(dict)
        self._since: dict[int, float] = {}  # seconds at which a step was first reported

    def add(self, issued: IssuedForecast, value: float | None, now: float) -> None:
        """Add the forecast of a sensor after a step, with the reading of that step."""
        step = issued.time - self._step
        if issued.time > self.newest:
            self._forecasts[issued.sensor][issued.time] = issued
        if step > self.newest:
            self._values[issued.sensor][step] = value
            self._since.setdefault(step, now)
        elif step == self.newest and self._begun:
            longest = MOST_PATIENCE * self._step / SECOND
            self.patience = min(max(self.patience, MARGIN * (now - self._begun)), longest)

    def remove(self, sensor: int) -> None:
        """Forget a sensor."""
        self._forecasts.pop(sensor, None)
        self._values.pop(sensor, None)

    def next_complete(self, members: Sequence[int], now: float) -> CompleteStep | None:
        """Return the first open step if it is complete, or has waited for too long."""
        if not self._since:
            return None
        time = min(self._since)
        if self._must_wait(time, members, now):
            return None
        found: list[GroupMember] = []
        forecasts: dict[int, IssuedForecast] = {}
        for sensor in members:
            own, following = (self._forecasts[sensor].get(t) for t in (time, time + self._step))
            numbers = (0 if each is None else each.seq for each in (own, following))
            found.append(GroupMember(sensor, self._values[sensor].get(time), *numbers))
            forecasts |= {each.seq: each for each in (own, following) if each is not None}
        self._forget(time)
        return CompleteStep(time, tuple(found), forecasts)

    def _must_wait(self, time: int, members: Sequence[int], now: float) -> bool:
        """Return whether sensors with an earlier forecast may still report a step."""
        if max(self._since) - time >= MOST_OPEN * self._step:
            return False
        firsts = [max(known) for each in members if (known := self._forecasts[each])]
        behind = sum(first <= time for first in firsts)
        waited = now - self._since[time]
        if waited > self.patience and len(firsts) - behind >= QUORUM * len(firsts):
            return False
        return behind > 0 and waited <= self._step / SECOND

    def _forget(self, time: int) -> None:
        """Forget a step that is complete."""
        self.newest, self._begun = time, self._since.pop(time)
        self.patience = max(self._least, KEPT * self.patience)
        for known in self._forecasts.values():
            for first in [first for first in known if first <= time]:
                del known[first]
        for values in self._values.values():
            values.pop(time, None)
