"""Runs of several sensors, corrected by their neighbours afterwards.

The corrections use the errors of the sensors' own forecasts only, so they can be made when all
sensors have been replayed. At each step they know what was known then, as a `Network` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError
from streamridge.forecaster.candidates import Candidates
from streamridge.forecaster.neighbours import Neighbours
from streamridge.runs.run import Run
from streamridge.runs.tasks import Task, TaskOutcome
from streamridge.series.times import Steps


def corrected_outcomes(
    outcomes: Iterable[TaskOutcome], tasks: Sequence[Task], candidates: Candidates
) -> Iterator[TaskOutcome]:
    """Yield outcomes in order, with runs that are corrected by the runs of neighbouring sensors.

    Runs of one method and one step belong together. All outcomes must be there first.
    """
    every, groups = list(outcomes), dict[tuple[str, object], list[TaskOutcome]]()
    for outcome in every:
        if outcome.run is not None and not outcome.is_interrupted:
            task = tasks[outcome.number]
            groups.setdefault((task.method, task.settings.step), []).append(outcome)
    runs: dict[int, Run] = {}
    for group in groups.values():
        own = [outcome.run for outcome in group if outcome.run is not None]
        layer = Neighbours.of(tasks[group[0].number].settings)
        numbers = [outcome.number for outcome in group]
        runs |= dict(zip(numbers, corrected_runs(own, layer, candidates), strict=True))
    for outcome in every:
        yield replace(outcome, run=runs.get(outcome.number, outcome.run))


def corrected_runs(runs: Sequence[Run], layer: Neighbours, candidates: Candidates) -> list[Run]:
    """Return runs of different sensors on one grid, corrected by a new layer of neighbours."""
    sensors = [run.sensor for run in runs]
    if len(set(sensors)) < len(sensors):
        raise InvalidInputError("neighbours need one run of each sensor, got several of one.")
    layer.resize([-1] * len(runs))
    rows, count = _rows(runs)
    arrays = [_aligned(run, at, count, layer.horizon) for run, at in zip(runs, rows, strict=True)]
    readings, values, lower, upper = (np.stack(each, axis=1) for each in zip(*arrays, strict=True))
    for at in range(count):
        own = values[at].copy(), lower[at].copy(), upper[at].copy()
        values[at], lower[at], upper[at] = layer.corrected(*own)
        layer.observe(readings[at], *own)
        layer.choose(lambda place: candidates.of(sensors[place], sensors))
    heard = layer.heard(sensors)
    return [
        _with_near(
            replace(run, neighbours=heard[place]),
            values[at, place],
            lower[at, place],
            upper[at, place],
        )
        for place, (run, at) in enumerate(zip(runs, rows, strict=True))
    ]


def _rows(runs: Sequence[Run]) -> tuple[list[Steps], int]:
    """Return the rows of each run's steps in one table of all steps, and the number of its rows."""
    first = min((run.times[0] for run in runs if len(run.times)), default=0)
    steps = [np.rint((run.times - first) / run.step).astype(np.int64) for run in runs]
    return steps, 1 + max((int(each[-1]) for each in steps if len(each)), default=-1)


def _aligned(
    run: Run, rows: Steps, count: int, near: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return readings, near forecasts and their ends in a table of all steps; NaN elsewhere."""
    ends = run.lower.reshape(*run.value.shape, -1).shape[2]
    readings, values = np.full(count, np.nan), np.full((count, near), np.nan)
    lower, upper = np.full((2, count, near, ends), np.nan)
    readings[rows], values[rows] = run.actual, run.value[:, :near]
    lower[rows] = run.lower[:, :near].reshape(len(rows), near, -1)
    upper[rows] = run.upper[:, :near].reshape(len(rows), near, -1)
    return readings, values, lower, upper


def _with_near(
    run: Run,
    values: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> Run:
    """Return a run with other values and intervals of its near steps."""

    def joined(new: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        near = values.shape[1]
        return np.concatenate([new.reshape(len(own), near, *own.shape[2:]), own[:, near:]], axis=1)

    return replace(
        run,
        value=joined(values, run.value),
        lower=joined(lower, run.lower),
        upper=joined(upper, run.upper),
    )
