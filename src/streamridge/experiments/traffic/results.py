"""The results of a traffic study: improvements over FIXED, and costs of every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.experiments.traffic.paper import (
    TOTAL_MINUTES,
    TUNING_MINUTES,
    mean_improvements,
)
from streamridge.runs.run import Run, change

# The step of the paper's first look at RMSE(t); a shorter run is looked at halfway.
EARLY = 4000
BASELINE, OURS = "FIXED", "OHL"


@dataclass(frozen=True)
class TrafficResults:
    """The runs of a study, with the comparisons between them.

    Parameters
    ----------
    runs
        One per detector and method; some are missing if the study was stopped.
    """

    runs: tuple[Run, ...]

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
        """Return the step of the first look at RMSE(t)."""
        shortest = min(len(run.times) for run in self.runs)
        return EARLY if shortest > EARLY else -(-shortest // 2)

    def of(self, method: str) -> dict[str, Run]:
        """Return the runs of a method by detector."""
        return {run.sensor: run for run in self.runs if run.method == method}

    def improvements(self, method: str) -> dict[str, tuple[float, float]]:
        """Return by how many percent RMSE is below FIXED's, early and at the end, per detector."""
        fixed = self.of(BASELINE)
        return {
            sensor: (
                improvement(run, fixed[sensor], self.early),
                improvement(run, fixed[sensor], None),
            )
            for sensor, run in self.of(method).items()
            if sensor in fixed
        }

    def mean_improvements(self, method: str, beside: str | None = None) -> tuple[float, float]:
        """Return the mean improvements over the detectors, early and at the end.

        If another method is given as `beside`, only detectors with runs of both count.
        """
        others = self.of(beside or method)
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
        """Return how many times as long as another a method takes, in total and for tuning.

        Only detectors with runs of both count.
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
        """Return a row of means per method, with the paper's where it has any."""
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
        paper_early, paper_final = mean_improvements(method)
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
    """Return by how many percent RMSE is below that of FIXED, after some steps or all."""
    return 0 - 100 * change(run, fixed, steps)  # no "-0.0" if nothing has changed


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    total = sum(below)
    return sum(above) / total if total > 0 else float("nan")
