"""A folder that keeps whole runs beside their plan, so that work goes on where it ended.

The plan holds everything that the runs depend on, series and settings as digests, so that no run
is taken for another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streamridge.errors import InvalidInputError
from streamridge.files.atomic import replacing
from streamridge.files.names import FileNames
from streamridge.forecaster.settings import Settings
from streamridge.runs.run_files import read_kept
from streamridge.runs.sources import Source
from streamridge.runs.tasks import Task

PLAN, RUNS = "plan.json", "runs"
DIGEST_BYTES = 12
MEND = "Choose another folder, or remove this one."

Plan = dict[str, Any]


def kept_tasks(folder: Path, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return tasks that keep their runs in a folder, or raise when it holds others."""
    methods = dict.fromkeys(task.method for task in tasks)
    sources = {task.source.sensor: task.source for task in tasks}
    plan = {
        "warm-up": tasks[0].warmup,
        "number of steps": tasks[0].steps,
        "list of excluded spans": [str(span) for span in tasks[0].exclude] or None,
        "series": digests(sources.values()),
        "methods": _settings_digests(tasks),
    }
    prepare("keep", folder / PLAN, folder / RUNS, plan)
    files = run_files(folder / RUNS, sources, methods)
    ready = tuple(replace(task, keep_in=files[task.source.sensor, task.method]) for task in tasks)
    require_whole(files.values())
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


def require_whole(files: Iterable[Path]) -> None:
    """Raise before any work when one of the files that are there holds a damaged run."""
    for file in files:
        if file.exists():
            read_kept(file)


def keep_plan(name: str, file: Path, plan: Plan) -> None:
    """Write a plan, or raise when its folder holds another one; methods of both are kept.

    Parameters
    ----------
    name
        What the user calls the folder.
    file
        Of the plan.
    plan
        Plain values; those of "methods" are by method, and a method that only one plan has does not
        make it another.
    """
    wanted = json.loads(json.dumps(plan))
    if file.exists():
        found = _parsed(file)
        other = _differing(found, wanted)
        if other:
            raise InvalidInputError(
                f"{name} must be empty or hold the same runs, got {str(file.parent)!r} with "
                f"another {' and '.join(other)}. {MEND}"
            )
        wanted["methods"] = {**found.get("methods", {}), **wanted["methods"]}
    with replacing(file) as stream:
        stream.write(json.dumps(wanted, indent=1).encode())


def settings_digest(settings: Settings) -> str:
    """Return a short text that stands for how a method forecasts."""
    content = json.dumps(settings.described(), sort_keys=True).encode()
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def _parsed(file: Path) -> Plan:
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise InvalidInputError(f"{file} must be the plan of runs, got {error}. {MEND}") from None
    if not (isinstance(found, dict) and isinstance(found.get("methods", {}), dict)):
        raise InvalidInputError(f"{file} must be the plan of runs, got {found!r}. {MEND}")
    return found


def _differing(found: Plan, wanted: Plan) -> list[str]:
    """Return what differs between two plans, in words."""
    names = [name for name in {**wanted, **found} if name != "methods"]
    other = [_named(name, found, wanted) for name in names if found.get(name) != wanted.get(name)]
    if other:
        return other
    made, asked = found.get("methods", {}), wanted["methods"]
    changed = [method for method in asked if made.get(method, asked[method]) != asked[method]]
    return [f"setting of {', '.join(changed)}"] if changed else []


def _named(name: str, found: Plan, wanted: Plan) -> str:
    """Return what a part of a plan is called; of a size, the parts that differ."""
    if name != "size" or not isinstance(found.get(name), dict):
        return name
    parts = [part for part in wanted[name] if found[name].get(part) != wanted[name][part]]
    return f"{name} ({', '.join(parts)})"
