"""What tasks are expected to take before they are carried out: seconds, step by step, and memory.

`benchmarks/bench_estimates.py` holds these figures against what runs then take.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits

from streamridge.arrays import Vector
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.presets import landmarks_of
from streamridge.forecaster.settings import Settings
from streamridge.runs.tasks import Task

# Rows of the factorization, and small operations, that show how fast a machine is. Each is timed
# some times, and the quickest counts.
PROBE, OPERATIONS, PROBES = 960, 200, 4
# What a fit to `PROBE` rows costs in factorizations of as many: a part that grows with the cube of
# the rows, and one with their square, for the kernel.
CUBIC, SQUARE = 0.35, 1.0
# The same on landmarks: parts that grow with the rows and the square of the landmarks, with rows
# and landmarks, and with the rows; and the share of that without the gradient of a window.
THIN_SQUARE, THIN, EACH_ROW, UNLEARNED = 3.5, 5.0, 1.0, 0.6
# What the gradient of a window adds, and the validation of a trial of a search.
GRADIENT, VALIDATION = 1.0, 1.4
# A step in probes of small operations: before the first fit, and with a model; for each block of
# its row, and for as many rows as `PROBE`.
EARLY, MODELLED, BLOCK, ROWS = 0.4, 0.5, 0.1, 0.15

# Memory of a process, in MB.
PROCESS_MEGABYTES = 95.0
# Arrays of N by N numbers of a fit, and of a search beside it.
MATRICES, SEARCH_MATRICES = 4.0, 4.5
# Bytes of a step for its reading, its time and what is remembered of it; and of each number that
# is forecast.
STEP_BYTES, NUMBER_BYTES = 450.0, 24.0


@dataclass(frozen=True)
class Speed:
    """How fast this machine is, in processor seconds.

    Parameters
    ----------
    factorization
        Of a matrix of `PROBE` rows.
    operations
        Of as many small operations as `OPERATIONS`.
    """

    factorization: float
    operations: float

    @classmethod
    def measured(cls) -> Speed:
        """Return the speed of this machine, found in a tenth of a second."""
        with threadpool_limits(1):
            return cls(*(min(probe() for _ in range(PROBES)) for probe in (_factor, _operate)))


def seconds_by_step(task: Task, speed: Speed) -> Vector:
    """Return the processor seconds that each step of a task is expected to take.

    Most of them fall to the few steps after which the model is fitted, or searched for.
    """
    settings, length = task.settings, task.length
    if not needs_model(task.method):
        return np.zeros(length)
    blocks = len(settings.preset.features.layout.blocks)
    rows = landmarks_of(settings.preset) or settings.train_size
    modelled = MODELLED + BLOCK * blocks + ROWS * rows / PROBE
    steps = np.arange(length)
    seconds = speed.operations * np.where(steps < settings.warmup, EARLY, modelled)
    fits = steps[settings.warmup :: settings.update_every]
    seconds[fits] += speed.factorization * _fit(settings, fits)
    if settings.tuner is not None:
        searches = steps[settings.warmup :: settings.tune_every or length]
        seconds[searches] += speed.factorization * _search(settings, searches)
    return seconds


def expected_seconds(tasks: Sequence[Task], at_once: int, speed: Speed) -> float:
    """Return about how long tasks take, some of them at a time."""
    used = min(at_once, os.cpu_count() or 1)
    return sum(float(seconds_by_step(task, speed).sum()) for task in tasks) / used


def expected_megabytes(tasks: Sequence[Task], at_once: int) -> float:
    """Return about how much memory tasks need, some of them at a time.

    Several at a time have processes of their own beside the one that reads and writes.
    """
    each = at_once * max(map(megabytes, tasks))
    return each if at_once == 1 else PROCESS_MEGABYTES + each


def megabytes(task: Task) -> float:
    """Return about how much memory a process needs to carry out a task."""
    settings = task.settings
    # With several steps ahead, the fit before is kept until its last forecasts have come true.
    matrices = MATRICES * (1 + (settings.horizon > 1))
    if settings.tuner is not None:
        matrices += SEARCH_MATRICES
    numbers = settings.horizon * (1 + 2 * len(settings.levels))
    content = STEP_BYTES * len(task.source) + NUMBER_BYTES * numbers * task.length
    entries = settings.train_size * (landmarks_of(settings.preset) or settings.train_size)
    return PROCESS_MEGABYTES + 8e-6 * matrices * entries + 1e-6 * content


def _fit(settings: Settings, at: NDArray[Any]) -> Vector:
    """Return what a fit after some steps costs, and the gradient of the window before it."""
    size = np.minimum(at, settings.train_size) / PROBE
    descends = settings.learn and settings.tuner is None
    thin = _thin(settings)
    if thin is not None:
        return (1.0 if descends else UNLEARNED) * thin * size
    return CUBIC * size**3 + (SQUARE + GRADIENT * descends) * size**2


def _thin(settings: Settings) -> float | None:
    """Return what a fit on landmarks and its gradient cost for as many rows as `PROBE`."""
    landmarks = landmarks_of(settings.preset)
    if landmarks is None:
        return None
    thin = landmarks / PROBE
    return THIN_SQUARE * thin**2 + THIN * thin + EACH_ROW


def _search(settings: Settings, at: NDArray[Any]) -> Vector:
    """Return what a search after some steps costs: half of the rows are fitted at least."""
    if settings.tuner is None:
        return np.zeros(len(at))
    size = np.minimum(np.maximum(at - settings.validation_size, at // 2), settings.train_size)
    validated = np.minimum(at // 2, settings.validation_size) / PROBE
    size = size / PROBE
    thin = _thin(settings)
    fit = CUBIC * size**3 + SQUARE * size**2 if thin is None else UNLEARNED * thin * size
    trial = fit + VALIDATION * size * validated
    return settings.tuner.trials(settings.preset.model.space) * trial


def _factor() -> float:
    matrix = np.eye(PROBE) + 0.5
    start = thread_time()
    cholesky(matrix)
    return thread_time() - start


def _operate() -> float:
    row = np.linspace(0.0, 1.0, 32)
    start = thread_time()
    for _ in range(OPERATIONS):
        np.maximum(row, 0.5).copy().sum()
    return thread_time() - start
