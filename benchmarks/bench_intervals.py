"""Compare rules for intervals on the same forecasts, by interval score and coverage.

    python benchmarks/bench_intervals.py log FOLDER FILE [FILE ...] [--sensor NAME] [--from DAY]
    python benchmarks/bench_intervals.py compare FOLDER [--chosen STREAM ...] [--level 0.9]

`log` runs a forecaster once per stream, 1 and 4 steps ahead, and stores in FOLDER for each step the
forecast, the expected size of its error, the product's intervals and the value. After each refit it
stores quantiles of the leave-one-out scores of the new fit: residuals divided by one minus their
leverage, and by the expected size.

`compare` applies the rules of `intervals.methods` to these forecasts, in units of the expected
size. Each rule has a few rates. The best rate is chosen on the streams named by `--chosen`. The
other streams confirm it. Printed are interval scores over those of the product (mean and largest of
the streams), and coverages, for each level and number of steps ahead. The first three days of
forecasts are not scored.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
# Probabilities at which leave-one-out scores are stored.
QUANTILES = np.linspace(0, 1, 2001)

Log = dict[str, np.ndarray]
Figures = dict[str, np.ndarray]  # by rule: interval scores and coverages, (2, leads, levels)

RATES = {"0.1": 0.1, "0.05": 0.05, "0.02": 0.02, "0.01": 0.01}
RULES: dict[str, dict[str, Callable[[Matrix], Rule]]] = {
    "product's rule": {name: partial(Multiplicative, rate=rate) for name, rate in RATES.items()},
    "quantile tracking": {
        name: partial(ConformalPID, rate=rate, integrates=False) for name, rate in RATES.items()
    },
    "conformal PID": {name: partial(ConformalPID, rate=rate) for name, rate in RATES.items()},
    "SF-OGD": {
        f"{each:g}": partial(ScaleFreeDescent, multiple=each) for each in (3**0.5, 1, 0.5, 0.25)
    },
    "ECI": {name: partial(ErrorQuantified, rate=rate) for name, rate in RATES.items()},
    "ECI-integral": {
        name: partial(ErrorQuantified, rate=rate, integral=True) for name, rate in RATES.items()
    },
    "last scores": {
        str(window): partial(RecentQuantiles, window=window) for window in (250, 500, 1000, 2000)
    },
    "leave-one-out": {f"{each:g}": partial(LeaveOneOut, rate=each) for each in (0, 0.005, 0.02)},
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
    compare.add_argument("--chosen", nargs="+", default=[], help="streams that choose the rates")
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
    """Print what each rule has on the streams that chose its rate, and on the others."""
    found = {path.stem: figures_of(dict(np.load(path))) for path in logs(options.folder)}
    chosen = [name for name in found if name in options.chosen] or list(found)
    best = {rule: best_rate(rule, [found[name] for name in chosen]) for rule in RULES}
    others = [name for name in found if name not in chosen]
    for word, names in {"chosen on": chosen, "confirmed on": others}.items():
        if names:
            print(f"\n{word} {', '.join(names)}")
            print(table(best, [found[name] for name in names]))


def logs(folder: Path) -> list[Path]:
    """Return the logs of a folder, in order."""
    return sorted(folder.glob("*.npz"))


def figures_of(log: Log) -> Figures:
    """Return scores and coverages of the product and of each rule at each rate."""
    rules = {f"{rule} {name}": make for rule, each in RULES.items() for name, make in each.items()}
    figures = {"product": product_figures(log)}
    return figures | {name: rule_figures(log, make) for name, make in rules.items()}


def product_figures(log: Log) -> np.ndarray:
    """Return the figures of the logged intervals, (2, leads, levels)."""
    return np.stack(
        [judged(log, i, log["lower"][:, i], log["upper"][:, i]) for i in range(len(LEADS))], axis=1
    )


def rule_figures(log: Log, make: Callable[[Matrix], Rule]) -> np.ndarray:
    """Return the figures of a rule, (2, leads, levels)."""
    found = []
    for i, lead in enumerate(LEADS):
        reach = np.array(list(reaches(log, i, lead, make(start()))))
        reach = np.maximum.accumulate(np.maximum(reach, 0), axis=2)  # nested, around the forecast
        reach = reach * np.nan_to_num(log["spread"][:, i])[:, None, None]
        value = log["value"][:, i, None]
        found.append(judged(log, i, value - reach[:, 0], value + reach[:, 1]))
    return np.stack(found, axis=1)


def start() -> Matrix:
    """Return the reach before any score, as in the product, (2, K)."""
    return ConformalBands.start(horizon=1, level=LEVELS).reach[0]


def reaches(log: Log, i: int, lead: int, rule: Rule) -> Iterator[Matrix]:
    """Yield the reach at each step, after all scores that are known by then."""
    refits = dict(zip(log["refits"].tolist(), log["leave_one_out"][:, i], strict=True))
    issued: list[Matrix] = []
    for at, value in enumerate(log["actual"].tolist()):
        if at in refits and isinstance(rule, LeaveOneOut):
            rule.refit(refits[at])
        issued.append(rule.reach)
        yield rule.reach
        made = at - lead + 1  # the forecast of this step
        if made >= 0:
            score = (value - log["value"][made, i]) / log["spread"][made, i]
            if np.isfinite(score):
                rule.observe(np.array([-score, score]), issued[made])


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


def best_rate(rule: str, streams: list[Figures]) -> str:
    """Return the rate of a rule with the least mean ratio of interval scores."""
    return min(RULES[rule], key=lambda name: float(ratios(f"{rule} {name}", streams).mean()))


def ratios(name: str, streams: list[Figures]) -> np.ndarray:
    """Return interval scores over those of the product, (streams, leads, levels)."""
    return np.array([each[name][0] / each["product"][0] for each in streams])


def table(best: dict[str, str], streams: list[Figures]) -> str:
    """Return a line per rule and lead: ratios of scores (largest), and coverages by level."""
    head = ["rule", "rate", "steps ahead"]
    head += [f"{level:.0%}" for level in LEVELS] + ["mean", "largest", "coverage"]
    lines = [head, ["---"] * len(head)]
    for rule, rate in {"product": "", **best}.items():
        name = f"{rule} {rate}".strip()
        each = ratios(name, streams)
        covered = np.array([stream[name][1] for stream in streams]).mean(axis=0)
        for i, lead in enumerate(LEADS):
            means = [*each[:, i].mean(axis=0), each[:, i].mean()]
            worst = each[:, i].mean(axis=1).max()
            shares = ", ".join(f"{share:.1%}" for share in covered[i])
            lines.append(
                [rule, rate, str(lead), *(f"{mean:.3f}" for mean in means), f"{worst:.3f}", shares]
            )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
