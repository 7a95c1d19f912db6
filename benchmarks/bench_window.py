"""Measure what one window of online learning costs against one bare factorization.

A window is a refit, 96 forecasts, the hyper-gradient and the move, as `OnlineLearner` does them. It
is set against one LAPACK dpotrf of the same size on the same threads, in one run, interleaved:

    python benchmarks/bench_window.py            # tables for people
    python benchmarks/bench_window.py --json     # one object on standard output
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from streamridge import (
    ARD,
    Drifting,
    Features,
    KernelRidge,
    Linear,
    Matern,
    OnlineLearner,
    Periodic,
    Samples,
)
from streamridge.datasets import simulate_roads
from streamridge.kernels.base import Arena
from streamridge.models.hypergradient import dual_jacobian, step_gradients
from streamridge.models.ridge import KernelFit
from streamridge.models.systems import Ridge, fill

DAY, WEEK = 96, 672
FEATURES = Features(lags=20, seasonal=(DAY, WEEK), calendar=(DAY, WEEK))
WIDTH = FEATURES.layout.width
PAPER = Periodic(DAY) + ARD(np.full(WIDTH, 0.05))
MIXTURE = Periodic(DAY) + Matern(np.full(WIDTH, 0.02)) + Linear(("lags",))
DIMENSIONS = (5, 10, 20, 50, 100, 200)


def main() -> None:
    """Measure, and print tables or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--threads", type=int, default=1, help="threads of BLAS (default 1)")
    parser.add_argument("--repeats", type=int, default=9, help="windows of each kind (default 9)")
    parser.add_argument("--train-size", type=int, default=2880, help="N (default 2880)")
    options = parser.parse_args()
    with threadpool_limits(options.threads):
        samples = make_samples(options.train_size, options.repeats)
        costs = measure_windows(samples, options.train_size, options.repeats)
        result = summarize(costs, samples, options.train_size, options.threads)
        if options.json:
            print(json.dumps(result))
            return
        report(costs, result)
        report_parts(samples, options.train_size, options.repeats)
        report_dimensions(options.train_size)


