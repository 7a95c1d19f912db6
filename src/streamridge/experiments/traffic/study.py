"""Section 6.2 of the paper: 13 detectors, 15 minutes ahead, with every tuning method.

A study has a cell for each detector and method. The run of a cell is stored in a file when it is
complete, so that an interrupted study continues with the missing cells. Detectors and methods can
be added to the folder later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np

from streamridge.datasets import simulate_roads
from streamridge.errors import InvalidInputError
from streamridge.experiments.traffic.methods import METHODS, PAPER_METHODS
from streamridge.files.reading import LeftOut, ReadResult
from streamridge.forecaster.methods import PublishedName, parse_names
from streamridge.forecaster.settings import Settings
from streamridge.runs.run import Run
from streamridge.runs.run_files import read_stored_run
from streamridge.runs.run_folder import (
    Plan,
    file_names,
    prepare_folder,
    require_readable,
    run_paths,
    settings_digest,
)
from streamridge.runs.tasks import Task, make_tasks
from streamridge.series.grid import to_series
from streamridge.series.lengths import step_name
from streamridge.series.series import Readings, Series

DAY = 96
STEP = timedelta(minutes=15)


@dataclass(frozen=True)
class TrafficSize:
    """The size of a traffic study."""

    detectors: int  # number of simulated detectors
    days: int
    warmup: int  # steps before the first scored step
    steps: int | None  # scored steps; None scores all
    train_size: int  # N, the number of rows of a fit
    validation_size: int  # the number of rows that a search forecasts
    update_every: int = DAY  # m
    tune_every: int = 7 * DAY  # n


FULL = TrafficSize(
    13, 136, warmup=60 * DAY, steps=None, train_size=30 * DAY, validation_size=30 * DAY
)
QUICK = TrafficSize(
    4, 34, warmup=20 * DAY, steps=14 * DAY, train_size=10 * DAY, validation_size=10 * DAY
)


@dataclass(frozen=True)
class TrafficStudy:
    """A traffic study: its sources, its methods, and the folder of its cells."""

    series: tuple[Series, ...]  # one per detector
    methods: tuple[str, ...]  # the requested methods, of `METHODS`
    size: TrafficSize
    seed: int  # the seed of random draws
    folder: Path
    model: PublishedName = "paper"  # as printed, or as in the code of the first author
    left_out: tuple[LeftOut, ...] = ()  # detectors that are left out, with reasons

    def prepare(self) -> None:
        """Create the folder; raise if it has another study or a damaged cell, or is read-only."""
        prepare_folder("out", self._plan_file, self.folder / "cells", self.plan())
        require_readable(self._files(self.all_methods).values())

    def plan(self) -> Plan:
        """Return everything that the cells depend on, as plain JSON."""
        return {
            "size": asdict(self.size),
            "seed": self.seed,
            "series": {each.sensor: each.digest for each in self.series},
            "methods": {
                method: settings_digest(
                    cell_settings(method, self.size, self.seed, STEP, self.model)
                )
                for method in self.all_methods
            },
        }

    def cells(self) -> list[Task]:
        """Return the tasks of the requested methods, detector by detector."""
        files = self._files(self.methods)
        names = {METHODS[name].label: name for name in self.methods}
        read = ReadResult({each.sensor: each for each in self.series})
        tasks, _ = _tasks(read, self.methods, self.size, self.seed, self.model)
        return [
            replace(task, keep_in=files[task.series.sensor, names[task.method]]) for task in tasks
        ]

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Return the requested methods, and the methods with cells in the folder."""
        stored = {method for (_, method), file in self._files(METHODS).items() if file.exists()}
        return tuple(method for method in METHODS if method in stored or method in self.methods)

    @property
    def detectors(self) -> tuple[str, ...]:
        """Return the requested detectors, and the detectors of the folder."""
        requested = [each.sensor for each in self.series]
        return tuple(dict.fromkeys([*requested, *file_names(self._plan_file, requested)]))

    def stored_runs(self) -> list[Run]:
        """Return the stored runs of all methods, detector by detector."""
        files = self._files(self.all_methods).values()
        return [read_stored_run(file) for file in files if file.exists()]

    @property
    def _plan_file(self) -> Path:
        return self.folder / "study.json"

    def _files(self, methods: Iterable[str]) -> dict[tuple[str, str], Path]:
        detectors = self.detectors
        names = file_names(self._plan_file, detectors)
        return run_paths(self.folder / "cells", {each: names[each] for each in detectors}, methods)


def make_study(
    folder: Path,
    read: ReadResult,
    *,
    size: TrafficSize = FULL,
    methods: Sequence[str] = PAPER_METHODS,
    seed: int = 0,
    model: PublishedName = "paper",
) -> TrafficStudy:
    """Return a study after all checks that need no run."""
    names = parse_names(methods, METHODS)
    for series in read.series.values():
        if series.clock.step != STEP:  # sizes are numbers of such steps
            raise InvalidInputError(
                f"{series.sensor}: data must have a reading every {step_name(STEP)}, "
                f"got one every {step_name(series.clock.step)}."
            )
    # Raises if an extra is not installed.
    tasks, left_out = _tasks(read, names, size, seed, model)
    found = {task.series.sensor: task.series for task in tasks}
    return TrafficStudy(tuple(found.values()), names, size, seed, folder, model, left_out)


def simulated_series(size: TrafficSize, seed: int) -> list[Series]:
    """Return the series of simulated detectors."""
    roads = simulate_roads(
        np.random.default_rng(seed), detectors=size.detectors, days=size.days, step_minutes=15
    )
    times = roads.times.astype("M8[us]")
    return [
        to_series(Readings(name, times, flows), step=STEP)
        for name, flows in zip(roads.names, roads.flows.T, strict=True)
    ]


def cell_settings(
    method: str, size: TrafficSize, seed: int, step: timedelta, model: PublishedName = "paper"
) -> Settings:
    """Return the settings of a method in a study."""
    return METHODS[method].settings(
        model,
        step,
        train_size=size.train_size,
        update_every=size.update_every,
        tune_every=size.tune_every,
        validation_size=size.validation_size,
        warmup=size.warmup,
        seed=seed,
    )


def _tasks(
    read: ReadResult, methods: Sequence[str], size: TrafficSize, seed: int, model: PublishedName
) -> tuple[tuple[Task, ...], tuple[LeftOut, ...]]:
    settings = {
        METHODS[name].label: partial(cell_settings, name, size, seed, model=model)
        for name in methods
    }
    return make_tasks(read, settings, warmup=size.warmup, steps=size.steps)
