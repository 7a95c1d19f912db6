"""The results of the traffic study, and the paper's results for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from streamridge.runs.run import Run, change

# The step of the paper's early RMSE(t); in a shorter run, half of the steps.
EARLY = 4000
BASELINE, OURS = "FIXED", "OHL"

# Table 1 of the paper: improvements over FIXED in percent, at 4000 steps and at the end.
IMPROVEMENTS = {
    "OHL": (
        (12, 15, 2, 8, 8, 11, 9, 8, 8, 7, 8, 7, 14),
        (13, 15, 3, 9, 9, 11, 11, 8, 9, 8, 8, 7, 15),
    ),
    "HOAG": (
        (11, 15, 2, 7, 6, 11, 10, 9, 9, 9, 8, 7, 15),
        (12, 14, 3, 9, 8, 11, 12, 9, 10, 10, 9, 8, 16),
    ),
    "RDS": (
        (12, 15, -11, 4, 3, 5, 9, 7, 2, 9, 4, 6, 14),
        (13, 11, -8, 4, 1, 4, 11, 6, 3, 9, 5, 5, 14),
    ),
}

# Section 6.2: mean minutes of a run over the detectors, in total and for tuning.
TOTAL_MINUTES = {"OHL": 20.0, "HOAG": 138.0}
TUNING_MINUTES = {"OHL": 3.2, "HOAG": 120.0}


def paper_improvements(method: str) -> tuple[float, float]:
    """Return the paper's mean improvement of a method in percent, at 4000 steps and at the end.

    They are NaN if the paper does not report the method.

    Examples
    --------
    >>> [round(figure, 1) for figure in paper_improvements("OHL")]
    [9.0, 9.7]
    """
    if method not in IMPROVEMENTS:
        return nan, nan
    early, final = IMPROVEMENTS[method]
    return sum(early) / len(early), sum(final) / len(final)


@dataclass(frozen=True)
class TrafficResults:
    """The runs of a study, with the comparisons between them."""

    runs: tuple[Run, ...]  # one per detector and method; some are missing if the study was stopped

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods, in the order of the runs."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    @property
    def sensors(self) -> tuple[str, ...]:
        """Return the detectors."""
        return tuple(dict.fromkeys(run.sensor for run in self.runs))

    @property
    def early(self) -> int:
        """Return the step of the early RMSE(t)."""
        shortest = min(len(run.times) for run in self.runs)
        return EARLY if shortest > EARLY else -(-shortest // 2)

    def of(self, method: str) -> dict[str, Run]:
        """Return the runs of a method by detector."""
        return {run.sensor: run for run in self.runs if run.method == method}

    def improvements(self, method: str) -> dict[str, tuple[float, float]]:
        """Return the improvements of RMSE over FIXED in percent by detector, early and final."""
        fixed = self.of(BASELINE)
        return {
            sensor: (
                improvement(run, fixed[sensor], self.early),
                improvement(run, fixed[sensor], None),
            )
            for sensor, run in self.of(method).items()
            if sensor in fixed
        }

    def mean_improvements(self, method: str, other: str | None = None) -> tuple[float, float]:
        """Return the mean improvements over the detectors, early and at the end.

        Only detectors with runs of both methods count, if another method is given.
        """
        others = self.of(other or method)
        pairs = [pair for name, pair in self.improvements(method).items() if name in others]
        early, final = (_mean([pair[at] for pair in pairs]) for at in (0, 1))
        return early, final

    def mean_seconds(self, method: str) -> tuple[float, float]:
        """Return the mean seconds of a run, in total and for tuning."""
        runs = self.of(method).values()
        if not runs:
            return np.nan, np.nan
        total, tuning = np.mean([seconds_of(run) for run in runs], axis=0).tolist()
        return total, tuning

    def ratios(self, method: str, to: str = OURS) -> tuple[float, float]:
        """Return the running time of a method relative to another, in total and for tuning.

        Only detectors with runs of both methods count.
        """
        ours, theirs = self.of(to), self.of(method)
        both = [sensor for sensor in theirs if sensor in ours]
        total, tuning = (
            _ratio([seconds_of(theirs[s])[i] for s in both], [seconds_of(ours[s])[i] for s in both])
            for i in (0, 1)
        )
        return total, tuning

    def rows(self) -> list[dict[str, Any]]:
        """Return a row of numbers per run."""
        return [self._row(run) for run in self.runs]

    def summary(self) -> list[dict[str, Any]]:
        """Return a row of means per method, with the means of the paper."""
        return [self._summary(method) for method in self.methods]

    def _row(self, run: Run) -> dict[str, Any]:
        early, final = self.improvements(run.method).get(run.sensor, (np.nan, np.nan))
        record = run.record()
        return {
            "detector": run.sensor,
            "method": run.method,
            "scored": record["scored"],
            f"rmse_{self.early}": run.rmse_until(self.early),
            "rmse": run.rmse,
            f"improvement_{self.early}": early,
            "improvement": final,
            **{name: record[name] for name in record if name.startswith("seconds_")},
            "fits": record["fits"],
            "gradients": record["gradients"],
        }

    def _summary(self, method: str) -> dict[str, Any]:
        early, final = self.mean_improvements(method)
        total, tuning = self.mean_seconds(method)
        times_total, times_tuning = self.ratios(method)
        paper_early, paper_final = paper_improvements(method)
        return {
            "method": method,
            "detectors": len(self.of(method)),
            f"improvement_{self.early}": early,
            "improvement": final,
            "paper_improvement_4000": paper_early,
            "paper_improvement": paper_final,
            "seconds_total": total,
            "seconds_tuning": tuning,
            "total_over_ohl": times_total,
            "tuning_over_ohl": times_tuning,
            "paper_minutes_total": TOTAL_MINUTES.get(method, np.nan),
            "paper_minutes_tuning": TUNING_MINUTES.get(method, np.nan),
        }


def seconds_of(run: Run) -> tuple[float, float]:
    """Return the seconds of a run, in total and for tuning."""
    return run.seconds, run.costs.tuning


def improvement(run: Run, fixed: Run, steps: int | None) -> float:
    """Return the improvement of RMSE over FIXED in percent, after `steps` steps or all."""
    return 0 - 100 * change(run, fixed, steps)  # avoids "-0.0"


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    total = sum(below)
    return sum(above) / total if total > 0 else float("nan")