def make_samples(train_size: int, repeats: int) -> Samples:
    """Return rows of a simulated detector in units of its deviation: history and windows."""
    days = -(-(train_size + FEATURES.reach) // DAY) + repeats + 3
    flows = simulate_roads(np.random.default_rng(0), days=days).flows[:, 0]
    return FEATURES.samples((flows - flows.mean()) / flows.std())


SETTINGS = {
    "mixture": {"kernel": MIXTURE},
    "mixture, fixed": {"kernel": MIXTURE, "learn": False},
    "mixture, float32": {"kernel": MIXTURE, "dtype": np.float32},
    "paper's kernel": {"kernel": PAPER},
    "mixture, drifting": {"kernel": Drifting(MIXTURE)},
}


def make_learner(history: Samples, kernel, learn=True, dtype=np.float64) -> OnlineLearner:
    """Return a learner at the start of its first window."""
    model = KernelRidge(kernel, factor_dtype=dtype)
    return OnlineLearner(model, history, train_size=len(history), update_every=DAY, learn=learn)


def measure_windows(
    samples: Samples, train_size: int, repeats: int
) -> dict[str, list[tuple[float, float]]]:
    """Return, per kind of learner, the seconds of each window and of a dpotrf just before it."""
    history = samples[:train_size]
    A = np.asfortranarray(MIXTURE(history.inputs, history.inputs))
    A.flat[:: train_size + 1] += 0.3
    costs = {}
    for name, settings in SETTINGS.items():
        learner = make_learner(history, **settings)
        starts = range(train_size, train_size + DAY * (repeats + 1), DAY)
        taken = [
            (
                seconds(partial(advance, learner, samples[start : start + DAY])),
                time_factorization(A),
            )
            for start in starts
        ]
        costs[name] = taken[1:]  # the first warms up
    return costs


def advance(learner: OnlineLearner, window: Samples) -> None:
    """Live through one window."""
    for t, x, y in zip(window.t, window.x, window.y[:, 0], strict=True):
        learner.predict(t, x)
        learner.observe(t, x, y)


def time_factorization(A: np.ndarray) -> float:
    """Return the seconds of one dpotrf in place, its copy not counted."""
    copy = A.copy(order="F")
    return seconds(lambda: lapack.dpotrf(copy, lower=1, overwrite_a=1, clean=0))


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    begin = perf_counter()
    work()
    return perf_counter() - begin


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of several runs after one to warm up."""
    work()
    return statistics.median(seconds(work) for _ in range(repeats))


def summarize(
    costs: dict[str, list[tuple[float, float]]], samples: Samples, train_size: int, threads: int
) -> dict[str, float]:
    """Return the figures that the budgets speak of."""
    over_dpotrf = {name: ratio_of_medians(taken) for name, taken in costs.items()}
    peak, rest = memory(samples, train_size)
    return {
        "window_over_dpotrf": over_dpotrf["mixture"],
        "window_over_dpotrf_float32": over_dpotrf["mixture, float32"],
        "float32_forecast_deviation": float32_deviation(samples, train_size),
        "ohl_over_fixed": over_dpotrf["mixture"] / over_dpotrf["mixture, fixed"],
        "peak_mb": peak,
        "rest_mb": rest,
        "forecast_ms": 1e3 * forecast_seconds(samples, train_size),
        "threads": threads,
    }


def ratio_of_medians(taken: list[tuple[float, float]]) -> float:
    """Return the median window over the median factorization."""
    windows, factorizations = zip(*taken, strict=True)
    return statistics.median(windows) / statistics.median(factorizations)


def memory(samples: Samples, train_size: int) -> tuple[float, float]:
    """Return the peak megabytes of a learner through a window, and those it keeps at rest."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    model = KernelRidge(MIXTURE)
    history = concatenated_copy(samples[:train_size])
    learner = OnlineLearner(model, history, train_size=train_size, update_every=DAY)
    del history
    tracemalloc.reset_peak()
    advance(learner, samples[train_size : train_size + DAY])
    _, peak = tracemalloc.get_traced_memory()
    learner.release()
    gc.collect()
    rest, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (peak - before) / 1e6, (rest - before) / 1e6


def concatenated_copy(samples: Samples) -> Samples:
    """Return samples that own their arrays, so that their memory is counted."""
    inputs = samples.inputs
    return Samples(type(inputs)(inputs.t.copy(), inputs.x.copy(), inputs.layout), samples.y.copy())


def float32_deviation(samples: Samples, train_size: int) -> float:
    """Return how far float32 forecasts stray from float64 ones, in standard deviations."""
    history, window = samples[:train_size], samples[train_size : train_size + DAY]
    double, single = (
        KernelRidge(MIXTURE, factor_dtype=dtype).fit(history).predict(window.inputs)
        for dtype in (np.float64, np.float32)
    )
    return float(np.abs(single - double).max() / history.y.std())


def forecast_seconds(samples: Samples, train_size: int) -> float:
    """Return the median seconds of one forecast between refits."""
    learner = OnlineLearner(KernelRidge(MIXTURE), samples[:train_size], train_size=train_size)
    t, x = samples.t[train_size], samples.x[train_size]
    return median_seconds(lambda: learner.predict(t, x), 200)


def report(costs: dict[str, list[tuple[float, float]]], result: dict[str, float]) -> None:
    """Print the windows and the figures of the budgets."""
    table = Table("window", "median, ms", "least, ms", "dpotrf, ms", "window / dpotrf")
    for name, taken in costs.items():
        windows, factorizations = zip(*taken, strict=True)
        medians = statistics.median(windows), min(windows), statistics.median(factorizations)
        table.add_row(
            name, *(f"{1e3 * value:.0f}" for value in medians), f"{ratio_of_medians(taken):.2f}"
        )
    figures = Table("figure", "value")
    for name, value in result.items():
        figures.add_row(name, f"{value:.3g}")
    Console(file=sys.stdout).print(table, figures)


def report_parts(samples: Samples, train_size: int, repeats: int) -> None:
    """Print where the time of a window goes."""
    history, window = samples[:train_size], samples[train_size : train_size + DAY]
    model = KernelRidge(MIXTURE)
    fit = model.fit(history)

    def refit() -> None:
        nonlocal fit
        fit = model.fit(history, None, fit)

    arena = Arena()

    def blocks(kernel) -> None:
        """Make the upper triangle of one kernel, as the refit does."""
        arena.rewind()
        ridge = Ridge(kernel, 0.0, 0.0, arena.dtype)
        fill(ridge, kernel.embed(history.inputs), arena)

    learner = make_learner(history, MIXTURE)
    row = samples.t[train_size], samples.x[train_size]
    periodic, matern, linear = MIXTURE.kernels
    half = np.linspace(-9.0, 0.0, train_size**2 // 2)
    parts = {
        "refit": refit,
        "  its weights": lambda: fit.system.solve(fit.theta),
        "  Gram matrix, Matern": partial(blocks, matern),
        "    half a matrix of exponentials": partial(np.exp, half, out=half.copy()),
        "    half a matrix of square roots": partial(np.sqrt, -half, out=half.copy()),
        "  Gram matrix, linear": partial(blocks, linear),
        "  Gram matrix, periodic": partial(blocks, periodic),
        "hyper-gradient": lambda: fit.loss_and_gradient(window)[1],
        "  its 96 rows alone": lambda: fit.predict(window.inputs),
        "96 forecasts": lambda: [learner.predict(*row) for _ in range(DAY)],
    }
    table = Table("part of a window", "median, ms")
    for name, work in parts.items():
        table.add_row(name, f"{1e3 * median_seconds(work, repeats):.1f}")
    Console(file=sys.stdout).print(table)


def forward_gradients(fit: KernelFit, window: Samples) -> np.ndarray:
    """Return every step's gradient with a Jacobian made for them, as after a refit."""
    return step_gradients(fit, dual_jacobian(fit), window)


def report_dimensions(train_size: int) -> None:
    """Print the cost of forward and adjoint gradients against the number of hyperparameters."""
    rng = np.random.default_rng(0)
    table = Table("hyperparameters d", "forward, ms", "adjoint, ms", "largest relative difference")
    for d in DIMENSIONS:
        p = d - 1  # the last hyperparameter is the regularization
        x = rng.normal(size=(train_size + DAY, p))
        y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=len(x))
        samples = Samples.of(np.arange(len(x)), x, y)
        fit = KernelRidge(ARD(np.full(p, 0.5 / p))).fit(samples[:train_size])
        window = samples[train_size:]
        adjoint = fit.loss_and_gradient(window)[1]
        forward = fit.step_gradients(window).sum(axis=0)
        apart = np.abs(adjoint - forward).max() / np.abs(forward).max()

        ways = (
            partial(forward_gradients, fit, window),
            partial(fit.loss_and_gradient, window),
        )
        costs = [f"{1e3 * median_seconds(way, 3):.0f}" for way in ways]
        table.add_row(str(d), *costs, f"{apart:.0e}")
    Console(file=sys.stdout).print(table)


if __name__ == "__main__":
    main()
