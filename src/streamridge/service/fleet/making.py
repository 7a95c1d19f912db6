"""What a cut makes of a forecaster: a refit, or a new start from all readings."""

from __future__ import annotations

import platform
from functools import cache

import msgspec
import numpy as np
import scipy
from threadpoolctl import threadpool_info

from streamridge.errors import FitError
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.box import Box
from streamridge.learners.workspace import Workspace
from streamridge.series.clock import parse_zone
from streamridge.series.grid import to_series
from streamridge.series.readings import Readings
from streamridge.series.writing import Writing
from streamridge.service.fleet.tracker import Ripe, Standing, combined, tuning_of, without_costs
from streamridge.service.ledger.records import Cut, Entry, Kind, Snapshot
from streamridge.service.plan import Plan, Rule

# A history goes back so far beyond the training set: what its first rows look back at.
LOOK_BACK = 36 * 86_400_000_000
UTC = Writing(zoned=True, zone="UTC")


def refitted(ripe: Ripe, workspace: Workspace) -> Snapshot:
    """Return the snapshot of a cut: refitted, or as it was if that is not due or fails.

    A forecaster whose refit fails keeps its fit. At the next cut its regularization is raised to
    its upper bound first.
    """
    forecaster, standing = Forecaster.from_bytes(ripe.state), ripe.standing
    cut, failed = ripe.cut, standing.failed if ripe.cut.kind == "failed" else None
    if cut.kind == "refit":
        try:
            if standing.failed is not None and forecaster.has_model:
                forecaster.set(**_most_regular(forecaster))
            forecaster.refit(workspace)
        except FitError as error:
            forecaster, failed = Forecaster.from_bytes(ripe.state), error.reason
            cut = msgspec.structs.replace(cut, kind="failed")
    return _snapshot(cut, forecaster, msgspec.structs.replace(standing, failed=failed))


def started(
    cut: Cut,
    settings: Settings,
    history: list[Entry],
    before: Ripe,
    workspace: Workspace,
    *,
    plan: Plan,
    rule: Rule | None,
) -> Snapshot:
    """Return the snapshot of a forecaster made of a sensor's readings.

    With a cut of the kind "start" it goes on at the hyperparameters that were learned before.
    """
    times, values = steps_of(history, plan, rule)
    learned = Forecaster.from_bytes(before.state)
    readings = Readings("", times, values, UTC)
    series = to_series(readings, step=settings.step, zone=parse_zone(settings.tz))
    forecaster = Forecaster.of(settings, series)
    if forecaster.refit_due:
        forecaster.refit(workspace)
    if cut.kind == "start" and learned.has_model and forecaster.has_model:
        forecaster.set(**learned.hyperparameters)
    standing = msgspec.structs.replace(before.standing, failed=None)
    if len(times):
        newest, value = int(times[-1].astype(np.int64)), values[-1]
        first = min(int(times[0].astype(np.int64)), standing.first)
        standing = msgspec.structs.replace(
            standing, newest=newest, first=first, value=None if np.isnan(value) else float(value)
        )
    return _snapshot(cut, forecaster, standing)


def history_of(entries: list[Entry], plan: Plan) -> list[Entry]:
    """Return the readings that a new start is made of: those of late, but not those held."""
    known = [entry for entry in entries if entry.kind != Kind.HELD]
    newest = max((entry.time for entry in known), default=0)
    reach = newest - plan.train_size * plan.step - LOOK_BACK
    return [entry for entry in known if entry.time > reach]


def steps_of(entries: list[Entry], plan: Plan, rule: Rule | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of steps in order, and their values, NaN where nothing was measured.

    Of several readings of one time the first counts, unless a revision replaces it.
    """
    by_time: dict[int, Entry] = {}
    for entry in entries:
        if entry.kind == Kind.REVISION or entry.time not in by_time:
            by_time[entry.time] = entry
    by_step: dict[int, list[Entry]] = {}
    for entry in by_time.values():
        by_step.setdefault(plan.step_of(entry.time, rule), []).append(entry)
    steps = sorted(by_step)
    found = [combined(by_step[step], rule or "last") for step in steps]
    values = np.array([np.nan if value is None else value for value in found], dtype=np.float64)
    return np.array(steps, dtype=np.int64).astype("M8[us]"), values


def limits_of(settings: Settings) -> dict[str, tuple[float, float]]:
    """Return the least and the greatest value of every hyperparameter, by name."""
    limits: dict[str, tuple[float, float]] = {}
    for group in settings.model.space.groups:
        within = group.feasible
        if isinstance(within, Box):
            pairs = list(zip(within.low.tolist(), within.high.tolist(), strict=True))
        else:
            pairs = [(0.0, 1.0)] * within.size  # weights
        limits |= dict(zip(group.names, pairs, strict=True))
    return limits


def _most_regular(forecaster: Forecaster) -> dict[str, float]:
    return {"regularization": limits_of(forecaster.settings)["regularization"][1]}


def _snapshot(cut: Cut, forecaster: Forecaster, standing: Standing) -> Snapshot:
    standing = msgspec.structs.replace(standing, fitted=forecaster.has_model)
    return Snapshot(
        cut,
        without_costs(forecaster).to_bytes(),
        msgspec.json.encode(standing),
        msgspec.json.encode(tuning_of(forecaster)),
        fingerprint(),
    )


@cache
def fingerprint() -> str:
    """Return what numbers depend on in their last bits: processor, libraries, threads."""
    blas = sorted(
        f"{each.get('internal_api')}-{each.get('version')}-{each.get('architecture', '')}"
        for each in threadpool_info()
        if each.get("user_api") == "blas"
    )
    return "|".join([platform.machine(), np.__version__, scipy.__version__, *blas, "1 thread"])
