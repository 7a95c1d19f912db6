"""Which readings can be learned from: not those of a stuck sensor, nor those far off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Vector, require_finite

Verdict = Literal["good", "outlier", "implausible", "stuck"]

# An error beyond so many half bands is an outlier: eight deviations for a band of 90 %.
OUTLIER = 5.0
# A value further from all the latest ones than so many times their range is implausible,
IMPLAUSIBLE = 3.0
# until so many have come in a row: then the sensor has changed its level, or its unit.
CONVINCING = 8
# A run of equal values is suspicious beyond this length, and when it is longer than the third
# longest of late: what has happened three times is usual.
RUN, USUAL = 8, 3


@dataclass(frozen=True)
class Plausibility:
    """Judges readings by those before them.

    Parameters
    ----------
    low, high
        The range of the trusted readings of late; NaN before there are any.
    longest_run
        The most equal readings in a row that are usual.
    value
        The latest reading, NaN before there is one.
    run
        How many readings in a row have been equal to it.
    strange
        How many in a row have been implausible.
    """

    low: float = np.nan
    high: float = np.nan
    longest_run: int = 1
    value: float = np.nan
    run: int = 0
    strange: int = 0

    def judge(self, value: float, error: float, band: float) -> tuple[Verdict, Plausibility]:
        """Return what to make of a reading whose forecast had this error and half band.

        Examples
        --------
        >>> judge = Plausibility().renewed(np.array([90.0, 110.0, 100.0]), np.ones(3, bool))
        >>> [judge.judge(value, value - 100, 10.0)[0] for value in (105.0, 160.0, 1e6)]
        ['good', 'outlier', 'implausible']
        """
        run = self.run + 1 if value == self.value else 1
        after = replace(self, value=value, run=run, strange=0)
        if self.is_implausible(value):
            if self.strange < CONVINCING:
                return "implausible", replace(after, strange=self.strange + 1)
            return "good", replace(after, low=value, high=value)
        if run > max(RUN, self.longest_run):
            return "stuck", after
        if abs(error) > OUTLIER * band:
            return "outlier", after
        return "good", replace(
            after,
            low=float(np.fmin(self.low, value)),
            high=float(np.fmax(self.high, value)),
        )

    def is_implausible(self, value: float) -> bool:
        """Tell whether a value is further from the range of late than anything explains."""
        reach = IMPLAUSIBLE * (self.high - self.low)
        return bool(reach > 0 and not self.low - reach <= value <= self.high + reach)

    def renewed(self, readings: Vector, trusted: Mask) -> Plausibility:
        """Return the judgement with the range of the trusted readings, and the runs of all."""
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
        """Return numbers within a range beyond that of late, and not below zero if nothing was."""
        reach = self.high - self.low
        if not reach > 0:  # nothing is known, or nothing has ever changed
            return np.maximum(values, self.floor)
        return np.clip(values, max(self.low - reach, self.floor), self.high + reach)

    @property
    def floor(self) -> float:
        """Return the least that a value can be: zero, if none of late was below."""
        return 0.0 if self.low >= 0 else -np.inf

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return all that changes."""
        parts = (self.low, self.high, self.longest_run, self.value, self.run, self.strange)
        return {"judgement": np.array(parts, dtype=np.float64)}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> Plausibility:
        """Return the judgement that was taken."""
        low, high, longest, value, run, strange = state["judgement"].tolist()
        counts = (int(require_finite("run", part)) for part in (longest, run, strange))
        longest, run, strange = counts
        return Plausibility(low, high, longest, value, run, strange)
