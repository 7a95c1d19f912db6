"""Compare rules for intervals on the same forecasts, by interval score and coverage.

    python benchmarks/bench_intervals.py log FOLDER FILE [FILE ...] [--sensor NAME] [--from DAY]
    python benchmarks/bench_intervals.py compare FOLDER [--chosen STREAM ...]

`log` runs a forecaster once per stream, 1 and 4 steps ahead, and stores in FOLDER for each step the
forecast, the expected size of its error, the product's intervals and the value. After each refit it
stores quantiles of the leave-one-out scores of the new fit: residuals divided by one minus their
leverage, and by the expected size.

`compare` applies the rules of `intervals.methods` to these forecasts, in units of the expected
size. Each rule has a few settings, such as a rate. The best one is chosen on the streams named by
`--chosen`, and the other streams confirm it. Printed are interval scores over those of the product
by level, the least and the largest mean of a stream, and coverages by level. The first three days
of forecasts are not scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy.streams import Plan, Stream, days_in_steps, load
from intervals.methods import (
    LEVELS,
    ConformalPID,
    ErrorQuantified,
    LeaveOneOut,
    Multiplicative,
    RecentQuantiles,
    Rule,
    ScaleFreeDescent,
    Score,
    interval_score,
)
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

import streamridge as sr
from streamridge.arrays import Matrix
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.bands import ConformalBands

LEADS = (1, 4)
# Days of forecasts before the first scored one, and their smallest number.
SETTLING_DAYS, SETTLING_STEPS = 3, 100
# Scores whose range sets a rate, and first scores whose largest sets a scale.
RANGE = 100
# Probabilities at which leave-one-out scores are stored.
QUANTILES = np.linspace(0, 1, 2001)

Log = dict[str, np.ndarray]
Figures = dict[str, np.ndarray]  # by rule: interval scores and coverages, (2, leads, levels)

RATES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
# By rule: how it is made from its start and its settings, and these settings.
RULES: dict[str, tuple[Callable[..., Rule], Sequence[float]]] = {
    "product's rule": (Multiplicative, (0.1, 0.05, 0.02)),
    "quantile tracking": (partial(ConformalPID, integrates=False), RATES),
    "conformal PID": (ConformalPID, RATES),
    "SF-OGD": (ScaleFreeDescent, (3**0.5, 1, 0.5, 0.25, 0.1)),
    "ECI": (ErrorQuantified, RATES),
    "ECI-integral": (partial(ErrorQuantified, integral=True), RATES),
    "last scores": (RecentQuantiles, (250, 500, 1000, 2000)),
    "leave-one-out": (LeaveOneOut, (0, 0.005, 0.02)),
}


def main() -> None:
    """Log forecasts, or compare rules on logged ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    log = commands.add_parser("log", help="run forecasters, and store their forecasts")
    log.add_argument("folder", type=Path)
    log.add_argument("files", nargs="+", metavar="FILE")
    log.add_argument("--sensor", action="append", help="stream to take; all by default")
    log.add_argument("--from", dest="first", help="first day of the history")
    log.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    log.add_argument("--history-days", type=float, default=60)
    log.add_argument("--days", type=float, default=40)
    log.add_argument("--model", default="compact")
    compare = commands.add_parser("compare", help="apply rules to stored forecasts")
    compare.add_argument("folder", type=Path)
    compare.add_argument("--chosen", nargs="+", default=[], help="streams that choose settings")
    options = parser.parse_args()
    log_streams(options) if options.command == "log" else print_tables(options)


def log_streams(options: argparse.Namespace) -> None:
    """Store the forecasts of each stream of the files."""
    options.folder.mkdir(parents=True, exist_ok=True)
    reading = ReadingOptions(sensors=options.sensor, from_=options.first)
    plan = Plan(warmup_days=options.history_days, days=options.days)
    for file in options.files:
        for stream in load(file, reading, plan, mask=options.mask):
            with threadpool_limits(1):
                logged = logged_forecasts(stream, options.model)
            np.savez_compressed(options.folder / f"{stream.name}.npz", **logged)
            print(f"{stream.name}: {len(logged['value'])} steps", flush=True)


