"""The study of section 6.1: FIXED and OHL from the same start, one step ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.experiments.synthetic.panels import PANELS, Panel
from streamridge.hyperparameters.coordinates import Chart
from streamridge.learners.base import run
from streamridge.learners.online import OnlineLearner
from streamridge.learners.steps import ConstantStep
from streamridge.metrics import rmse
from streamridge.samples import Samples

UPDATE_EVERY = 10
LEARNING_RATE = 0.001
STEPS = 600
STRETCH = 100  # a run is scored over this many steps at either end

Score = dict[str, float]
Record = dict[str, object]
# Called with the number of runs that are done, and of all runs.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PanelResult:
    """The forecasts of FIXED and OHL on one series, one step ahead.

    Parameters
    ----------
    panel, seed
        The name of the panel, and the seed of its series.
    times, actual
        (T,), the steps since the start of the series, and the true values.
    fixed, ohl
        (T,), the forecasts.
    path
        (T,) each: the hyperparameters behind each forecast of OHL, by name.
    """

    panel: str
    seed: int
    times: Vector
    actual: Vector
    fixed: Vector
    ohl: Vector
    path: dict[str, Vector]

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
    samples = panel.reading.samples(seed, steps)
    stream = samples[panel.reading.history :]
    fixed, _ = _forecasts(panel, samples, learn=False)
    ohl, path = _forecasts(panel, samples, learn=True)
    return PanelResult(panel.name, seed, stream.t, stream.y[:, 0], fixed, ohl, path)


def run_synthetic(
    seeds: Sequence[int],
    steps: int = STEPS,
    *,
    panels: Sequence[Panel] = PANELS,
    progress: Progress | None = None,
) -> list[PanelResult]:
    """Return the result of every panel on every seed; after Ctrl-C, those that are done."""
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
    history = panel.reading.history
    learner = OnlineLearner(
        panel.model,
        samples[:history],
        train_size=panel.reading.train_size,
        update_every=UPDATE_EVERY,
        step=ConstantStep(LEARNING_RATE),
        coordinates=Chart.natural,
        learn=learn,
    )
    in_force = [learner.lam]
    forecasts = []
    for step in run(learner, samples[history:]):
        forecasts.append(step.forecast[0])
        in_force.append(learner.lam)
    columns = np.array(in_force[:-1]).T
    return np.array(forecasts), dict(zip(panel.model.space.names, columns, strict=True))
