"""Known bounds and plausible ranges: which readings to learn from, and the limits of forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector, require_finite, require_number, require_shape
from streamridge.errors import InvalidInputError, shown
from streamridge.series.times import Steps

Verdict = Literal["good", "outlier", "implausible", "stuck"]
# The smallest and the largest value, infinite where there is no limit.
Limits: TypeAlias = tuple[float, float]
# The lower and the upper bound; None where there is none.
BoundPair: TypeAlias = tuple[float | None, float | None]

MEND = "Pass (0, None) for values that are never negative, or None for values without bounds."

# An error of more than this number of half bands is an outlier: eight deviations at 90 %.
OUTLIER = 5.0
# A value is implausible if it is outside the recent range by more than this multiple of its width.
IMPLAUSIBLE = 3.0
# A value is near if it is outside by at most this multiple.
NEAR = 1.0
# After this number of strange values in a row, the sensor has changed its level or its unit.
CONVINCING = 8
# A run of equal values is suspicious if it is longer than RUN and than the third longest recent
# run: a length that occurred three times is usual.
RUN, USUAL = 8, 3

# Strange readings are data if they recur: this number of episodes begins within this number of
# steps. Outliers and faults of a road are 1 % of its readings at most; bursts are 2 % or more.
FREQUENT, WITHIN = 20, 1000
# Some episodes at equal distances, up to a jitter in steps, recur as well: a daily burst.
REGULAR, SHORTEST_PERIOD, JITTER = 8, 8, 2
# If most readings are equal, all others are events: half as many are enough.
WITHIN_COMMON, REGULAR_COMMON = 2000, 4
# A value that is more than this share of the readings is never stuck.
COMMON = 0.5

# The range of most readings leaves out this share of them on either side.
TAIL = 0.05


@dataclass(frozen=True)
class Plausibility:
    """A check of readings by the readings before them."""

    low: float = np.nan  # the lowest recent trusted reading; NaN before there is one
    high: float = np.nan  # the highest
    longest_run: int = 1  # the longest run of equal readings that is usual
    value: float = np.nan  # the latest reading, NaN before there is one
    run: int = 0  # the number of readings in a row that were equal to it
    # The number of readings in a row that were implausible or outliers, believed or not.
    strange: int = 0
    # The number of equal readings that are doubted. After that the value is believed, such as the
    # flow of a closed road.
    stuck_for: int = 96
    common: float | None = None  # the value of most readings, if there is one
    step: int = 0  # the step of the latest reading
    # Steps at which the last episodes of strange readings began, and (step, value) of the episodes
    # that began with an implausible reading.
    starts: tuple[int, ...] = ()
    far: tuple[tuple[int, float], ...] = ()

    def judge(
        self, value: float, error: float, half_width: float, step: int | None = None
    ) -> tuple[Verdict, Plausibility]:
        """Return the verdict on a reading, and the check after it.

        `error` is the error of its forecast, `half_width` half the width of the forecast's band.
        `step` is the place of the reading on the grid; by default it is the next one.

        Examples
        --------
        >>> check = Plausibility().renewed(np.array([90.0, 110.0, 100.0]), np.ones(3, bool))
        >>> [check.judge(value, value - 100, 10.0)[0] for value in (105.0, 160.0, 1e6)]
        ['good', 'outlier', 'implausible']
        """
        verdict: Verdict = "good"
        step = self.step + 1 if step is None else step
        run = self.run + 1 if value == self.value else 1
        strange, low, high = self.strange + 1, self.low, self.high
        is_stuck = max(RUN, self.longest_run) < run <= self.stuck_for and value != self.common
        is_far, is_new = self.is_implausible(value), self.strange >= CONVINCING
        has_common, starts, far = self.common is not None, self.starts, self.far
        is_near = not self.is_implausible(value, NEAR)
        # If most readings are equal, bands are narrow: a burst that exceeds the largest one by the
        # width of the range at most is no outlier. Only `renewed` adds it to the range.
        is_burst = has_common and is_near and self.low <= value and self.high > self.low
        is_strange = is_far or (abs(error) > OUTLIER * half_width and not is_burst)
        if is_strange and not self.strange:
            starts = (*starts, step)[-FREQUENT:]
            far = (*far, (step, value))[-FREQUENT:] if is_far else far
        # Small errors that recur do not make a far larger value usual.
        is_usual = is_strange and is_near and recurring(starts, has_common=has_common)
        if is_far and recurring([start for start, _ in far], has_common=has_common):
            is_usual, is_far = True, self._with(far).is_implausible(value)
        if is_far and (is_stuck or not (is_new or self._confirms(value))):
            verdict = "implausible"
        elif is_stuck:
            verdict, strange = "stuck", 0
        elif is_strange and not (is_new or is_usual):
            verdict = "outlier"
        else:
            # Python's min and max return the first of two numbers if the other one is NaN.
            if not is_burst:
                low, high = min(value, low), max(value, high)
            strange = strange if is_strange else 0
        runs = self.longest_run, value, run, strange, self.stuck_for, self.common
        return verdict, Plausibility(low, high, *runs, step, starts, far)

    def is_implausible(self, value: float, widths: float = IMPLAUSIBLE) -> bool:
        """Return whether a value is farther outside the recent range than some of its widths."""
        reach = widths * (self.high - self.low)
        return bool(reach > 0 and not self.low - reach <= value <= self.high + reach)

    def _with(self, far: tuple[tuple[int, float], ...]) -> Plausibility:
        """Return the check with a range that contains far values, except the two most extreme."""
        values = sorted(value for _, value in far)[1:-1]
        return replace(self, low=min(self.low, values[0]), high=max(self.high, values[-1]))

    def _confirms(self, value: float) -> bool:
        """Return whether a value confirms a new level: close to an implausible one, not equal."""
        near = 0 < abs(value - self.value) <= self.high - self.low
        return near and self.is_implausible(self.value)

    def renewed(self, readings: Vector, trusted: Mask) -> Plausibility:
        """Return the check with the range of the trusted readings, and the runs of all readings."""
        if not trusted.any():
            return self
        ends = np.concatenate([[-1], np.flatnonzero(np.diff(readings)), [len(readings) - 1]])
        runs = np.sort(np.diff(ends))
        return replace(
            self,
            low=float(readings[trusted].min()),
            high=float(readings[trusted].max()),
            longest_run=int(runs[-min(USUAL, len(runs))]),
            common=common_value(readings),
        )

    def limits(self, latest: float) -> Limits:
        """Return the smallest and the largest plausible forecast after a value.

        It is the recent range with this value, extended by its width on both sides. Forecasts are
        never negative if no recent reading was.
        """
        floor = 0.0 if self.low >= 0 and latest >= 0 else -np.inf
        if not self.high > self.low:  # nothing is known, or nothing has ever changed
            return floor, np.inf
        low, high = min(latest, self.low), max(latest, self.high)
        reach = high - low
        return max(low - reach, floor), high + reach

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        parts = (self.low, self.high, self.longest_run, self.value, self.run, self.strange)
        common = np.nan if self.common is None else self.common
        return {
            "judgement": np.array((*parts, common, self.step), dtype=np.float64),
            "starts": np.array(self.starts, dtype=np.float64),
            "far": np.array(self.far, dtype=np.float64).reshape(-1, 2),
        }

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Plausibility:
        """Return the check with a saved state."""
        low, high, longest, value, run, strange, common, step = state["judgement"].tolist()
        counts = (int(require_finite("run", part)) for part in (longest, run, strange, step))
        longest, run, strange, step = counts
        starts, far = (require_finite(name, state[name]) for name in ("starts", "far"))
        require_shape("far", far, (len(far), 2))
        runs = longest, value, run, strange, self.stuck_for, None if isnan(common) else common
        episodes = tuple((int(start), each) for start, each in far.tolist())
        return Plausibility(low, high, *runs, step, tuple(map(int, starts.tolist())), episodes)


def common_value(readings: Vector) -> float | None:
    """Return the value that most readings have; None if there is no such value.

    >>> common_value(np.array([0.0, 0.0, 7.0])), common_value(np.array([0.0, 0.0, 7.0, 8.0]))
    (0.0, None)
    """
    median = float(np.median(readings)) if len(readings) else np.nan
    return median if len(readings) and np.mean(readings == median) > COMMON else None


def recurring(starts: Sequence[int], *, has_common: bool) -> bool:
    """Return whether episodes of strange readings recur: they are frequent, or periodic.

    `starts` are the steps at which episodes began, the latest last. `has_common` says whether most
    readings are equal, so that all others are events.

    Examples
    --------
    >>> recurring([100, 388, 676, 964], has_common=True)
    True
    >>> recurring([100, 388, 676, 964], has_common=False)
    False
    >>> recurring([40 * i + i % 7 for i in range(20)], has_common=False)
    True
    """
    within, regular = (WITHIN_COMMON, REGULAR_COMMON) if has_common else (WITHIN, REGULAR)
    if len(starts) >= FREQUENT and starts[-1] - starts[-FREQUENT] < within:
        return True
    distances = np.diff(starts[-regular:])
    return (
        len(starts) >= regular
        and bool(distances.min() >= SHORTEST_PERIOD)
        and bool(np.ptp(distances) <= JITTER)
    )


def far_from_most(readings: Vector, steps: Steps) -> Mask:
    """Return which readings are implausible compared with most of them; none if they recur.

    `steps` are their places on the grid.
    """
    marks = np.zeros(len(readings), dtype=bool)
    if not len(readings):
        return marks
    low, high = np.quantile(readings, [TAIL, 1 - TAIL])
    bulk = Plausibility(low=float(low), high=float(high))
    far = np.array([bulk.is_implausible(value) for value in readings.tolist()], dtype=bool)
    follows = np.append(False, far[:-1] & (np.diff(steps) == 1))
    starts = steps[far & ~follows]
    has_common = common_value(readings) is not None
    return marks if recurring(starts.tolist(), has_common=has_common) else far


def clipped(values: NDArray[np.float64], limits: Limits) -> NDArray[np.float64]:
    """Return values moved to the nearest limit where they are beyond."""
    return np.minimum(np.maximum(values, limits[0]), limits[1])


def require_bounds(bounds: Sequence[float | None] | None) -> BoundPair | None:
    """Return a pair of bounds, None for no bound; raise unless the lower is below the upper.

    Examples
    --------
    >>> require_bounds([0, None])
    (0.0, None)
    >>> require_bounds((5, 5))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: bounds must have the lower below the upper, got (5, 5).
    """
    if bounds is None:
        return None
    if np.asarray(bounds, dtype=object).shape != (2,):
        raise InvalidInputError(
            f"bounds must be two numbers, or None for either, got {shown(bounds)}. {MEND}"
        )
    lower, upper = (None if each is None else require_number("bounds", each) for each in bounds)
    if lower is None and upper is None:
        raise InvalidInputError(f"bounds must hold at least one number, got {bounds}. {MEND}")
    if lower is not None and upper is not None and not lower < upper:
        raise InvalidInputError(f"bounds must have the lower below the upper, got {bounds}.")
    return lower, upper
