"""The study of section 6.1: FIXED and OHL from the same start, one step ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.experiments.synthetic.panels import PANELS, Panel
from streamridge.hyperparameters.feasible import Chart
from streamridge.learners.base import run
from streamridge.learners.lazy_descent import ConstantStep
from streamridge.learners.online import OnlineLearner
from streamridge.metrics import rmse
from streamridge.samples import Samples

UPDATE_EVERY = 10
LEARNING_RATE = 0.001
STEPS = 600
# Steps at the start and at the end that are scored.
STRETCH = 100

Score = dict[str, float]
Record = dict[str, object]


@dataclass(frozen=True)
class PanelResult:
    """The forecasts of FIXED and OHL on one series, one step ahead."""

    panel: str  # the name of the panel
    seed: int  # the seed of its series
    times: Vector  # (T,), the steps since the start of the series
    actual: Vector  # (T,)
    fixed: Vector  # (T,), forecasts
    ohl: Vector  # (T,), forecasts
    path: dict[str, Vector]  # (T,) each: the hyperparameters behind each forecast of OHL

    @property
    def forecasts(self) -> dict[str, Vector]:
        """Return the forecasts by method."""
        return {"FIXED": self.fixed, "OHL": self.ohl}

    @property
    def scores(self) -> dict[str, Score]:
        """Return the RMSE of the first and the last 100 steps, by method."""
        return {
            name: {
                "first": rmse((self.actual - forecast)[:STRETCH]),
                "last": rmse((self.actual - forecast)[-STRETCH:]),
            }
            for name, forecast in self.forecasts.items()
        }

    @property
    def gap(self) -> Score:
        """Return the mean and the deviation of truth minus FIXED over the last 100 steps."""
        errors = (self.actual - self.fixed)[-STRETCH:]
        return {"mean": float(errors.mean()), "deviation": float(errors.std())}

    def record(self) -> Record:
        """Return the scores, and first and last hyperparameters, as values for JSON."""
        ends = {name: [float(at[0]), float(at[-1])] for name, at in self.path.items()}
        return {
            "panel": self.panel,
            "seed": self.seed,
            "steps": len(self.times),
            "rmse": self.scores,
            "gap": self.gap,
            "hyperparameters": ends,
        }


def run_panel(panel: Panel, seed: int, steps: int = STEPS) -> PanelResult:
    """Return the forecasts of FIXED and OHL on the series of a seed."""
    samples = panel.interpretation.samples(seed, steps)
    stream = samples[panel.interpretation.history :]
    fixed, _ = _forecasts(panel, samples, learn=False)
    ohl, path = _forecasts(panel, samples, learn=True)
    return PanelResult(panel.name, seed, stream.t, stream.y[:, 0], fixed, ohl, path)


def run_synthetic(
    seeds: Sequence[int],
    steps: int = STEPS,
    *,
    panels: Sequence[Panel] = PANELS,
    progress: Callable[[int, int], None] | None = None,
) -> list[PanelResult]:
    """Return the results of every panel on every seed; after Ctrl-C, the finished ones."""
    pairs = [(panel, seed) for panel in panels for seed in seeds]
    results: list[PanelResult] = []
    try:
        for panel, seed in pairs:
            results.append(run_panel(panel, seed, steps))
            if progress:
                progress(len(results), len(pairs))
    except KeyboardInterrupt:
        return results
    return results


def summarize(results: Sequence[PanelResult]) -> list[Record]:
    """Return, for each panel, the median and the range of every score over the seeds."""
    by_panel: dict[str, list[PanelResult]] = {}
    for result in results:
        by_panel.setdefault(result.panel, []).append(result)
    if not by_panel:
        raise InvalidInputError("results must hold at least one run, got none.")
    return [_summary(name, runs) for name, runs in by_panel.items()]


def _summary(name: str, runs: list[PanelResult]) -> Record:
    methods = runs[0].scores
    spread = {
        method: {
            stretch: _spread([run.scores[method][stretch] for run in runs]) for stretch in stretches
        }
        for method, stretches in methods.items()
    }
    return {
        "panel": name,
        "seeds": len(runs),
        "rmse": spread,
        "gap": {part: _spread([run.gap[part] for run in runs]) for part in runs[0].gap},
    }


def _spread(values: list[float]) -> Score:
    return {
        "median": float(np.median(values)),
        "least": float(min(values)),
        "most": float(max(values)),
    }


def _forecasts(panel: Panel, samples: Samples, *, learn: bool) -> tuple[Vector, dict[str, Vector]]:
    """Return the forecasts after the history, (T,), and the hyperparameters of each."""
    history = panel.interpretation.history
    learner = OnlineLearner(
        panel.model,
        samples[:history],
        train_size=panel.interpretation.train_size,
        update_every=UPDATE_EVERY,
        step=ConstantStep(LEARNING_RATE),
        coordinates=Chart.natural,
        learn=learn,
    )
    paths = [learner.lam]
    forecasts = []
    for step in run(learner, samples[history:]):
        forecasts.append(step.forecast[0])
        paths.append(learner.lam)
    columns = np.array(paths[:-1]).T
    return np.array(forecasts), dict(zip(panel.model.space.names, columns, strict=True))
