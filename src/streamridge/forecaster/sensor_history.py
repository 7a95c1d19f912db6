"""The history of a sensor: its readings on a grid, what is plausible, and naive forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, joined, part
from streamridge.features.base import Past
from streamridge.features.timeline import Timeline
from streamridge.forecaster.bands import NaiveErrors
from streamridge.forecaster.forecast import JUDGED, Levels
from streamridge.forecaster.plausibility import (
    Limits,
    Plausibility,
    Verdict,
    clipped,
    far_from_most,
)
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.training_rows import TrainingRows
from streamridge.series.clock import AnyClock
from streamridge.series.holidays import Holidays
from streamridge.series.lengths import DAY
from streamridge.series.sensor_clock import SensorClock
from streamridge.series.time_format import TimeFormat
from streamridge.series.times import Steps

# The smallest size of error, as a share of the value.
ROUNDING = 1e-9
# Digits of a reading beyond these say nothing about its errors.
DIGITS = 1e-3
# The last reading is a forecast until this number of steps have passed without a reading.
RECENT = 8
# Equal readings are doubted for a season, but for at least this many.
SHORTEST_DOUBT = 24
# A time is never read if it was within a gap of more than `RECENT` steps in this many seasons.
SEASONS = 3
# Naive forecasts are compared with readings at about the same time on this number of days.
DAYS = 28
# A mean of days at the same time needs this number of readings.
LEAST_DAYS = 3

NaiveSource = Literal["seasonal", "last"]
Arrival = Literal["late", "too_late", "duplicates", "conflicts", "implausible"]


class SensorHistory:
    """The past of one sensor with gaps filled in, without a model."""

    def __init__(self, settings: Settings) -> None:
        self._settings, features = settings, settings.preset.features
        self.horizon = settings.near  # the number of labels of a row
        # Naive forecasts look a season back; clock changes can lead a day further back.
        day = 0 if isinstance(settings.step, int) else DAY // settings.step
        self.reach = max(features.reach, *map(round, settings.periods), 0) + day + 1
        self.timeline = Timeline(len(features.extras))
        holidays = None if settings.holidays is None else Holidays(settings.holidays)
        self.clock = SensorClock(settings.step, settings.tz, holidays)
        self.rows = TrainingRows(
            features, self.timeline, self.clock, horizon=self.horizon, reach=self.reach
        )
        self.silent = 0  # steps since the last reading
        self.excluded: tuple[tuple[int, int], ...] = ()  # spans not to learn from
        self._naive = NaiveErrors.start(len(settings.periods), settings.levels)
        self.plausibility = Plausibility(stuck_for=max(settings.patience, SHORTEST_DOUBT))
        self._resolution = np.inf  # the smallest change between readings

    @property
    def has_readings(self) -> bool:
        """Return whether there has been a reading."""
        return self.timeline.newest >= self.timeline.start

    @property
    def next_step(self) -> int:
        """Return the step that is forecast next."""
        return self.timeline.newest + 1

    def past(self, upcoming: Matrix | None = None) -> Past:
        """Return the past as features see it, with the extra columns of the next steps if given."""
        return Past(self.timeline, self.clock.known, upcoming)

    @property
    def least(self) -> float:
        """Return the smallest size of error: half the smallest change, or half the last digit."""
        latest = self.timeline.latest
        smallest = self._resolution if isfinite(self._resolution) else unit_of(latest)
        return max(smallest / 2, ROUNDING * abs(latest))

    @property
    def limits(self) -> Limits:
        """Return the smallest and the largest value that a forecast may have."""
        settings = self._settings
        if not settings.guard:
            return settings.limits
        low, high = self.plausibility.limits(self.timeline.latest)
        if settings.bounds is None:
            return low, high
        least, most = settings.limits
        return min(max(low, least), most), min(max(high, least), most)

    def place(self, time: object) -> tuple[int, bool]:
        """Return the step that a time belongs to, and whether the time is exactly on it."""
        newest = self.timeline.newest if self.has_readings else None
        step, on_grid = self.clock.place(time, newest)
        if newest is None:
            self.timeline.start_at(step)
        return step, on_grid

    def begin(self, clock: AnyClock, step: int, time_format: TimeFormat) -> None:
        """Use the clock of a series, whose first reading is at this step or later."""
        self.clock.adopt(clock, time_format)
        self.timeline.start_at(step)

    def naive_forecast(self, first: int = 0, end: int | None = None) -> tuple[Vector, NaiveSource]:
        """Return the best recent naive forecast and its kind; of near steps by default.

        `first` and `end` count the steps ahead from 0; `end` is not included.
        """
        best, end = self._best(), self.horizon if end is None else end
        steps = range(self.next_step + first, self.next_step + end)
        values = np.array([self.naive_values(step)[best] for step in steps])
        is_last = best == len(self._settings.periods) > 0
        return clipped(values, self._settings.limits), "last" if is_last else "seasonal"

    def naive_forecasts(self) -> Matrix:
        """Return all naive forecasts, (K, H); NaN where the last reading is too old."""
        first, count, past = self.next_step, self.horizon, self.past()
        seasons: list[Vector | None] = [None]  # one step, the usual case, is faster alone
        if count > 1:
            periods = reversed(self._settings.periods)
            seasons = [past.season_before(first, count, period) for period in periods]
        if any(each is None for each in seasons):
            steps = range(first, first + count)
            forecasts = np.array([self.naive_values(step) for step in steps]).T
        else:
            forecasts = np.array([*seasons, np.full(count, self.naive_values(first)[-1])])
        if not self.last_is_recent:
            forecasts[-1] = np.nan
        if self._settings.bounds is None:
            return forecasts
        return clipped(forecasts, self._settings.limits)

    def naive_offsets(self, values: Vector, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far the bands of the best naive forecast reach below and above, (H, L).

        `values` show the level of the forecast; their number does not matter.
        """
        best, least, bands = self._best(), self.least, self._naive.bands
        sizes = np.full(self.horizon, self._naive.size(best, float(abs(values).max()), least))
        if self._settings.periods:
            seen = self._seen_errors(best) / bands.mean_multiple
            sizes = np.where(np.isnan(seen), sizes, np.maximum(seen, least))
        return bands.offsets(sizes, levels)

    def _seen_errors(self, best: int) -> Vector:
        """Return the size that 90 % of a naive forecast's errors had, (H,); NaN if there are few.

        They are the errors of forecasts of the same age, at about the same time on the last days.
        """
        steps, timeline = self.next_step + np.arange(self.horizon), self.timeline
        lags = _lags_of_days(self._settings.periods[0])
        lags = lags[lags <= steps[-1] - timeline.oldest]  # earlier steps are not stored
        if len(lags) < DAYS:
            return np.full(self.horizon, np.nan)
        ages = steps - timeline.newest + self.silent
        if best < len(self._settings.periods):
            season = self._settings.periods[-1 - best]
            ages = np.rint(season * np.ceil(ages / season)).astype(np.int64)
        ends = steps[:, None] - lags
        starts = ends - ages[:, None]
        sizes = np.abs(timeline.trusted_values(ends) - timeline.trusted_values(starts))
        found = [each[~np.isnan(each)] for each in sizes]
        # As for any sample, the next error exceeds a quantile more often: one day more counts.
        share = JUDGED * (1 + 1 / DAYS)
        return np.array([quantile(each, share) if len(each) >= DAYS else np.nan for each in found])

    def naive_values(self, step: int) -> list[float]:
        """Return the naive forecasts of a step: the longest season ago first, last reading last."""
        periods, past, timeline = self._settings.periods, self.past(), self.timeline
        last = timeline.newest - self.silent
        return [
            *(past.seasonal(step, periods[:count]) for count in range(len(periods), 0, -1)),
            timeline.value(last if timeline.is_remembered(last) else timeline.newest),
        ]

    def mean_of_days(self) -> float:
        """Return the mean of the trusted readings at the time of the next step on the last days.

        It is NaN if there are too few. A day is the shortest season.
        """
        if not self._settings.periods:
            return np.nan
        back = np.rint(self._settings.periods[0] * np.arange(1, DAYS + 1)).astype(np.int64)
        steps = self.past().ago(np.array(self.next_step), back)
        readings = self.timeline.trusted_values(steps)
        known = readings[~np.isnan(readings)]
        return float(known.mean()) if len(known) >= LEAST_DAYS else np.nan

    @property
    def last_is_recent(self) -> bool:
        """Return whether the last reading is recent enough to be a forecast, or the only one."""
        return self.silent < RECENT or not self._settings.periods

    def _best(self) -> int:
        """Return the place of the best naive forecast; an old last reading does not count."""
        return self._naive.best(seasonal=not self.last_is_recent)

    def push(
        self, value: float, forecast: float, half_width: float | None, columns: Vector | None
    ) -> Verdict:
        """Add the next reading, and return whether it can be learned from.

        Its forecast replaces an implausible reading. `half_width` is half the width of the
        forecast's band; None trusts every reading.
        """
        verdict: Verdict = "good"
        if self.has_readings:
            if half_width is not None:
                error, step = value - forecast, self.next_step
                judged = self.plausibility.judge(value, error, half_width, step)
                verdict, self.plausibility = judged
            self._update_naive(value, plausible=verdict != "implausible")
        kept = forecast if verdict == "implausible" else value
        self.timeline.push(kept, read=True, trusted=verdict == "good", extras=columns)
        self.silent = 0
        return verdict

    def _update_naive(self, value: float, *, plausible: bool) -> None:
        """Update the smallest change, and the naive errors unless the value is implausible."""
        change = abs(value - self.timeline.latest)
        if 0 < change < self._resolution:
            self._resolution = change
        if not plausible:
            return
        forecasts, best, horizon = self.naive_values(self.next_step), self._best(), self.horizon
        sizes = [abs(value - each) for each in forecasts]
        if horizon > 1:  # the last reading is one forecast for all horizons
            earlier = self.timeline.newest - np.arange(1, horizon)
            readings = self.past().values(np.maximum(earlier, self.timeline.start))
            sizes[-1] = float(sizes[-1] + np.abs(value - readings).sum()) / horizon
        expected = expected_error(self.timeline.latest)
        self._naive = self._naive.observe(
            best, value - forecasts[best], sizes, self.least, expected
        )

    def push_gap(self, forecast: float, columns: Vector | None) -> None:
        """Add a step without a reading.

        Its forecast fills it in, or the last reading if there is never a reading at this time:
        forecasts of forecasts would go astray where nothing was learned.
        """
        by_model = self.silent <= self._settings.patience
        never = by_model and self._is_never_read()
        fill = self.naive_values(self.next_step)[-1] if never else forecast
        self.silent += 1
        self.timeline.push(fill, read=False, trusted=False, extras=columns)
        first = max(self.next_step - self.silent, self.timeline.after_holes)
        if self.next_step - first >= 2 * self.reach:  # no row looks back at all of a long silence
            self.timeline.cut(first, self.next_step - self.reach)

    def _is_never_read(self) -> bool:
        """Return whether the next step is at a time of a season that is never read."""
        around, timeline = np.arange(-RECENT, RECENT + 1), self.timeline
        for period in self._settings.periods:
            back = np.rint(period * np.arange(1, SEASONS + 1)).astype(np.int64)
            at = self.past().ago(np.array(self.next_step), back)
            if at[-1] - RECENT < timeline.oldest or at[0] + RECENT > timeline.newest:
                continue
            season = np.arange(round(period)) - round(period) // 2
            if not timeline.trusted(at[:, None] + season).any(axis=1).all():
                continue  # there was a longer gap
            unread = ~timeline.trusted(at[:, None] + around)
            gaps = [np.cumprod(side, axis=1).sum(axis=1) for side in _sides(unread)]
            if (gaps[0] + gaps[1] > RECENT + 1).all():
                return True
        return False

    @property
    def patience(self) -> int:
        """Return after how many steps of silence forecasts repeat a season, step by step."""
        return max(self._settings.patience, RECENT)

    def leap(self, count: int) -> None:
        """Add many steps without a reading at once, filled by repeating the best season."""
        self.silent += count
        longest_first = (*self._settings.periods[::-1], 1)
        self.timeline.append_gap(count, round(longest_first[self._best()]), needed=self.reach)

    def add_late(self, step: int, value: float) -> Arrival:
        """Add a reading of a past step, and return how it counts; a first reading stays."""
        if not self.timeline.is_remembered(step):
            return "too_late"
        if self.timeline.was_read(step):
            same = self.timeline.values(np.array([step]))[0] == value
            return "duplicates" if same else "conflicts"
        doubted = self._settings.guard and self.plausibility.is_implausible(value)
        if doubted or not self.is_possible(value):
            return "implausible"
        self.timeline.correct(step, value)
        self.silent = min(self.silent, self.timeline.newest - step)
        return "late"

    def is_possible(self, value: float) -> bool:
        """Return whether a reading lies within the known bounds; a missing one does."""
        least, most = self._settings.limits
        return not (value < least or value > most)

    def exclude(self, start: object, end: object) -> None:
        """Learn nothing from a span of time: neither from known readings nor from later ones."""
        self.excluded = (*self.excluded, self.clock.span(start, end))
        if self.has_readings:
            steps = self.timeline.remembered()
            self.timeline.mark_missing(steps[self.clock.within(steps, self.excluded[-1:])])

    def is_excluded(self, step: int) -> bool:
        """Return whether a step lies in an excluded span."""
        return bool(self.excluded and self.clock.within(np.array([step]), self.excluded)[0])

    def doubt_outliers(self) -> None:
        """Distrust readings before the first fit that are implausible compared with most others."""
        steps, values, _ = self.timeline.readings()
        self.timeline.distrust(steps[far_from_most(values, steps)])

    def has_unneeded(self, count: int) -> bool:
        """Return whether `forget_unneeded` would forget readings; it does now and then."""
        return self.timeline.oldest + count < self._oldest_needed(count)

    def forget_unneeded(self, count: int) -> None:
        """Forget, now and then, readings that a first fit to `count` rows does not need."""
        if self.has_unneeded(count):
            self.timeline.forget_before(self._oldest_needed(count))

    def _oldest_needed(self, count: int) -> int:
        return self.timeline.newest - count - self.horizon - self.reach

    def mark_refit(self, oldest: float) -> None:
        """Remember the readings that a refit saw, and let them define the plausible range.

        What rows from `oldest` on do not need is forgotten.
        """
        self.timeline.mark_refit()
        self.timeline.forget_before(int(oldest) - self.reach)
        _, values, trusted = self.timeline.readings()
        self.plausibility = self.plausibility.renewed(values, trusted)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, except the clock, as arrays."""
        own = np.array([self._resolution, self.silent], dtype=np.float64)
        return joined(
            {
                "timeline": self.timeline.state(),
                "naive": self._naive.state(),
                "plausibility": self.plausibility.state(),
                "own": {"numbers": own, "excluded": np.array(self.excluded).reshape(-1, 2)},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a history with the same settings."""
        self.timeline.restore(part(state, "timeline"))
        self._naive = self._naive.restore(part(state, "naive"))
        self.plausibility = self.plausibility.restore(part(state, "plausibility"))
        self._resolution, silent = state["own.numbers"].tolist()
        self.silent = int(silent)
        self.excluded = tuple((int(first), int(last)) for first, last in state["own.excluded"])


