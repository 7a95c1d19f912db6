"""A folder that keeps whole runs beside their plan, so that work goes on where it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from streamridge.errors import InvalidInputError
from streamridge.files.names import FileNames
from streamridge.runs.kept import read_kept
from streamridge.runs.plans import Plan, keep_plan, settings_digest
from streamridge.runs.sources import Source
from streamridge.runs.tasks import Task

PLAN, RUNS = "plan.json", "runs"


def kept_tasks(folder: Path, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return tasks that keep their runs in a folder, or raise when it holds others."""
    methods = dict.fromkeys(task.method for task in tasks)
    sources = {task.source.sensor: task.source for task in tasks}
    plan = {
        "warm-up": tasks[0].warmup,
        "number of steps": tasks[0].steps,
        "series": digests(sources.values()),
        "methods": _settings_digests(tasks),
    }
    prepare("keep", folder / PLAN, folder / RUNS, plan)
    files = run_files(folder / RUNS, sources, methods)
    ready = tuple(replace(task, keep_in=files[task.source.sensor, task.method]) for task in tasks)
    require_whole(ready)
    return ready


def _settings_digests(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return what stands for the settings of each method: one text for each step of a series."""
    shared = {(task.method, id(task.settings)): task.settings for task in tasks}
    every: dict[str, set[str]] = {}
    for (method, _), settings in shared.items():
        every.setdefault(method, set()).add(settings_digest(settings))
    return {method: sorted(texts) for method, texts in every.items()}


def prepare(name: str, plan_file: Path, runs: Path, plan: Plan) -> None:
    """Make the folders of runs, or raise when they hold others or nothing can be kept there.

    Parameters
    ----------
    name
        What the user calls the folder.
    plan_file, runs
        The file of the plan, and the folder of the runs.
    plan
        See `keep_plan`.
    """
    try:
        runs.mkdir(parents=True, exist_ok=True)
        keep_plan(name, plan_file, plan)
    except OSError as error:
        raise InvalidInputError(
            f"{name} must be a folder that can be written, got {str(plan_file.parent)!r} ({error})."
        ) from None


def digests(sources: Iterable[Source]) -> dict[str, str]:
    """Return what stands for the series of each sensor in a plan."""
    return {source.sensor: source.digest for source in sources}


def run_files(
    folder: Path, sensors: Iterable[str], methods: Iterable[str]
) -> dict[tuple[str, str], Path]:
    """Return the files of runs by sensor and method, the same whatever order the sensors are in."""
    every, names = list(sensors), FileNames()
    stems = {sensor: names.take(sensor, "") for sensor in sorted(every)}
    ways = list(methods)
    return {
        (sensor, method): folder / f"{stems[sensor]}-{method}.run"
        for sensor in every
        for method in ways
    }


def require_whole(tasks: Iterable[Task]) -> None:
    """Raise before any work when the kept run of a task is damaged."""
    for task in tasks:
        if task.keep_in is not None and task.keep_in.exists():
            read_kept(task.keep_in)
