"""Measure how fast hyperparameters, forecasts and intervals follow a change of regime.

    python benchmarks/bench_regime.py [--seeds 5] [--figure docs/images/regime.png]
    python benchmarks/bench_regime.py --intervals [--seeds 2]

With `--intervals` a compact model forecasts simulated roads, and a daily wave with noise, one step
ahead. Changes: the noise times 6, the level times 3 or 10 or divided by 10, a closed road. Reported
are the coverage of 90 % intervals in the first 12 hours, on days 1 and 2, and the RMSE of day 1
over that of the last value. Then: the coverage during silence, the widths of neighbouring steps and
leads, the widths after equal readings, and a sensor that is read eight hours a day.

Without it, the hyperparameters are watched. For 200 days a stream repeats one daily course under
strong noise: the best forecast is the mean of many days. Then the noise falls, and the course
begins to wander from day to day: yesterday counts most. The best values before and after are the
medians of the last days of each part. Reported is after how many days a hyperparameter has come
halfway, in logarithms.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from streamridge import Forecaster
from streamridge.arrays import Vector
from streamridge.datasets import simulate_roads

DAY, CHANGE, AFTER = 96, 200, 50
# Rows of a fit: ten days.
TRAIN_SIZE = 960
# What the change asks for: smoothness, and how fast the daily profile forgets.
WATCHED = {
    "regularization": "regularization",
    "day_forgetting": "forgetting rate of the daily profile",
}
SETTLED = 20


def main() -> None:
    """Print the days to halfway for each hyperparameter, and draw their paths if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--figure", help="PNG file of the paths")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--intervals", action="store_true", help="forecasts and intervals instead")
    options = parser.parse_args()
    if options.intervals:
        with threadpool_limits(1):
            study_intervals(options.seeds)
        return
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        paths = list(pool.map(path, range(options.seeds)))
    days = {name: [halfway(each[name]) for each in paths] for name in WATCHED}
    if options.figure:
        draw(paths, options.figure)
    if options.json:
        print(json.dumps(days))
        return
    for name, each in days.items():
        print(f"{name}: halfway after {np.median(each):g} days (range {min(each)} - {max(each)})")


def stream(seed: int) -> Vector:
    """Return readings: a course under strong noise, then one that wanders, under weak noise."""
    rng = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(DAY) / DAY
    usual = 300 - 200 * np.cos(t) + 60 * np.cos(2 * t)
    course, deviation, days = usual, 0.0, []
    for day in range(CHANGE + AFTER):
        changed = day >= CHANGE
        if changed:
            waves = sum(
                rng.normal() * np.cos(k * t + rng.uniform(0, 2 * np.pi)) for k in range(1, 9)
            )
            course = usual + 0.98 * (course - usual) + 12.5 * waves
        for value in course:
            deviation = 0.7 * deviation + rng.normal(0, 8.0 if changed else 25.0)
            days.append(value + deviation)
    return np.array(days)


def path(seed: int) -> dict[str, Vector]:
    """Return the hyperparameters that are watched at the end of each day, by name."""
    forecaster = Forecaster(step="15min", train_size=TRAIN_SIZE)
    start, step = np.datetime64("2021-01-01"), np.timedelta64(15, "m")
    found: dict[str, list[float]] = {name: [] for name in WATCHED}
    with threadpool_limits(1):
        for at, value in enumerate(stream(seed).tolist()):
            forecaster.predict()
            forecaster.observe(start + at * step, value)
            if at % DAY == DAY - 1:
                for name, values in found.items():
                    values.append(forecaster.hyperparameters[name])
    return {name: np.array(values) for name, values in found.items()}


def halfway(values: Vector) -> int:
    """Return after how many days a value has come halfway from its old best to its new one."""
    logs = np.log(values)
    old, new = np.median(logs[CHANGE - SETTLED : CHANGE]), np.median(logs[-SETTLED:])
    passed = (logs[CHANGE:] - (old + new) / 2) * np.sign(new - old) >= 0
    return int(np.argmax(passed)) + 1


