"""The judge of which readings to learn from: not stuck ones, nor ones that are far off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector, require_finite

Verdict = Literal["good", "outlier", "implausible", "stuck"]

# An error of more than this many half bands is an outlier: eight deviations for a band of 90 %.
OUTLIER = 5.0
# A value is implausible if it is outside the recent range by more than this many times its width.
IMPLAUSIBLE = 3.0
# After this many values in a row that are far off, the sensor has changed its level, or its unit.
CONVINCING = 8
# A run of equal values is suspicious if it is longer than RUN and than the third longest recent
# run: what has happened three times is usual.
RUN, USUAL = 8, 3

# The range of most readings leaves out this share of them on either side.
TAIL = 0.05


@dataclass(frozen=True)
class Plausibility:
    """A judge of readings, by the readings before them.

    Parameters
    ----------
    low, high
        The range of recent trusted readings; NaN before there are any.
    longest_run
        The longest run of equal readings that is usual.
    value
        The latest reading, NaN before there is one.
    run
        How many readings in a row have been equal to it.
    strange
        How many readings in a row have been implausible or outliers, believed or not.
    stuck_for
        For how many readings a run of equal ones is doubted; then the sensor does show this value,
        as that of a closed road.
    """

    low: float = np.nan
    high: float = np.nan
    longest_run: int = 1
    value: float = np.nan
    run: int = 0
    strange: int = 0
    stuck_for: int = 96

    def judge(self, value: float, error: float, band: float) -> tuple[Verdict, Plausibility]:
        """Return the verdict on a reading by its forecast's error and half band, and a new judge.

        Examples
        --------
        >>> judge = Plausibility().renewed(np.array([90.0, 110.0, 100.0]), np.ones(3, bool))
        >>> [judge.judge(value, value - 100, 10.0)[0] for value in (105.0, 160.0, 1e6)]
        ['good', 'outlier', 'implausible']
        """
        run = self.run + 1 if value == self.value else 1
        strange, low, high = self.strange + 1, self.low, self.high
        is_stuck = max(RUN, self.longest_run) < run <= self.stuck_for
        if self.is_implausible(value):
            if self.strange < CONVINCING or is_stuck:
                return "implausible", self._after(value, run, strange, low, high)
            return "good", self._after(value, run, strange, value, value)
        if is_stuck:
            return "stuck", self._after(value, run, 0, low, high)
        is_outlier = abs(error) > OUTLIER * band
        if is_outlier and self.strange < CONVINCING:
            return "outlier", self._after(value, run, strange, low, high)
        # Of two numbers, one of which may be NaN, Python's min and max return the first.
        low, high = min(value, low), max(value, high)
        return "good", self._after(value, run, strange if is_outlier else 0, low, high)

    def _after(self, value: float, run: int, strange: int, low: float, high: float) -> Plausibility:
        """Return the judge after a reading."""
        return Plausibility(low, high, self.longest_run, value, run, strange, self.stuck_for)

    def is_implausible(self, value: float) -> bool:
        """Return whether a value is implausibly far outside the recent range."""
        reach = IMPLAUSIBLE * (self.high - self.low)
        return bool(reach > 0 and not self.low - reach <= value <= self.high + reach)

    def renewed(self, readings: Vector, trusted: Mask) -> Plausibility:
        """Return the judge with the range of the trusted readings, and the runs of all readings."""
        if not trusted.any():
            return self
        ends = np.concatenate([[-1], np.flatnonzero(np.diff(readings)), [len(readings) - 1]])
        runs = np.sort(np.diff(ends))
        return replace(
            self,
            low=float(readings[trusted].min()),
            high=float(readings[trusted].max()),
            longest_run=int(runs[-min(USUAL, len(runs))]),
        )

    def bounded(self, values: Vector) -> Vector:
        """Return values clipped to the recent range, extended by its width, and to `floor`."""
        least, most = self.limits
        return np.minimum(np.maximum(values, least), most)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Return the least and the most that is plausible of a forecast."""
        reach = self.high - self.low
        if not reach > 0:  # nothing is known, or nothing has ever changed
            return self.floor, np.inf
        return max(self.low - reach, self.floor), self.high + reach

    @property
    def floor(self) -> float:
        """Return the smallest possible value: zero if no recent reading was below, else -inf."""
        return 0.0 if self.low >= 0 else -np.inf

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        parts = (self.low, self.high, self.longest_run, self.value, self.run, self.strange)
        return {"judgement": np.array(parts, dtype=np.float64)}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Plausibility:
        """Return a judge with a saved state."""
        low, high, longest, value, run, strange = state["judgement"].tolist()
        counts = (int(require_finite("run", part)) for part in (longest, run, strange))
        longest, run, strange = counts
        return Plausibility(low, high, longest, value, run, strange, self.stuck_for)


def far_from_most(readings: Vector) -> Mask:
    """Return which readings are implausible, judged by the range of most of them."""
    if not len(readings):
        return np.zeros(0, dtype=bool)
    low, high = np.quantile(readings, [TAIL, 1 - TAIL])
    bulk = Plausibility(low=float(low), high=float(high))
    return np.array([bulk.is_implausible(value) for value in readings.tolist()], dtype=bool)
