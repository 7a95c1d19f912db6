"""A folder that keeps whole runs beside their plan, so that work goes on where it ended.

The plan holds everything that the runs depend on, series and settings as digests, so that no run
is taken for another. Sensors and methods can be added to it later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streamridge.errors import InvalidInputError, listed, shown
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
# One text, or several.
Digest = str | list[str]
# Parts of a plan that hold a digest by name, and what these stand for: names can be added to them.
ADDED_TO = {"series": "series", "methods": "setting"}
# The part with the names of files by sensor; plans of old have none.
FILES = "files"


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
    names = file_names(folder / PLAN, sources)
    files = run_files(folder / RUNS, {sensor: names[sensor] for sensor in sources}, methods)
    ready = tuple(replace(task, keep_in=files[task.source.sensor, task.method]) for task in tasks)
    require_whole(files.values())
    return ready


def _settings_digests(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return what stands for the settings of each method: one text for each length of a step."""
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


def file_names(plan_file: Path, sensors: Iterable[str]) -> dict[str, str]:
    """Return the names of files by sensor, of those in a plan that is kept and of others.

    Sensors that are new get names of their own, the same whatever order they are in.
    """
    return _file_names(_parsed(plan_file), sensors)


def run_files(
    folder: Path, names: Mapping[str, str], methods: Iterable[str]
) -> dict[tuple[str, str], Path]:
    """Return the files of runs by sensor and method, given the names of files by sensor."""
    ways = list(methods)
    return {
        (sensor, method): folder / f"{name}-{method}.run"
        for sensor, name in names.items()
        for method in ways
    }


def require_whole(files: Iterable[Path]) -> None:
    """Raise before any work when one of the files that are there holds a damaged run."""
    for file in files:
        if file.exists():
            read_kept(file)


def keep_plan(name: str, file: Path, plan: Plan) -> None:
    """Write a plan, joined with the one that is there; raise if they contradict each other.

    Parameters
    ----------
    name
        What the user calls the folder.
    file
        Of the plan.
    plan
        Plain values; those of "series" and "methods" are by name, and a name that only one plan has
        does not make it another.
    """
    wanted = json.loads(json.dumps(plan))
    found = _parsed(file)
    other = _differing(found, wanted) if found else []
    if other:
        raise InvalidInputError(
            f"{name} must be empty or hold the same runs, got {str(file.parent)!r} with "
            f"another {' and '.join(other)}. {MEND}"
        )
    joined = wanted | {
        part: _joined(found.get(part, {}), wanted[part]) for part in ADDED_TO if part in wanted
    }
    joined[FILES] = _file_names(found, joined.get("series", {}))
    with replacing(file) as stream:
        stream.write(json.dumps(joined, indent=1).encode())


def _file_names(found: Plan, sensors: Iterable[str]) -> dict[str, str]:
    if FILES in found:
        return _more_names(found[FILES], sensors)
    return _more_names(_more_names({}, found.get("series", ())), sensors)


def _more_names(named: Mapping[str, str], sensors: Iterable[str]) -> dict[str, str]:
    """Return names by sensor: those there are, and new ones for the others."""
    names = FileNames(named.values())
    new = sorted(sensor for sensor in sensors if sensor not in named)
    return {**named, **{sensor: names.take(sensor, "") for sensor in new}}


def settings_digest(settings: Settings) -> str:
    """Return a short text that stands for how a method forecasts."""
    content = json.dumps(settings.described(), sort_keys=True).encode()
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def _parsed(file: Path) -> Plan:
    """Return the plan of a file; an empty one if there is no file."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise InvalidInputError(f"{file} must be the plan of runs, got {error}. {MEND}") from None
    parts = (*ADDED_TO, FILES)
    if not (isinstance(found, dict) and all(isinstance(found.get(p, {}), dict) for p in parts)):
        raise InvalidInputError(f"{file} must be the plan of runs, got {shown(found)}. {MEND}")
    return found


def _differing(found: Plan, wanted: Plan) -> list[str]:
    """Return what differs between two plans, in words."""
    names = [name for name in {**wanted, **found} if name not in (*ADDED_TO, FILES)]
    other = [_named(name, found, wanted) for name in names if found.get(name) != wanted.get(name)]
    for part, what in ADDED_TO.items():
        made, asked = found.get(part, {}), wanted.get(part, {})
        changed = [name for name in asked if not _agree(made.get(name, asked[name]), asked[name])]
        # Where more differs, methods differ for that reason.
        if changed and not (part == "methods" and other):
            other.append(f"{what} of {listed(changed)}")
    return other


def _agree(made: Digest, asked: Digest) -> bool:
    """Return whether two digests are the same; of several, whether one has all of the other."""
    one, other = set(_every(made)), set(_every(asked))
    return one <= other or other <= one


def _joined(made: Mapping[str, Digest], asked: Mapping[str, Digest]) -> dict[str, Digest]:
    """Return digests by name, of both; of a name that both have, the one that has more."""
    both = {name: max(made[name], asked[name], key=len) for name in made if name in asked}
    return {**made, **asked, **both}


def _every(digest: Digest) -> Sequence[str]:
    return [digest] if isinstance(digest, str) else digest


def _named(name: str, found: Plan, wanted: Plan) -> str:
    """Return what a part of a plan is called; of a size, the parts that differ."""
    if name != "size" or not isinstance(found.get(name), dict):
        return name
    parts = [part for part in wanted[name] if found[name].get(part) != wanted[name][part]]
    return f"{name} ({', '.join(parts)})"
