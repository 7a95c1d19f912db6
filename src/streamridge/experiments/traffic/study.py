"""Section 6.2 of the paper: 13 detectors, 15 minutes ahead, by every way of tuning.

A study is detectors times methods. Every cell is a run of its own that is kept in a file as soon as
it is whole, so that a study that was stopped goes on with the cells that are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from streamridge.datasets import simulate_roads
from streamridge.errors import InvalidInputError, StateError
from streamridge.experiments.traffic.methods import (
    METHODS,
    PAPER_METHODS,
)
from streamridge.experiments.traffic.plans import keep_plan, series_digest, settings_digest
from streamridge.files.names import FileNames
from streamridge.forecaster.methods import parse_names
from streamridge.forecaster.settings import Settings
from streamridge.runs.compare import model_settings
from streamridge.runs.jobs import Task
from streamridge.runs.kept import read_run
from streamridge.runs.run import Run
from streamridge.series.clock import step_name
from streamridge.series.grid import to_series
from streamridge.series.readings import Readings
from streamridge.series.series import Series

DAY = 96
STEP = timedelta(minutes=15)


@dataclass(frozen=True)
class Size:
    """Says how large a study is.

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
    """Is a study to be made, or made in part: its series, its methods, and where its cells are.

    Parameters
    ----------
    series
        One per detector.
    methods
        Those asked for, of `traffic_methods`.
    size
        How large.
    seed
        Of random draws.
    folder
        Where it is kept.
    """

    series: tuple[Series, ...]
    methods: tuple[str, ...]
    size: Size
    seed: int
    folder: Path

    def prepare(self) -> None:
        """Make the folder, or raise when it holds another study or nothing can be kept there."""
        try:
            self.folder.joinpath("cells").mkdir(parents=True, exist_ok=True)
            keep_plan(self.folder / "study.json", self.plan())
        except OSError as error:
            raise InvalidInputError(
                f"out must be a folder that can be written, got {str(self.folder)!r} ({error})."
            ) from None

    def plan(self) -> dict[str, Any]:
        """Return all that the cells depend on, as plain JSON."""
        return {
            "size": asdict(self.size),
            "seed": self.seed,
            "series": {each.sensor: series_digest(each) for each in self.series},
            "methods": {
                method: settings_digest(cell_settings(method, self.size, self.seed, STEP))
                for method in self.shown
            },
        }

    def cells(self) -> list[Task]:
        """Return the runs of the methods asked for, detector by detector."""
        files = self._files(self.methods)
        return [
            Task(
                series,
                cell_settings(method, self.size, self.seed, series.clock.step),
                METHODS[method].label,
                self.size.warmup,
                self.size.steps,
                keep_in=files[series.sensor, method],
            )
            for series in self.series
            for method in self.methods
        ]

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the methods asked for, and those that the folder has cells of already."""
        there = {method for (_, method), file in self._files(METHODS).items() if file.exists()}
        return tuple(method for method in METHODS if method in there or method in self.methods)

    def kept(self) -> list[Run]:
        """Return the runs that are there, detector by detector, of all methods that are shown."""
        return [_kept(file) for file in self._files(self.shown).values() if file.exists()]

    def todo(self) -> list[Task]:
        """Return the cells that are asked for and not there."""
        return [cell for cell in self.cells() if cell.keep_in and not cell.keep_in.exists()]

    def _files(self, methods: Iterable[str]) -> dict[tuple[str, str], Path]:
        """Return the files of cells by detector and method.

        They are called the same whatever order the detectors come in.
        """
        names = FileNames()
        stems = {name: names.take(name, "") for name in sorted(each.sensor for each in self.series)}
        return {
            (each.sensor, method): self.folder / "cells" / f"{stems[each.sensor]}-{method}.run"
            for each in self.series
            for method in methods
        }


def make_study(
    folder: Path,
    *,
    size: Size = FULL,
    methods: Sequence[str] = PAPER_METHODS,
    seed: int = 0,
    series: Sequence[Series] | None = None,
) -> Study:
    """Return a study after all checks that can be made before any work; simulated by default."""
    names = parse_names(methods, METHODS)
    roads = tuple(simulated_series(size, seed) if series is None else series)
    for each in roads:
        _require_fitting(each, size)
    study = Study(roads, names, size, seed, folder)
    study.cells()  # raises for an extra that is not installed
    return study


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


def cell_settings(method: str, size: Size, seed: int, step: timedelta) -> Settings:
    """Return how a method forecasts."""
    known = METHODS[method]
    settings = model_settings(
        known.model,
        step,
        train_size=size.train_size,
        update_every=size.update_every,
        tune_every=size.tune_every,
        validation_size=size.validation_size,
        warmup=size.warmup,
        seed=seed,
    )
    return known.change(settings)


def _require_fitting(series: Series, size: Size) -> None:
    if series.clock.step != STEP:  # sizes count steps of it
        raise InvalidInputError(
            f"{series.sensor}: data must have a reading every {step_name(STEP)}, "
            f"got one every {step_name(series.clock.step)}."
        )
    least = size.warmup + (size.steps or 1)
    if len(series) < least:
        raise InvalidInputError(
            f"{series.sensor}: data must have at least {least} steps, {size.warmup} of them before "
            f"the first scored one, got {len(series)}."
        )


def _kept(file: Path) -> Run:
    try:
        return read_run(file)
    except StateError as error:
        raise StateError(f"{error} Remove it, and it is made anew.") from None
