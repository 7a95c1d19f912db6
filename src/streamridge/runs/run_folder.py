"""A folder of complete runs and their plan, with which stopped work continues.

The plan holds all inputs of the runs, with digests for series and settings, so that no run is
mistaken for another. Sensors and methods can be added later.
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
from streamridge.files.written_files import file_stem
from streamridge.forecaster.settings import Settings
from streamridge.runs.run_files import read_stored_run
from streamridge.runs.tasks import Task

PLAN, RUNS = "plan.json", "runs"
DIGEST_BYTES = 12
REMEDY = "Choose another folder, or remove this one."

Plan = dict[str, Any]
# A method has several digests if sensors have different steps.
Digest = str | list[str]
# Parts of a plan that hold digests by name, and their meaning in a message. Names can be added.
EXTENDABLE = {"series": "series", "methods": "setting"}
# The part with the names of files by sensor.
FILES = "files"


def with_stored_runs(folder: Path, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return tasks that store their runs in a folder; raise if it holds runs of another plan."""
    methods = dict.fromkeys(task.method for task in tasks)
    series = {task.series.sensor: task.series for task in tasks}
    plan = {
        "warm-up": tasks[0].warmup,
        "number of steps": tasks[0].steps,
        "number of last steps": tasks[0].last_steps,
        "list of excluded spans": [str(span) for span in tasks[0].exclude] or None,
        "series": {sensor: each.digest for sensor, each in series.items()},
        "methods": _settings_digests(tasks),
    }
    prepare_folder("keep", folder / PLAN, folder / RUNS, plan)
    names = file_names(folder / PLAN, series)
    files = run_paths(folder / RUNS, {sensor: names[sensor] for sensor in series}, methods)
    ready = tuple(replace(task, keep_in=files[task.series.sensor, task.method]) for task in tasks)
    require_readable(files.values())
    return ready


def _settings_digests(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return the digests of the settings of each method, one for each length of a step."""
    shared = {(task.method, id(task.settings)): task.settings for task in tasks}
    found: dict[str, set[str]] = {}
    for (method, _), settings in shared.items():
        found.setdefault(method, set()).add(settings_digest(settings))
    return {method: sorted(texts) for method, texts in found.items()}


def prepare_folder(name: str, plan_file: Path, runs: Path, plan: Plan) -> None:
    """Make the folder of runs and write its plan; raise if it has another plan or is read-only.

    `name` is the option that gives the folder. See `write_plan` for the plan.
    """
    try:
        runs.mkdir(parents=True, exist_ok=True)
        write_plan(name, plan_file, plan)
    except OSError as error:
        raise InvalidInputError(
            f"{name} must be a folder that can be written, got {str(plan_file.parent)!r} ({error})."
        ) from None


def settings_digest(settings: Settings) -> str:
    """Return a digest of all settings that a forecast depends on."""
    content = json.dumps(settings.described(), sort_keys=True).encode()
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def file_names(plan_file: Path, sensors: Iterable[str]) -> dict[str, str]:
    """Return the names of files by sensor: the names in the plan, and new ones."""
    return _extended_names(_read_plan(plan_file), sensors)


def _extended_names(plan: Plan, sensors: Iterable[str]) -> dict[str, str]:
    known: Mapping[str, str] = plan.get(FILES, {})
    return {**known, **{sensor: file_stem(sensor) for sensor in sensors if sensor not in known}}


def run_paths(
    folder: Path, names: Mapping[str, str], methods: Iterable[str]
) -> dict[tuple[str, str], Path]:
    """Return the files of runs by sensor and method, given the names of files by sensor."""
    methods = list(methods)
    return {
        (sensor, method): folder / f"{name}-{method}.run"
        for sensor, name in names.items()
        for method in methods
    }


def require_readable(files: Iterable[Path]) -> None:
    """Raise before any work if one of the existing files is damaged."""
    for file in files:
        if file.exists():
            read_stored_run(file)


def write_plan(name: str, file: Path, plan: Plan) -> None:
    """Write a plan, merged with the plan in the file; raise if they contradict each other.

    The parts "series" and "methods" hold digests by name. A name that only one of both plans has is
    not a contradiction. `name` is the option that gives the folder.
    """
    new = json.loads(json.dumps(plan))
    old = _read_plan(file)
    differences = _differences(old, new) if old else []
    if differences:
        raise InvalidInputError(
            f"{name} must be empty or hold the same runs, got {str(file.parent)!r} with "
            f"another {' and '.join(differences)}. {REMEDY}"
        )
    merged = new | {
        part: _merged(old.get(part, {}), new[part]) for part in EXTENDABLE if part in new
    }
    merged[FILES] = _extended_names(old, merged.get("series", {}))
    with replacing(file) as stream:
        stream.write(json.dumps(merged, indent=1).encode())


def _read_plan(file: Path) -> Plan:
    """Return the plan in a file; an empty plan without a file."""
    if not file.exists():
        return {}
    try:
        plan = json.loads(file.read_bytes())
    except ValueError as error:
        raise InvalidInputError(f"{file} must be the plan of runs, got {error}. {REMEDY}") from None
    parts = (*EXTENDABLE, FILES)
    if not (isinstance(plan, dict) and all(isinstance(plan.get(p, {}), dict) for p in parts)):
        raise InvalidInputError(f"{file} must be the plan of runs, got {shown(plan)}. {REMEDY}")
    return plan


def _differences(old: Plan, new: Plan) -> list[str]:
    """Return the names of the parts that differ between two plans."""
    names = [name for name in {**new, **old} if name not in (*EXTENDABLE, FILES)]
    found = [_part_name(name, old, new) for name in names if old.get(name) != new.get(name)]
    for part, meaning in EXTENDABLE.items():
        known, asked = old.get(part, {}), new.get(part, {})
        changed = [name for name in asked if not _agree(known.get(name, asked[name]), asked[name])]
        # Settings depend on the other parts: if those differ, they are the reason.
        if changed and not (part == "methods" and found):
            found.append(f"{meaning} of {listed(changed)}")
    return found


def _agree(one: Digest, other: Digest) -> bool:
    """Return whether two digests are equal; for several, whether one set contains the other."""
    first, second = ({each} if isinstance(each, str) else set(each) for each in (one, other))
    return first <= second or second <= first


def _merged(old: Mapping[str, Digest], new: Mapping[str, Digest]) -> dict[str, Digest]:
    """Return the digests of both plans by name; for a name in both, the longer list."""
    both = {name: max(old[name], new[name], key=len) for name in old if name in new}
    return {**old, **new, **both}


def _part_name(name: str, old: Plan, new: Plan) -> str:
    """Return the name of a part that differs; a size names its own parts that differ."""
    if name != "size" or not isinstance(old.get(name), dict):
        return name
    parts = [part for part in new[name] if old[name].get(part) != new[name][part]]
    return f"{name} ({', '.join(parts)})"
