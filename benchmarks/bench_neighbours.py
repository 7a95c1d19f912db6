"""Do neighbouring sensors help? RMSE with corrections by neighbours over that without them.

    python benchmarks/bench_neighbours.py FILE... [--horizon 4] [--model compact] [--from T]

Every file is a network: its sensors are replayed once, and corrected afterwards. The first quarter
of the scored steps is left out, since neighbours are learned there. Without a file, roads are
simulated: with waves that travel, and without.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

import streamridge as sr
from streamridge.datasets import simulate_roads
from streamridge.forecaster.candidates import Candidates
from streamridge.forecaster.methods import starting_at
from streamridge.forecaster.neighbours import Neighbours
from streamridge.forecaster.network import medians
from streamridge.runs.neighbour_runs import corrected_runs
from streamridge.runs.tasks import model_settings

# Horizons of the table.
LEADS = (1, 2, 3, 4, 6, 12)


def replayed(series: dict[str, sr.Series], model: str, horizon: int) -> tuple[list[sr.Run], float]:
    """Return the runs of all sensors, and the processor seconds they took."""
    began, runs = time.process_time(), []
    for name, each in series.items():
        settings = model_settings(model, each.clock.step, horizon=horizon)
        forecaster = sr.Forecaster.from_settings(settings)
        runs.append(sr.replay(forecaster, each))
        print(f"  {name}: {runs[-1].rmse:.4g}", flush=True)
    return runs, time.process_time() - began


def table(title: str, runs: list[sr.Run], seconds: float, model: str) -> None:
    """Print the ratios of RMSE at each horizon, and the costs."""
    settings = model_settings(model, runs[0].step.astype("m8[us]").item(), horizon=runs[0].horizon)
    layer = Neighbours.of(settings)
    began = time.process_time()
    helped = corrected_runs(runs, layer, Candidates("auto"))
    more = time.process_time() - began
    print(f"\n{title}: {len(runs)} sensors, {runs[0].scored_span}")
    print(f"processor seconds: {seconds:.0f} for the sensors, {more:.1f} for neighbours")
    print("| steps ahead | mean | even sensors | odd sensors | best | worst | coverage |")
    print("|---|---|---|---|---|---|---|")
    for lead in (each for each in LEADS if each <= layer.horizon):
        pairs = zip(helped, runs, strict=True)
        ratios = np.array([later_rmse(one, lead) / later_rmse(own, lead) for one, own in pairs])
        held = np.mean([one.score(lead).coverages[one.levels[0]] for one in helped])
        figures = (
            ratios.mean(),
            ratios[::2].mean(),
            ratios[1::2].mean(),
            ratios.min(),
            ratios.max(),
        )
        print(f"| {lead} | " + " | ".join(f"{each:.4f}" for each in figures) + f" | {held:.3f} |")


def later_rmse(run: sr.Run, lead: int) -> float:
    """Return the RMSE of the last three quarters of a run."""
    errors = run.errors(lead)
    return float(np.sqrt(np.square(errors[len(errors) // 4 :]).mean()))


def start_study(series: dict[str, sr.Series], model: str, days: int) -> None:
    """Print how soon new sensors reach their later accuracy, with and without a typical start."""
    print("\nmean RMSE by days after the first fit, over the same sensor started as by default")
    names, day = list(series), next(iter(series.values())).clock
    half = names[: len(names) // 2]
    print(f"typical hyperparameters of {', '.join(half)}; {day.step}")
    fitted = []
    for name in half:
        each = series[name]
        forecaster = sr.Forecaster.from_settings(model_settings(model, each.clock.step))
        sr.replay(forecaster, each)
        fitted.append(list(forecaster.hyperparameters.values()))
    settings = model_settings(model, series[names[0]].clock.step)
    space = settings.preset.joint.space
    typical = space.named(space.feasible.project(medians(np.array(fitted))))
    rows = []
    for name in names[len(names) // 2 :]:
        runs = [
            sr.replay(sr.Forecaster.from_settings(each), series[name])
            for each in (settings, starting_at(typical, settings))
        ]
        own, started = (np.square(run.errors_in_time) for run in runs)
        cuts = np.array([0, 3, 7, 14, 28, days]) * settings.day
        rows.append(
            [np.sqrt(np.nanmean(started[a:b]) / np.nanmean(own[a:b])) for a, b in pairwise(cuts)]
        )
        print(f"  {name}: " + " ".join(f"{each:.4f}" for each in rows[-1]), flush=True)
    print("| days 1-3 | 4-7 | 8-14 | 15-28 | later |")
    print("| " + " | ".join(f"{each:.4f}" for each in np.mean(rows, axis=0)) + " |")


def main() -> None:
    """Run the studies that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--horizon", type=int, default=4)
    parser.add_argument("--model", default="compact")
    parser.add_argument("--from", dest="since")
    parser.add_argument("--to")
    parser.add_argument("--start", action="store_true", help="the study of typical starts instead")
    given = parser.parse_args()
    networks = {}
    for file in given.files:
        options = {"from_": given.since, "to": given.to}
        read = sr.read(file, **{k: v for k, v in options.items() if v is not None})
        networks[file] = dict(read.series)
    if not given.files:
        for waves in (0.0, 0.3):
            rng = np.random.default_rng(7)
            roads = simulate_roads(rng, detectors=8, days=28, waves=waves)
            networks[f"simulated, waves {waves:g}"] = dict(sr.read(roads.frame()).series)
    for title, series in networks.items():
        if given.start:
            start_study(series, given.model, 56)
        else:
            table(title, *replayed(series, given.model, given.horizon), given.model)


if __name__ == "__main__":
    main()
