"""Measure how long the regularization takes from a start that is two hundred times too small.

    python benchmarks/bench_bad_start.py [--seeds 0 1 2] [--days 42] [--start 0.005] [--json]

A simulated road with the settings of `streamridge demo`: 14 days before the first fit, 672 rows,
four refits a day. The forecaster starts at the default regularization and at the given one, with
each step rule of `RULES`.

- day: the first of seven days in a row on which the regularization is within a factor of two of
  the run from the default start; none if there are no such days. A day on which it only passes by
  does not count.
- largest: the largest regularization, over the run from the default start on the same day
- weeks: RMSE per week, divided by the RMSE of the run from the default start
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import AgreementStep, Forecaster
from streamridge.arrays import Vector
from streamridge.datasets import simulate_roads
from streamridge.forecaster.methods import starting_at
from streamridge.learners.lazy_descent import StepRule

STEP, DAY, WEEK = timedelta(minutes=15), 96, 7
KNOWN_DAYS, ROWS, UPDATE_EVERY = 14, 672, 24
FIRST_DAY = datetime(2017, 1, 1)
RULES: dict[str, StepRule] = {"agreement": AgreementStep()}


@dataclass(frozen=True)
class Path:
    """The regularization at the start of each day, and the squared errors, shape (days, DAY)."""

    regularization: Vector
    squares: Vector


def main() -> None:
    """Print a line per seed and rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--days", type=int, default=42)
    parser.add_argument("--start", type=float, default=0.005)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    days = KNOWN_DAYS + options.days
    for seed in options.seeds:
        (values,) = simulate_roads(np.random.default_rng(seed), detectors=1, days=days).flows.T
        with threadpool_limits(1):
            good = lived(values, {}, AgreementStep())
            for name, rule in RULES.items():
                bad = lived(values, {"regularization": options.start}, rule)
                row = {"seed": seed, "rule": name, **compared(bad, good)}
                print(json.dumps(row) if options.json else row, flush=True)


def lived(values: Vector, start: dict[str, float], rule: StepRule) -> Path:
    """Return the path of a forecaster with this start and step rule."""
    settings = Forecaster(
        STEP, train_size=ROWS, update_every=UPDATE_EVERY, warmup=KNOWN_DAYS * DAY
    ).settings
    own = starting_at(start, settings)
    own = replace(own, preset=replace(own.preset, step_rule=rule))
    forecaster, path, errors = Forecaster.from_settings(own), [], []
    for at, value in enumerate(values.tolist()):
        if at >= KNOWN_DAYS * DAY:
            if at % DAY == 0:
                path.append(forecaster.hyperparameters["regularization"])
            errors.append(value - float(np.ravel(forecaster.predict().value)[0]))
        forecaster.observe(FIRST_DAY + at * STEP, value)
    return Path(np.array(path), np.square(errors).reshape(-1, DAY))


def compared(bad: Path, good: Path) -> dict[str, object]:
    """Return the figures of a run from a bad start."""
    ratios = bad.regularization / good.regularization
    near = np.abs(np.log(ratios)) <= np.log(2)
    settled = np.convolve(near, np.ones(WEEK), mode="valid") == WEEK
    weeks = [
        float(np.sqrt(bad.squares[at : at + WEEK].mean() / good.squares[at : at + WEEK].mean()))
        for at in range(0, len(near) - WEEK + 1, WEEK)
    ]
    return {
        "day": int(settled.argmax()) if settled.any() else None,
        "largest": float(f"{ratios.max():.2g}"),
        "weeks": [round(each, 3) for each in weeks],
        "regularization": [float(f"{each:.2g}") for each in bad.regularization],
        "from default": [float(f"{each:.2g}") for each in good.regularization],
    }


if __name__ == "__main__":
    main()
