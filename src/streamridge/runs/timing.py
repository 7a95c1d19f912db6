"""About how long tasks take on this machine, and how much memory."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits

from streamridge.arrays import Matrix
from streamridge.runs.tasks import PROBE, Task

# How often the factorization is timed; the quickest counts.
PROBES = 4


def expected_seconds(tasks: Sequence[Task], at_once: int) -> float:
    """Return about how long tasks take, some of them at a time."""
    each = factor_seconds()
    return sum(task.seconds(each) for task in tasks) / at_once


def expected_megabytes(tasks: Sequence[Task], at_once: int) -> float:
    """Return about how much memory tasks need, some of them at a time."""
    return at_once * max(task.megabytes for task in tasks)


def factor_seconds() -> float:
    """Return how long this machine takes to factor a matrix of `PROBE` rows."""
    matrix = np.eye(PROBE) + 0.5
    with threadpool_limits(1):
        return min(_seconds(matrix) for _ in range(PROBES))


def _seconds(matrix: Matrix) -> float:
    start = perf_counter()
    cholesky(matrix)
    return perf_counter() - start