def _sides(around: Mask) -> tuple[Mask, Mask]:
    """Return what is before and after the middle column, which both have first."""
    middle = around.shape[1] // 2
    return around[:, middle::-1], around[:, middle:]


@lru_cache
def _lags_of_days(day: float) -> Steps:
    """Return how many steps ago it was about this time of day, on each of the last days, (n,)."""
    beside = np.arange(-int(day // 48) - 1, int(day // 48) + 2)
    back = np.rint(day * np.arange(1, DAYS + 1)).astype(np.int64)
    lags = (back[:, None] + beside).ravel()
    lags.flags.writeable = False
    return lags


def quantile(sample: Vector, share: float) -> float:
    """Return a quantile of a sample, (n,) with n > 1, for a share below one.

    It equals `np.quantile` to the last bit, and takes a tenth of its time for a few hundred values.

    Examples
    --------
    >>> quantile(np.array([4.0, 1.0, 2.0]), 0.75)
    3.0
    """
    place = share * (len(sample) - 1)
    first = int(place)
    below, above = np.sort(sample)[first : first + 2].tolist()
    part = place - first
    if part < 0.5:
        return float(below + (above - below) * part)
    return float(above - (above - below) * (1 - part))


def unit_of(reading: float) -> float:
    """Return the unit of the last decimal digit of a reading, at most one.

    Examples
    --------
    >>> unit_of(57.0), unit_of(20.15), unit_of(1e-7)
    (1.0, 0.01, 1e-07)
    """
    if reading == int(reading):
        return 1.0
    digits, _, power = repr(reading).partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2].rstrip("0")))


def expected_error(reading: float) -> float:
    """Return the size of error to expect before any error is known.

    It is the geometric mean of a reading and of the unit of its last digit. For counts this is the
    deviation of a Poisson variable.

    Examples
    --------
    >>> expected_error(100.0), expected_error(0.0), round(expected_error(20.1), 2)
    (10.0, 1.0, 1.42)
    """
    unit = unit_of(reading)
    size = max(abs(reading), unit)
    return sqrt(size * max(unit, DIGITS * size))
