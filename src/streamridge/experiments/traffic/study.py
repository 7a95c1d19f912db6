"""Section 6.2 of the paper: 13 detectors, 15 minutes ahead, by every way of tuning.

A study is detectors times methods. Every cell is a run of its own that is kept in a file as soon as
it is whole, so that a study that was stopped goes on with the cells that are not there. Detectors
and methods can be added to its folder later.
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
from streamridge.forecaster.methods import parse_names
from streamridge.forecaster.published import PublishedName
from streamridge.forecaster.settings import Settings
from streamridge.runs.keeping import (
    Plan,
    digests,
    file_names,
    prepare,
    require_whole,
    run_files,
    settings_digest,
)
from streamridge.runs.run import Run
from streamridge.runs.run_files import read_kept
from streamridge.runs.sources import LeftOut, Source, Sources
from streamridge.runs.tasks import Task, Tasks, make_tasks
from streamridge.series.clock import step_name
from streamridge.series.grid import to_series
from streamridge.series.readings import Readings
from streamridge.series.series import Series

DAY = 96
STEP = timedelta(minutes=15)


@dataclass(frozen=True)
class Size:
    """How large a study is.

    Parameters
    ----------
    detectors, days
        Of the simulated roads.
    warmup, steps
        Steps before the first scored one, and how many are scored; None scores all there are.
    train_size, validation_size
        N, the rows of a fit, and those that a search forecasts.
    update_every, tune_every
        m and n.
    """

    detectors: int
    days: int
    warmup: int
    steps: int | None
    train_size: int
    validation_size: int
    update_every: int = DAY
    tune_every: int = 7 * DAY


FULL = Size(13, 136, warmup=60 * DAY, steps=None, train_size=30 * DAY, validation_size=30 * DAY)
QUICK = Size(4, 34, warmup=20 * DAY, steps=14 * DAY, train_size=10 * DAY, validation_size=10 * DAY)


@dataclass(frozen=True)
class Study:
    """A study to be made, or made in part: its sources, its methods, and where its cells are.

    Parameters
    ----------
    sources
        One per detector.
    methods
        Those asked for, of `METHODS`.
    size
        How large.
    seed
        Of random draws.
    folder
        Where it is kept.
    model
        The settings of the paper's model: as printed, or as in its first author's code.
    left_out
        Detectors that are no part of it, and why.
    """

    sources: tuple[Source, ...]
    methods: tuple[str, ...]
    size: Size
    seed: int
    folder: Path
    model: PublishedName = "paper"
    left_out: tuple[LeftOut, ...] = ()

    def prepare(self) -> None:
        """Make the folder; raise if it holds another study or a damaged cell, or is read-only."""
        prepare("out", self._plan_file, self.folder / "cells", self.plan())
        require_whole(self._files(self.shown).values())

    def plan(self) -> Plan:
        """Return all that the cells depend on, as plain JSON."""
        return {
            "size": asdict(self.size),
            "seed": self.seed,
            "series": digests(self.sources),
            "methods": {
                method: settings_digest(
                    cell_settings(method, self.size, self.seed, STEP, self.model)
                )
                for method in self.shown
            },
        }

    def cells(self) -> list[Task]:
        """Return the runs of the methods asked for, detector by detector."""
        files = self._files(self.methods)
        names = {METHODS[name].label: name for name in self.methods}
        sources = Sources(self.sources)
        tasks = _tasks(sources, self.methods, self.size, self.seed, self.model).ready
        return [
            replace(task, keep_in=files[task.source.sensor, names[task.method]]) for task in tasks
        ]

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the methods asked for, and those that the folder has cells of already."""
        there = {method for (_, method), file in self._files(METHODS).items() if file.exists()}
        return tuple(method for method in METHODS if method in there or method in self.methods)

    @property
    def detectors(self) -> tuple[str, ...]:
        """Return the detectors asked for, and those that the folder has a place for already."""
        asked = [source.sensor for source in self.sources]
        return tuple(dict.fromkeys([*asked, *file_names(self._plan_file, asked)]))

    def kept(self) -> list[Run]:
        """Return the runs that are there, detector by detector, of all methods that are shown."""
        files = self._files(self.shown).values()
        return [read_kept(file) for file in files if file.exists()]

    @property
    def _plan_file(self) -> Path:
        return self.folder / "study.json"

    def _files(self, methods: Iterable[str]) -> dict[tuple[str, str], Path]:
        detectors = self.detectors
        names = file_names(self._plan_file, detectors)
        return run_files(self.folder / "cells", {each: names[each] for each in detectors}, methods)


def make_study(
    folder: Path,
    sources: Sources,
    *,
    size: Size = FULL,
    methods: Sequence[str] = PAPER_METHODS,
    seed: int = 0,
    model: PublishedName = "paper",
) -> Study:
    """Return a study after all checks that can be made before any work."""
    names = parse_names(methods, METHODS)
    for source in sources.found:
        _require_step(source)
    tasks = _tasks(sources, names, size, seed, model)  # raises for an extra that is not installed
    found = {task.source.sensor: task.source for task in tasks.ready}
    return Study(tuple(found.values()), names, size, seed, folder, model, tasks.left_out)


def simulated_series(size: Size, seed: int) -> list[Series]:
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
    method: str, size: Size, seed: int, step: timedelta, model: PublishedName = "paper"
) -> Settings:
    """Return the settings with which a method forecasts in a study of a model."""
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
    sources: Sources, methods: Sequence[str], size: Size, seed: int, model: PublishedName
) -> Tasks:
    ways = {
        METHODS[name].label: partial(cell_settings, name, size, seed, model=model)
        for name in methods
    }
    return make_tasks(sources, ways, warmup=size.warmup, steps=size.steps)


def _require_step(source: Source) -> None:
    if source.step != STEP:  # sizes count steps of it
        raise InvalidInputError(
            f"{source.sensor}: data must have a reading every {step_name(STEP)}, "
            f"got one every {step_name(source.step)}."
        )
