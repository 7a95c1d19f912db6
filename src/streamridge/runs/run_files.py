"""Runs in files, one run each."""

from __future__ import annotations

from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np

from streamridge.errors import StateError
from streamridge.files.checkpoint import Arrays, Header, read_checkpoint, write_checkpoint
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.hyperparameters.space import GroupNames
from streamridge.learners.base import Costs
from streamridge.runs.run import ExpertPath, Run
from streamridge.series.spans import parse_spans
from streamridge.series.time_format import TimeFormat

KIND = "run"
ARRAYS = ("times", "local_times", "refit_times", "actual", "value", "lower", "upper", "by_model")
PLAIN = ("sensor", "method", "steps_done", "seconds", "interrupted", "level")
MAPPINGS = ("hyperparameters", "active_bounds", "counts")
MICROSECOND = np.timedelta64(1, "us")
NAIVE = "naive."  # the prefix of an array of naive forecasts


def write_run(path: Path, run: Run) -> None:
    """Write a run to a file."""
    header = {
        "kind": KIND,
        **{name: getattr(run, name) for name in PLAIN},
        **{name: dict(getattr(run, name)) for name in MAPPINGS},
        "excluded": [str(span) for span in run.excluded],
        "time_format": run.time_format.to_json(),
        "costs": asdict(run.costs),
        "step": int(run.step / MICROSECOND if isinstance(run.step, np.timedelta64) else run.step),
        "groups": None if run.path is None else [astuple(group) for group in run.path.groups],
        "experts": run.expert_path.names,
        "features": run.feature_names,
    }
    arrays: dict[str, Any] = {name: getattr(run, name) for name in ARRAYS}
    if run.path is not None:
        arrays |= {"path.steps": run.path.steps, "path.values": run.path.values}
    experts = run.expert_path
    if experts.names:
        arrays |= {"experts.times": experts.times, "experts.weights": experts.weights}
    if run.implausible is not None:
        arrays["implausible"] = run.implausible
    arrays |= {f"{NAIVE}{name}": each for name, each in run.naive_forecasts.items()}
    for name, each in arrays.items():
        if each.dtype.kind == "M":
            arrays[name] = each.astype("M8[us]")
    write_checkpoint(path, header, arrays)


def read_run(path: Path) -> Run:
    """Return the run in a file."""
    header, arrays = read_checkpoint(path)
    if header.get("kind") != KIND:
        raise StateError(f"{path} must hold a run, got {header.get('kind')!r}.")
    try:
        return _run(header, arrays)
    except (KeyError, TypeError) as error:
        raise StateError(f"{path} must hold a complete run, got one without {error}.") from None


def read_stored_run(path: Path) -> Run:
    """Return the run in a file that the same command can make again."""
    try:
        return read_run(path)
    except StateError as error:
        raise StateError(f"{error} Or remove the file: the same command makes it again.") from None


def _run(header: Header, arrays: Arrays) -> Run:
    fields: dict[str, Any] = {name: header[name] for name in (*PLAIN, *MAPPINGS)}
    fields |= {name: arrays[name] for name in ARRAYS}
    if isinstance(header["level"], list):
        fields["level"] = tuple(header["level"])
    is_index = arrays["times"].dtype.kind != "M"
    step = np.int64(header["step"]) if is_index else np.timedelta64(header["step"], "us")
    names, experts = tuple(header["experts"]), ExpertPath.empty()
    if names:
        experts = ExpertPath(arrays["experts.times"], names, arrays["experts.weights"])
    return Run(
        **fields,
        costs=Costs(**header["costs"]),
        step=step,
        path=_path(header, arrays),
        excluded=parse_spans(header["excluded"], None),
        time_format=TimeFormat.from_json(header["time_format"]),
        implausible=arrays.get("implausible"),
        naive_forecasts={
            name.removeprefix(NAIVE): each
            for name, each in arrays.items()
            if name.startswith(NAIVE)
        },
        expert_path=experts,
        feature_names=tuple(header["features"]),
    )


def _path(header: Header, arrays: Arrays) -> HyperparameterPath | None:
    if not header["groups"]:
        return None
    groups = tuple(GroupNames(name, kind, tuple(names)) for name, kind, names in header["groups"])
    return HyperparameterPath(arrays["path.steps"], groups, arrays["path.values"])
