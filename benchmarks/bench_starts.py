"""Measure what a bad start costs: starts drawn at random over the box, kept, tuned and searched.

    python benchmarks/bench_starts.py FILE --sensor NAME --from DAY [--starts 10] [--jobs 2]

The default model is lived through the stream from its own start, and from each random one in three
ways: fixed there, self-tuned from there, and self-tuned after a search. The first 60 days are not
scored, the next 60 are. Figures are RMSE over that of the self-tuned model from the default start.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from accuracy.ours import own_figures
from accuracy.streams import Plan, Stream, load
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.arrays import Vector
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.sizes import NAMED
from streamridge.series.lengths import default_seasons

# Ways to go on from a start, as settings of a forecaster.
WAYS: dict[str, dict[str, Any]] = {
    "fixed": {"learn": False},
    "self-tuned": {},
    "searched": {"start": "search"},
}
CLOSE = 1.02


def main() -> None:
    """Print a line per start, and how many of them end close to the default one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--sensor", required=True)
    parser.add_argument("--from", dest="first", help="first day of the warm-up")
    parser.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    reading = ReadingOptions(sensors=[options.sensor], from_=options.first)
    (stream,) = load(options.file, reading, Plan(), mask=options.mask)
    preset = preset_of(stream)
    rng = np.random.default_rng(options.seed)
    starts = [random_start(preset, rng) for _ in range(options.starts)]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        default = pool.submit(rmse, stream, preset.joint.space.values, "self-tuned")
        runs = [{way: pool.submit(rmse, stream, lam, way) for way in WAYS} for lam in starts]
        ratios = [
            {way: run.result() / default.result() for way, run in each.items()} for each in runs
        ]
    close = {way: sum(each[way] <= CLOSE for each in ratios) for way in WAYS}
    if options.json:
        print(json.dumps({"rmse": default.result(), "starts": ratios, "close": close}))
        return
    for at, each in enumerate(ratios):
        print(f"start {at + 1}:", "  ".join(f"{way} {ratio:.4f}" for way, ratio in each.items()))
    within = ", ".join(f"{way} {count}" for way, count in close.items())
    print(f"within 2 % of {default.result():.2f}, of {len(starts)} starts: {within}")


def preset_of(stream: Stream) -> Preset:
    """Return the default model of a stream."""
    step = stream.series.clock.step
    return NAMED["default"].preset(default_seasons(step), step)


def random_start(preset: Preset, rng: np.random.Generator) -> Vector:
    """Return hyperparameters drawn over the whole box, positive ones in logarithms."""
    parts = preset.joint.space.feasible.parts
    return np.concatenate([part.sample(rng, "log") for part in parts])


def rmse(stream: Stream, start: Vector, way: str) -> float:
    """Return the RMSE of a forecaster from a start."""
    preset = preset_of(stream).starting_at(start)
    forecaster = Forecaster(stream.series.clock.step, preset=preset, **WAYS[way])
    with threadpool_limits(1):
        return float(own_figures(stream, forecaster)["rmse"])


if __name__ == "__main__":
    main()