def logged_forecasts(stream: Stream, model: str) -> Log:
    """Return the forecasts of a stream after its history, as arrays with a row for each step."""
    series, first = stream.series, stream.warmup
    history = replace(series, values=series.values[:first])
    forecaster = sr.Forecaster.start(history, horizon=max(LEADS), level=LEVELS, model=model)
    forecaster.workspace = sr.Workspace()  # keeps the matrices of the newest fit
    leads, rows, scores = np.array(LEADS) - 1, [], [leave_one_out(forecaster)]
    refits = [0]
    for at, value in enumerate(series.values[first:].tolist()):
        forecast, made = forecaster.predict(), forecaster._next_forecast(None).by_model
        spread = np.full(len(leads), np.nan) if made is None else made.spreads[leads]
        rows.append((forecast.value[leads], spread, forecast.lower[leads], forecast.upper[leads]))
        fits = forecaster.counts["fits"]
        forecaster.observe(series.times[first + at], value)
        if forecaster.counts["fits"] > fits:
            refits.append(at + 1)
            scores.append(leave_one_out(forecaster))
    value, spread, lower, upper = (np.array(each) for each in zip(*rows, strict=True))
    settling = max(
        SETTLING_STEPS, round(SETTLING_DAYS * min(days_in_steps(series.clock.step), 1e3))
    )
    return {
        "actual": stream.series.values[first:],
        "scored": ~stream.flagged[first:],
        "value": value,
        "spread": spread,
        "lower": lower,
        "upper": upper,
        "refits": np.array(refits),
        "leave_one_out": np.array(scores),
        "settling": np.array(settling),
    }


def leave_one_out(forecaster: sr.Forecaster) -> Matrix:
    """Return quantiles of the leave-one-out scores of the newest fit, (leads, Q)."""
    fit: Any = forecaster._require_model().fit
    while hasattr(fit, "fit"):  # a fit in other units
        fit = fit.fit
    system, spread = fit.system, fit.learn_spread()
    half = solve_triangular(system.whitening, system.rows.T, lower=True)
    half = solve_triangular(system.factor, half, lower=True)
    leverage = np.minimum((half**2).sum(axis=0), 0.99)[:, None]
    sizes = spread.at(system.rows @ spread.phi)
    scores = fit._residuals() / (1 - leverage) / sizes
    return np.array([np.quantile(scores[:, lead - 1], QUANTILES) for lead in LEADS])


def print_tables(options: argparse.Namespace) -> None:
    """Print the figures of each rule on the streams that chose its setting, and on the others."""
    paths = sorted(options.folder.glob("*.npz"))
    found = {path.stem: figures_of(dict(np.load(path))) for path in paths}
    chosen = [name for name in found if name in options.chosen] or list(found)
    best = {rule: best_setting(rule, [found[name] for name in chosen]) for rule in RULES}
    others = [name for name in found if name not in chosen]
    for word, names in {"chosen on": chosen, "confirmed on": others}.items():
        if names:
            print(f"\n{word} {', '.join(names)}")
            print(table(best, [found[name] for name in names]))


def figures_of(log: Log) -> Figures:
    """Return scores and coverages of the product and of each rule at each of its settings."""
    leads = range(len(LEADS))
    figures = {"product": [judged(log, i, log["lower"][:, i], log["upper"][:, i]) for i in leads]}
    for rule, (make, settings) in RULES.items():
        reach = [reaches(log, i, make(start(), settings)) for i in leads]
        for at, setting in enumerate(settings):
            figures[named(rule, setting)] = [
                judged(log, i, *intervals(log, i, reach[i][:, at])) for i in leads
            ]
    return {name: np.stack(each, axis=1) for name, each in figures.items()}


def named(rule: str, setting: float) -> str:
    """Return the name of a rule with one of its settings."""
    return f"{rule} {setting:g}"


def start() -> Matrix:
    """Return the reach before any score, as in the product, (2, K)."""
    return ConformalBands.start(horizon=1, level=LEVELS).reach[0]


