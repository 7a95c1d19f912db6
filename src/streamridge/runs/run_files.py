"""Runs on disk: one file each, whole or not there, so that a study can go on where it stopped."""

from __future__ import annotations

from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import StateError
from streamridge.files.checkpoint import Arrays, Header, read_checkpoint, write_checkpoint
from streamridge.forecaster.levels import Levels
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.hyperparameters.groups import GroupNames
from streamridge.learners.costs import Costs
from streamridge.runs.expert_path import ExpertPath
from streamridge.runs.run import Run
from streamridge.series.spans import spans_of
from streamridge.series.writing import Writing

KIND = "run"
ARRAYS = ("times", "local_times", "refit_times", "actual", "value", "lower", "upper", "by_model")
PLAIN = ("sensor", "method", "lived", "seconds")
YARDSTICK = "yardstick."  # and its name: an array each
MAPPINGS = ("hyperparameters", "active_bounds", "counts")


def write_run(path: Path, run: Run) -> None:
    """Write a run to a file."""
    header = {
        "kind": KIND,
        "interrupted": run.interrupted,
        **{name: getattr(run, name) for name in PLAIN},
        **{name: dict(getattr(run, name)) for name in MAPPINGS},
        "level": run.level,
        "excluded": [str(span) for span in run.excluded],
        "writing": run.writing.plain(),
        "costs": asdict(run.costs),
        "step": _plain_step(run.step),
        "groups": None if run.path is None else [astuple(group) for group in run.path.groups],
        "experts": run.expert_path.names,
    }
    arrays: dict[str, Any] = {name: _stored(getattr(run, name)) for name in ARRAYS}
    if run.path is not None:
        arrays |= {"path.steps": run.path.steps, "path.values": run.path.values}
    experts = run.expert_path
    if experts.names:
        arrays |= {"experts.times": _stored(experts.times), "experts.weights": experts.weights}
    if run.implausible is not None:
        arrays["implausible"] = run.implausible
    arrays |= {f"{YARDSTICK}{name}": naive for name, naive in run.yardsticks.items()}
    write_checkpoint(path, header, arrays)


def read_run(path: Path) -> Run:
    """Return the run that was written."""
    header, arrays = read_checkpoint(path)
    if header.get("kind") != KIND:
        raise StateError(f"{path} must hold a run, got {header.get('kind')!r}.")
    try:
        return _run(header, arrays)
    except (KeyError, TypeError) as error:
        raise StateError(f"{path} must hold a whole run, got one without {error}.") from None


def read_kept(path: Path) -> Run:
    """Return the run of a file that the same command can make again."""
    try:
        return read_run(path)
    except StateError as error:
        raise StateError(f"{error} Or remove the file: the same command makes it anew.") from None


def _run(header: Header, arrays: Arrays) -> Run:
    groups = _groups(header)
    walked = groups and HyperparameterPath(arrays["path.steps"], groups, arrays["path.values"])
    parts: dict[str, Any] = {name: header[name] for name in (*PLAIN, *MAPPINGS)}
    parts |= {name: arrays[name] for name in ARRAYS}
    return Run(
        **parts,
        level=_level(header["level"]),
        costs=Costs(**header["costs"]),
        step=_step(header["step"], arrays["times"]),
        path=walked or None,
        interrupted=header.get("interrupted", False),
        excluded=spans_of(header.get("excluded", ()), None),
        writing=Writing.from_plain(header.get("writing")),
        implausible=arrays.get("implausible"),  # the first files had neither these nor yardsticks
        yardsticks={
            name.removeprefix(YARDSTICK): each
            for name, each in arrays.items()
            if name.startswith(YARDSTICK)
        },
        expert_path=_expert_path(header, arrays),
    )


def _expert_path(header: Header, arrays: Arrays) -> ExpertPath:
    """Return the weights of the experts; earlier files have none."""
    names = tuple(header.get("experts", ()))
    if not names:
        return ExpertPath.empty()
    return ExpertPath(arrays["experts.times"], names, arrays["experts.weights"])


def _level(kept: float | list[float]) -> float | Levels:
    """Return one level, or several, which JSON keeps as a list."""
    return tuple(kept) if isinstance(kept, list) else kept


def _groups(header: Header) -> tuple[GroupNames, ...]:
    if "names" in header:  # format 1 knew no groups
        return tuple(GroupNames(name, "scale", (name,)) for name in header["names"] or ())
    return tuple(
        GroupNames(name, kind, tuple(names)) for name, kind, names in header["groups"] or ()
    )


def _stored(array: Any) -> Any:
    """Return an array as files hold it: times in microseconds."""
    return array.astype("M8[us]") if array.dtype.kind == "M" else array


def _plain_step(step: np.timedelta64 | np.int64) -> int:
    """Return a step as plain JSON: in microseconds, or in units of an index."""
    return int(step / np.timedelta64(1, "us") if isinstance(step, np.timedelta64) else step)


def _step(plain: int, times: NDArray[Any]) -> np.timedelta64 | np.int64:
    return np.timedelta64(plain, "us") if times.dtype.kind == "M" else np.int64(plain)
