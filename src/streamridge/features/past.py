"""The past as features need it: values by step, and at the same local time seasons ago."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.features.timeline import Timeline
from streamridge.series.clock import AnyClock, Steps


@dataclass(frozen=True)
class Past:
    """A timeline as it is looked up in the sensor's local time.

    Parameters
    ----------
    timeline
        The values that were read or filled in.
    clock
        What a step is, when local clocks changed, and which days are holidays.
    upcoming
        The further columns of the next step, if they are known.
    """

    timeline: Timeline
    clock: AnyClock
    upcoming: Vector | None = None

    def values(self, steps: Steps) -> Vector:
        """Return the values at some steps; the latest value replaces those not remembered."""
        values = self.timeline.values(steps)
        unknown = np.isnan(values)
        if unknown.any():
            values[unknown] = self.latest
        return values

    def trusted(self, steps: Steps) -> Mask:
        """Return which steps have a reading that can be learned from."""
        return self.timeline.trusted(steps)

    def sound(self, steps: Steps) -> Mask:
        """Return which steps have such a reading, or had none and are filled in by a forecast."""
        return self.trusted(steps) | self.timeline.filled(steps)

    @property
    def latest(self) -> float:
        """Return the value of the newest step."""
        return self.timeline.latest

    def local(self, steps: Steps) -> Steps:
        """Return some steps as counted by the local clock."""
        return steps + self.clock.shifts(steps)

    def ago(self, steps: Steps, season: int | Steps) -> Steps:
        """Return the steps at the same local time, one season earlier.

        On the day after clocks went forward, a day ago is 23 hours ago.
        """
        if self.clock.zone is None:
            return steps - season
        return steps - season + self.clock.shifts(steps) - self.clock.shifts(steps - season)

    def within(self, steps: Steps) -> Mask:
        """Return which steps are not before the first reading."""
        return steps >= self.timeline.start

    def seasonal(self, step: int, periods: tuple[float, ...]) -> float:
        """Return the value the longest season earlier, else a shorter one, else the latest.

        Periods are in steps, and ascend; a fraction of a step is rounded. A week before a holiday,
        which runs like the Sunday of its week, lies the last Sunday.
        """
        clock, timeline = self.clock, self.timeline
        for period in reversed(periods):
            season = round(period)
            if clock.holidays is not None and period == clock.week:
                season -= int(clock.before_sunday(np.array([step]))[0])
            at = step - season + clock.shift(step) - clock.shift(step - season)
            if timeline.start <= at <= timeline.newest:
                return timeline.value(at) if timeline.is_remembered(at) else timeline.latest
        return timeline.latest

    def extras(self, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the further columns, zero where unknown, and which steps know all of them."""
        columns = self.timeline.extras(steps)
        if self.upcoming is not None:
            is_next = (steps == self.timeline.newest + 1)[:, None]
            columns = np.where(is_next, self.upcoming, columns)
        unknown = np.isnan(columns)
        return np.where(unknown, 0.0, columns), np.array(~unknown.any(axis=1), dtype=bool)