def reaches(log: Log, i: int, rule: Rule) -> np.ndarray:
    """Return the reach at each step, after all scores that are known by then, (T, R, 2, K)."""
    lead, scores = LEADS[i], iter(scores_of(log, i))
    refits = dict(zip(log["refits"].tolist(), log["leave_one_out"][:, i], strict=True))
    issued: list[np.ndarray] = []
    for at in range(len(log["actual"])):
        if at in refits and isinstance(rule, LeaveOneOut):
            rule.refit(refits[at])
        issued.append(rule.reach)
        score = next(scores)
        if score is not None:
            rule.observe(score, issued[at - lead + 1])
    return np.array(issued)


def scores_of(log: Log, i: int) -> list[Score | None]:
    """Return the score that becomes known at each step; None without one."""
    lead, actual = LEADS[i], log["actual"]
    made = slice(0, len(actual) - lead + 1)  # the forecasts of the steps from `lead` - 1 on
    errors = (actual[lead - 1 :] - log["value"][made, i]) / log["spread"][made, i]
    known = errors[np.isfinite(errors)]
    last = pd.Series(known).rolling(RANGE, min_periods=1)
    ranges, largest = (last.max() - last.min()).to_list(), np.maximum.accumulate(np.abs(known))
    found = iter(
        Score(np.array([[-error], [error]]), np.full((2, 1), width), largest[min(at, RANGE - 1)])
        for at, (error, width) in enumerate(zip(known, ranges, strict=True))
    )
    return [None] * (lead - 1) + [next(found) if np.isfinite(error) else None for error in errors]


def intervals(log: Log, i: int, reach: np.ndarray) -> tuple[Matrix, Matrix]:
    """Return the ends of nested intervals around the forecasts, given their reach, (T, 2, K).

    As in the product, they do not reach below zero where no value does.
    """
    reach = np.maximum.accumulate(np.maximum(reach, 0), axis=2)
    reach = reach * np.nan_to_num(log["spread"][:, i])[:, None, None]
    value, least = log["value"][:, i, None], 0.0 if np.nanmin(log["actual"]) >= 0 else -np.inf
    return np.maximum(value - reach[:, 0], np.minimum(least, value)), value + reach[:, 1]


def judged(log: Log, i: int, lower: Matrix, upper: Matrix) -> np.ndarray:
    """Return interval score and coverage of each level, (2, K), over the scored steps."""
    lead, actual = LEADS[i], log["actual"]
    ends = np.arange(lead - 1, len(actual))  # the steps that are forecast
    origins, values = ends - lead + 1, actual[ends]
    kept = np.isfinite(values) & log["scored"][ends] & np.isfinite(log["spread"][origins, i])
    kept &= origins >= log["settling"]
    origins, values = origins[kept], values[kept]
    inside = (lower[origins] <= values[:, None]) & (values[:, None] <= upper[origins])
    return np.stack([interval_score(values, lower[origins], upper[origins]), inside.mean(axis=0)])


def best_setting(rule: str, streams: list[Figures]) -> float:
    """Return the setting of a rule with the least mean ratio of interval scores."""
    return min(RULES[rule][1], key=lambda each: float(ratios(named(rule, each), streams).mean()))


def ratios(name: str, streams: list[Figures]) -> np.ndarray:
    """Return interval scores over those of the product, (streams, leads, levels)."""
    return np.array([each[name][0] / each["product"][0] for each in streams])


def table(best: dict[str, float], streams: list[Figures]) -> str:
    """Return a line per rule and lead: ratios of scores, and mean coverages by level."""
    head = ["rule", "setting", "steps ahead", *(f"{level:.0%}" for level in LEVELS)]
    head += ["mean", "least", "largest", "coverage"]
    lines = [head, ["---"] * len(head)]
    rows = [("product", "", "product")]
    rows += [(rule, f"{each:g}", named(rule, each)) for rule, each in best.items()]
    for rule, setting, name in rows:
        each = ratios(name, streams)
        covered = np.array([stream[name][1] for stream in streams]).mean(axis=0)
        for i, lead in enumerate(LEADS):
            means = each[:, i].mean(axis=1)
            cells = [*each[:, i].mean(axis=0), means.mean(), means.min(), means.max()]
            shares = ", ".join(f"{100 * share:.1f}" for share in covered[i])
            lines.append([rule, setting, str(lead), *(f"{cell:.3f}" for cell in cells), shares])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
