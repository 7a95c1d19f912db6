"""A sensor as known without a model: its clock, its past, and which readings to trust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.features.past import Past
from streamridge.features.timeline import Timeline
from streamridge.forecaster.bounds import Bounds
from streamridge.forecaster.levels import Levels
from streamridge.forecaster.naive import SeasonalNaive
from streamridge.forecaster.plausibility import Plausibility, Verdict
from streamridge.forecaster.settings import Settings
from streamridge.learners.state import joined, part
from streamridge.series.clock import DAY, AnyClock
from streamridge.series.holidays import Holidays
from streamridge.series.sensor_clock import SensorClock
from streamridge.series.writing import Writing

# The smallest size of error, as a share of the value.
ROUNDING = 1e-9

Arrival = Literal["late", "too_late", "duplicates", "conflicts", "implausible"]

# The range of readings before the first fit leaves out this share of them on either side.
TAIL = 0.05


class Sensor:
    """A sensor without a model: its clock, its past with gaps filled, and what is plausible.

    Parameters
    ----------
    settings
        Settings of the forecaster.
    """

    def __init__(self, settings: Settings) -> None:
        features = settings.preset.features
        # A season ago stands in for a model; clock changes can lead a day further back.
        day = 0 if isinstance(settings.step, int) else DAY // settings.step
        self.reach = max(features.reach, *map(round, settings.periods), 0) + day + 1
        self.timeline = Timeline(len(features.extras))
        holidays = None if settings.holidays is None else Holidays(settings.holidays)
        self.clock = SensorClock(settings.step, settings.tz, holidays)
        self.bounds = Bounds.of(settings.bounds)
        self.silent = 0  # steps since the last reading
        self.excluded: tuple[tuple[int, int], ...] = ()  # spans not to be learned from
        self._settings = settings
        self._naive = SeasonalNaive.start(settings.levels)
        self._plausibility = Plausibility()
        self._resolution = np.inf  # the smallest change between readings

    @property
    def has_readings(self) -> bool:
        """Return whether there has been a reading."""
        return len(self.timeline) > 0

    @property
    def next_step(self) -> int:
        """Return the step that is forecast next."""
        return self.timeline.newest + 1

    @property
    def past(self) -> Past:
        """Return the past as features see it."""
        return Past(self.timeline, self.clock.known)

    def past_before(self, columns: Vector | None) -> Past:
        """Return the past before a step with these further columns."""
        return Past(self.timeline, self.clock.known, columns)

    @property
    def least(self) -> float:
        """Return the least size of error: half the smallest change seen, or a rounding."""
        smallest = self._resolution / 2 if np.isfinite(self._resolution) else 0.0
        return max(smallest, ROUNDING * max(abs(self.past.latest), 1.0))

    def place(self, time: object) -> tuple[int, bool]:
        """Return the step that a time belongs to, and whether the time is exactly on it."""
        newest = self.timeline.newest if self.has_readings else None
        step, on_grid = self.clock.place(time, newest)
        if newest is None:
            self.timeline.start_at(step)
        return step, on_grid

    def begin(self, clock: AnyClock, step: int, writing: Writing | None) -> None:
        """Take over the clock of a series, whose first reading is at this step or later."""
        self.clock.adopt(clock, writing)
        self.timeline.start_at(step)

    def seasonal(self) -> Vector:
        """Return the values of a season ago as forecasts, (H,)."""
        steps = range(self.next_step, self.next_step + self._settings.horizon)
        values = np.array([self.past.seasonal(step, self._settings.periods) for step in steps])
        return self.bounds.clipped(values)

    def seasonal_offsets(self, values: Vector, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far the bands of a seasonal forecast reach below and above, (H, L) each."""
        return self._naive.offsets(values, self.least, levels)

    def bounded(self, values: Vector) -> Vector:
        """Return forecasts, or the ends of their bands, clipped to what the sensor may show."""
        plausible = self._plausibility.bounded(values) if self._settings.guard else values
        return self.bounds.clipped(plausible)

    def widened(self, below: Matrix, above: Matrix, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return the bands of a silent sensor, which widen with time up to the seasonal ones."""
        ahead = 1 + np.arange(len(below))
        wider = np.sqrt((self.silent + ahead) / ahead)[:, None]
        lowest, highest = self.seasonal_offsets(self.seasonal(), levels)
        return (
            np.minimum(below, np.maximum(wider * below, lowest)),
            np.maximum(above, np.minimum(wider * above, highest)),
        )

    def push_gap(self, fill: float, columns: Vector | None) -> None:
        """Take a step without a reading."""
        self.silent += 1
        self.timeline.push(fill, read=False, trusted=False, extras=columns)
        first = max(self.next_step - self.silent, self.timeline.after_holes)
        if self.next_step - first >= 2 * self.reach:  # nobody looks back at all of a long silence
            self.timeline.cut(first, self.next_step - self.reach)

    def leap(self, count: int) -> None:
        """Take many steps without a reading at once, filled with the longest season, repeated."""
        self.silent += count
        period = round(max(self._settings.periods, default=1))
        self.timeline.leap(count, period, needed=self.reach)

    def push(
        self, value: float, forecast: float, band: float | None, columns: Vector | None
    ) -> Verdict:
        """Take the next reading, and return whether it can be learned from.

        Parameters
        ----------
        value
            The reading.
        forecast
            The forecast of it, which replaces an implausible reading.
        band
            Half the width of the forecast's band; None trusts every reading.
        columns
            The further columns of the step, if they are known.
        """
        verdict: Verdict = "good"
        if self.has_readings:
            self._learn_of(value)
            if band is not None:
                judged = self._plausibility.judge(value, value - forecast, band)
                verdict, self._plausibility = judged
        kept = forecast if verdict == "implausible" else value
        self.timeline.push(kept, read=True, trusted=verdict == "good", extras=columns)
        self.silent = 0
        return verdict

    def exclude(self, start: object, end: object) -> None:
        """Learn nothing from a span of time: not from readings to come, nor from those known."""
        self.excluded = (*self.excluded, self.clock.span(start, end))
        if self.has_readings:
            steps = self.timeline.remembered()
            self.timeline.unread(steps[self.clock.within(steps, self.excluded[-1:])])

    def is_excluded(self, step: int) -> bool:
        """Return whether a step lies in a span that is not to be learned from."""
        return bool(self.excluded and self.clock.within(np.array([step]), self.excluded)[0])

    def look_back(self, step: int, value: float) -> Arrival:
        """Take a reading of a past step, and return how it counts; a first reading stays."""
        if not self.timeline.is_remembered(step):
            return "too_late"
        if self.timeline.was_read(step):
            same = self.timeline.values(np.array([step]))[0] == value
            return "duplicates" if same else "conflicts"
        doubted = self._settings.guard and self._plausibility.is_implausible(value)
        if doubted or not self.bounds.hold(value):
            return "implausible"
        self.timeline.correct(step, value)
        self.silent = min(self.silent, self.timeline.newest - step)
        return "late"

    def renew(self) -> None:
        """Let the recent readings define what is plausible."""
        _, values, trusted = self.timeline.readings()
        self._plausibility = self._plausibility.renewed(values, trusted)

    def doubt_history(self) -> None:
        """Distrust readings before the first fit that are implausible compared with most others."""
        steps, values, _ = self.timeline.readings()
        low, high = np.quantile(values, [TAIL, 1 - TAIL])
        bulk = Plausibility(low=float(low), high=float(high))
        doubted = np.array([bulk.is_implausible(value) for value in values.tolist()], dtype=bool)
        self.timeline.distrust(steps[doubted])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, except the clock, as arrays."""
        own = np.array([self._resolution, self.silent], dtype=np.float64)
        return joined(
            {
                "timeline": self.timeline.state(),
                "naive": self._naive.state(),
                "plausibility": self._plausibility.state(),
                "own": {"numbers": own, "excluded": np.array(self.excluded).reshape(-1, 2)},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a sensor with the same settings."""
        self.timeline.restore(part(state, "timeline"))
        self._naive = self._naive.restore(part(state, "naive"))
        self._plausibility = self._plausibility.restore(part(state, "plausibility"))
        self._resolution, silent = state["own.numbers"].tolist()
        self.silent = int(silent)
        self.excluded = tuple((int(first), int(last)) for first, last in state["own.excluded"])

    def _learn_of(self, value: float) -> None:
        """Update the smallest change and the seasonal errors, whatever the verdict is."""
        change = abs(value - self.past.latest)
        if 0 < change < self._resolution:
            self._resolution = change
        naive = self.past.seasonal(self.next_step, self._settings.periods)
        self._naive = self._naive.observe(value - naive, self.least)
