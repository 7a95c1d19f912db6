"""A sensor as known without a model: its clock, its past, and which readings to trust."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.features.past import Past
from streamridge.features.timeline import Timeline
from streamridge.forecaster.bounds import Bounds
from streamridge.forecaster.levels import Levels
from streamridge.forecaster.naive import Naive
from streamridge.forecaster.plausibility import Plausibility, Verdict, far_from_most
from streamridge.forecaster.settings import Settings
from streamridge.learners.state import joined, part
from streamridge.series.clock import DAY, AnyClock
from streamridge.series.holidays import Holidays
from streamridge.series.sensor_clock import SensorClock
from streamridge.series.writing import Writing

# The smallest size of error, as a share of the value.
ROUNDING = 1e-9

NaiveSource = Literal["seasonal", "last"]
Arrival = Literal["late", "too_late", "duplicates", "conflicts", "implausible"]

# The last reading is a forecast until the sensor has been silent for this many steps.
RECENT = 8
# Equal readings are doubted for a season, but for at least this many.
SHORTEST_DOUBT = 24


class Sensor:
    """A sensor without a model: its clock, its past with gaps filled, and what is plausible.

    Parameters
    ----------
    settings
        Settings of the forecaster.
    """

    def __init__(self, settings: Settings) -> None:
        features = settings.preset.features
        # A season ago may stand in for a model; clock changes can lead a day further back.
        day = 0 if isinstance(settings.step, int) else DAY // settings.step
        self.reach = max(features.reach, *map(round, settings.periods), 0) + day + 1
        self.timeline = Timeline(len(features.extras))
        holidays = None if settings.holidays is None else Holidays(settings.holidays)
        self.clock = SensorClock(settings.step, settings.tz, holidays)
        self.bounds = Bounds.of(settings.bounds)
        self.has_bounds = settings.bounds is not None
        self.silent = 0  # steps since the last reading
        self.excluded: tuple[tuple[int, int], ...] = ()  # spans not to be learned from
        self._settings = settings
        self._naive = Naive.start(len(settings.periods), settings.levels)
        self._plausibility = Plausibility(stuck_for=max(settings.patience, SHORTEST_DOUBT))
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
        smallest = self._resolution / 2 if isfinite(self._resolution) else 0.0
        return max(smallest, ROUNDING * max(abs(self.timeline.latest), 1.0))

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

    def stand_in(self) -> tuple[Vector, NaiveSource]:
        """Return the best naive forecast of late, (H,), and what it is."""
        best = self._best()
        steps = range(self.next_step, self.next_step + self._settings.horizon)
        values = np.array([self._naive_values(step)[best] for step in steps])
        is_last = best == len(self._settings.periods) > 0
        return self.bounds.clipped(values), "last" if is_last else "seasonal"

    @property
    def remembers_last(self) -> bool:
        """Return whether the last reading is recent enough to be a forecast, or nothing else is."""
        return self.silent < RECENT or not self._settings.periods

    def naive_opinions(self) -> Matrix:
        """Return all naive forecasts, (K, H); NaN where the last reading is too old to be one."""
        steps = range(self.next_step, self.next_step + self._settings.horizon)
        opinions = np.array([self._naive_values(step) for step in steps]).T
        if not self.remembers_last:
            opinions[-1] = np.nan
        return self.bounds.clipped(opinions) if self.has_bounds else opinions

    def naive_offsets(self, values: Vector, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far the bands of the best naive forecast reach below and above, (H, L)."""
        return self._naive.offsets(self._best(), values, self.least, levels)

    def _best(self) -> int:
        """Return which naive forecast to use; after some silence the last reading is too old."""
        return self._naive.best(seasonal=not self.remembers_last)

    def _naive_values(self, step: int) -> list[float]:
        """Return what a step's naive forecasts are: the longest season ago first, last the last."""
        periods, past = self._settings.periods, self.past
        return [
            *(past.seasonal(step, periods[:count]) for count in range(len(periods), 0, -1)),
            self._last,
        ]

    @property
    def _last(self) -> float:
        """Return the last reading, if it is remembered."""
        timeline = self.timeline
        step = timeline.newest - self.silent
        return timeline.value(step if timeline.is_remembered(step) else timeline.newest)

    def bounded(self, values: Vector) -> Vector:
        """Return forecasts, or the ends of their bands, clipped to what the sensor may show."""
        plausible = self._plausibility.bounded(values) if self._settings.guard else values
        return self.bounds.clipped(plausible) if self.has_bounds else plausible

    def push_gap(self, fill: float, columns: Vector | None) -> None:
        """Take a step without a reading."""
        self.silent += 1
        self.timeline.push(fill, read=False, trusted=False, extras=columns)
        first = max(self.next_step - self.silent, self.timeline.after_holes)
        if self.next_step - first >= 2 * self.reach:  # nobody looks back at all of a long silence
            self.timeline.cut(first, self.next_step - self.reach)

    @property
    def patience(self) -> int:
        """Return after how many steps of silence forecasts, step by step, repeat a season."""
        return max(self._settings.patience, RECENT)

    def leap(self, count: int) -> None:
        """Take many steps without a reading at once, filled with the best season, repeated."""
        self.silent += count
        longest_first = (*self._settings.periods[::-1], 1)
        self.timeline.leap(count, round(longest_first[self._best()]), needed=self.reach)

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
        if band is not None and self.has_readings:
            judged = self._plausibility.judge(value, value - forecast, band)
            verdict, self._plausibility = judged
        if self.has_readings:
            self._learn_of(value, plausible=verdict != "implausible")
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
        self.timeline.distrust(steps[far_from_most(values)])

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

    def _learn_of(self, value: float, *, plausible: bool) -> None:
        """Update the smallest change, and the naive errors unless a glitch would swamp them."""
        change = abs(value - self.timeline.latest)
        if 0 < change < self._resolution:
            self._resolution = change
        if not plausible:
            return
        said, best = self._naive_values(self.next_step), self._best()
        sizes = [*(abs(value - each) for each in said[:-1]), self._size_of_last(value)]
        self._naive = self._naive.observe(best, value - said[best], np.array(sizes), self.least)

    def _size_of_last(self, value: float) -> float:
        """Return the mean error if the last reading had forecast a value, over all horizons."""
        size, horizon = abs(value - self._last), self._settings.horizon
        if horizon == 1:
            return size
        earlier = self.timeline.newest - np.arange(1, horizon)
        readings = self.past.values(np.maximum(earlier, self.timeline.start))
        return float(size + np.abs(value - readings).sum()) / horizon