def draw(paths: list[dict[str, Vector]], file: str) -> None:
    """Draw the path of each hyperparameter around the change, a line for each seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, every = plt.subplots(len(WATCHED), 1, figsize=(8, 6), sharex=True)
    days = np.arange(CHANGE + AFTER) - CHANGE
    for axes, (name, words) in zip(every, WATCHED.items(), strict=True):
        for each in paths:
            axes.plot(days, each[name], color="tab:blue", alpha=0.7)
        axes.axvline(0, color="black", linewidth=1)
        axes.axvspan(0, 10, color="tab:orange", alpha=0.2, label="ten days after the change")
        axes.set(yscale="log", ylabel=words, xlim=(-60, AFTER))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.grid(alpha=0.3)
    every[0].set_title("A change of regime, and the hyperparameters that follow it")
    every[0].legend(loc="lower left")
    every[-1].set_xlabel("days since the change")
    figure.savefig(Path(file), dpi=110, bbox_inches="tight")


KINDS = ("noise x6", "level x3", "level x10", "level /10", "closed")
HISTORY, BEFORE, SINCE = 20, 4, 3  # days of history, before a change, and after it
FIRST, STEP = np.datetime64("2021-06-14T00:00"), np.timedelta64(15, "m")


def study_intervals(seeds: int) -> None:
    """Print the figures of all parts."""
    every = range(seeds)
    names = ("12 h", "day 1", "day 2", "RMSE over last")
    for name in ("road", "wave"):
        for kind in KINDS:
            tell(f"{name}, {kind}", names, [followed(name, kind, seed) for seed in every])
    names = ("1 h", "12 h", "day 1", "day 2", "day 3")
    tell("silent, held", names, [held_in_silence(seed) for seed in every])
    names = ("step 99 %", "largest", "lead 99 %", "RMSE", "interval score", "held")
    for horizon in (1, 4):
        rows = [neighbours(horizon, seed) for seed in every]
        tell(f"neighbouring widths, horizon {horizon}", names, rows)
    for reading in (57.0, 0.0, 20.1):
        forecast = lived([reading, reading], horizon=1)[0].predict()
        print(f"{reading} twice: {forecast.lower[0]:.4g} to {forecast.upper[0]:.4g}")
    for learn in (True, False):
        rows = [open_hours(learn, seed) for seed in every]
        tell(f"8 hours a day, learn={learn}, RMSE over a week ago", ("all", "first"), rows)


def tell(title: str, names: tuple[str, ...], rows: list[tuple[float, ...]]) -> None:
    """Print the mean of each column of some rows."""
    means = zip(names, np.mean(rows, axis=0).tolist(), strict=True)
    print(f"{title}: {', '.join(f'{name} {mean:.3g}' for name, mean in means)}", flush=True)


def road(seed: int, days: int, minutes: int = 15) -> Vector:
    """Return the counts of a simulated detector."""
    roads = simulate_roads(
        np.random.default_rng(seed), detectors=seed + 1, days=days, step_minutes=minutes
    )
    return roads.flows[:, seed].copy()


def lived(values: list[float], horizon: int) -> tuple[Forecaster, Vector]:
    """Return a forecaster after its history and some values, and its forecasts of these."""
    warmup, made = HISTORY * DAY, []
    forecaster = Forecaster("15min", model="compact", horizon=horizon, warmup=warmup)
    for at, value in enumerate(values):
        if at > HISTORY * DAY:
            forecast = forecaster.predict()
            made.append((forecast.value, forecast.lower, forecast.upper))
        forecaster.observe(FIRST + at * STEP, value)
    return forecaster, np.array(made)


def followed(name: str, kind: str, seed: int) -> tuple[float, ...]:
    """Return the coverage after a change, and the RMSE of the first day over the last value's."""
    t, change = np.arange((HISTORY + BEFORE + SINCE) * DAY), (HISTORY + BEFORE) * DAY
    mean = 300 - 150 * np.cos(2 * np.pi * t / DAY)
    values = mean + np.random.default_rng(seed).normal(0, 10, len(t))
    if name == "road":
        values = road(seed, HISTORY + BEFORE + SINCE)
        mean = np.convolve(np.pad(values, 4, mode="edge"), np.ones(9) / 9, "valid")
    level = {"level x3": 3.0, "level x10": 10.0, "level /10": 0.1, "closed": 0.0}.get(kind, 1.0)
    noise = 6.0 if kind == "noise x6" else 1.0
    changed = level * (mean + noise * (values - mean))
    values[change:] = np.maximum(np.rint(changed) if name == "road" else changed, 0.0)[change:]
    _, made = lived(values.tolist(), horizon=1)
    (value, lower, upper), seen = made[:, :, 0].T, values[HISTORY * DAY + 1 :]
    held, at = (lower <= seen) & (seen <= upper), BEFORE * DAY - 1
    last = values[HISTORY * DAY : -1]
    day = slice(at, at + DAY)
    ratio = np.sqrt(np.mean((value - seen)[day] ** 2) / np.mean((last - seen)[day] ** 2))
    second = held[at + DAY : at + 2 * DAY].mean()
    return held[at : at + DAY // 2].mean(), held[day].mean(), second, float(ratio)


def held_in_silence(seed: int) -> tuple[float, ...]:
    """Return the coverage in the first hour, in 12 hours, and on three days of silence."""
    values, silent = road(seed, HISTORY + 12).tolist(), []
    forecaster, _ = lived(values[: (HISTORY + 3) * DAY], horizon=1)
    for first in range((HISTORY + 3) * DAY, (HISTORY + 9) * DAY, DAY + 17):
        copy, held = Forecaster.from_bytes(forecaster.to_bytes()), []
        for at in range(first, first + 3 * DAY):
            forecast = copy.predict()
            held.append(forecast.lower[0] <= values[at] <= forecast.upper[0])
            copy.observe(FIRST + at * STEP, None)
        silent.append(held)
        for at in range(first, first + DAY + 17):
            forecaster.observe(FIRST + at * STEP, values[at])
    spans = ((0, 4), (4, DAY // 2), (DAY // 2, DAY), (DAY, 2 * DAY), (2 * DAY, 3 * DAY))
    return tuple(float(np.mean([held[a:b] for held in silent])) for a, b in spans)


def neighbours(horizon: int, seed: int) -> tuple[float, ...]:
    """Return ratios of widths, and the RMSE, interval score and coverage of steady days."""
    values = road(seed, HISTORY + 10)
    _, made = lived(values.tolist(), horizon=horizon)
    made, seen = made[2 * DAY :], values[HISTORY * DAY + 1 + 2 * DAY :]
    widths = np.log(made[:, 2] - made[:, 1])
    steps = np.abs(np.diff(widths[:, 0]))
    leads = np.abs(np.diff(widths, axis=1)) if horizon > 1 else np.zeros(1)
    errors, scores, held = [], [], []
    for h in range(horizon):
        value, lower, upper = made[: len(made) - h, :, h].T
        y = seen[h:]
        errors.append(np.mean((value - y) ** 2))
        outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
        scores.append(np.mean(upper - lower + 20 * outside))
        held.append(np.mean(outside == 0))
    ends = np.exp([np.quantile(steps, 0.99), steps.max(), np.quantile(leads, 0.99)])
    return (*ends.tolist(), float(np.sqrt(np.mean(errors))), np.mean(scores), np.mean(held))


def open_hours(learn: bool, seed: int) -> tuple[float, ...]:
    """Return the RMSE over that of a week ago, of all readings and of the first of each day."""
    values, hour = road(seed, 35, minutes=60), np.timedelta64(60, "m")
    forecaster, errors = Forecaster("1h", model="compact", train_size=400, learn=learn), []
    for at, value in enumerate(values.tolist()):
        is_open = 9 <= at % 24 < 17
        if is_open and at >= 21 * 24:
            error = forecaster.predict().value[0] - value
            errors.append((error, values[at - 7 * 24] - value, at % 24 == 9))
        forecaster.observe(FIRST + at * hour, value if is_open else None)
    own, week, first = np.array(errors).T
    first = first == 1
    means = [np.sqrt(np.mean(own[of] ** 2) / np.mean(week[of] ** 2)) for of in (own == own, first)]
    return tuple(map(float, means))


if __name__ == "__main__":
    main()
