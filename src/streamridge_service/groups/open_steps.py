"""The steps of a group that still wait for readings of some sensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from streamridge_service.ledger.records import GroupMember, IssuedForecast
from streamridge_service.plan import NEVER, SECOND

# A step waits for a sensor that has not reported for this share of its length, at most a minute.
PATIENCE, MOST_SECONDS = 0.1, 60.0
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
        self.patience = min(PATIENCE * step / SECOND, MOST_SECONDS)
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
        """Return whether a sensor with a forecast for a step has reported neither it nor later."""
        if now - self._since[time] > self.patience:
            return False
        if max(self._since) - time >= MOST_OPEN * self._step:
            return False
        return any(max(self._forecasts[each], default=NEVER) == time for each in members)

    def _forget(self, time: int) -> None:
        """Forget a step that is complete."""
        self.newest = time
        del self._since[time]
        for known in self._forecasts.values():
            for first in [first for first in known if first <= time]:
                del known[first]
        for values in self._values.values():
            values.pop(time, None)
