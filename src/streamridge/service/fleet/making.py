"""What a cut makes of a forecaster: a refit, or a new start from all readings."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from typing import Self

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
from streamridge.service.fleet.tracker import (
    NEVER,
    Ripe,
    Standing,
    combined,
    refit,
    tuning_of,
    without_costs,
)
from streamridge.service.ledger.records import Cut, Entry, Kind, Snapshot
from streamridge.service.plan import Declaration, Plan, Rule

# A history goes back so far beyond the training set of the default model: a week less than what its
# first rows look back at, as it always was, so that logs of earlier versions are made again.
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
        standing = msgspec.structs.replace(standing, rebuilt=False)
        try:
            if standing.failed is not None and forecaster.has_model:
                forecaster.set(**_most_regular(forecaster))
            refit(forecaster, workspace)
        except FitError as error:
            forecaster, failed = Forecaster.from_bytes(ripe.state), error.reason
            cut = msgspec.structs.replace(cut, kind="failed")
    return _snapshot(cut, forecaster, msgspec.structs.replace(standing, failed=failed))


class Beginning(msgspec.Struct, frozen=True):
    """What a new start is made of: steps that are complete, and the readings of one that is not.

    Parameters
    ----------
    times, values
        The steps of late in order, NaN where nothing was measured.
    left
        Arrival numbers of the readings of the newest step, where more of it may come.
    """

    times: np.ndarray
    values: np.ndarray
    left: tuple[int, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[Entry], plan: Plan, rule: Rule | None) -> Self:
        """Return the beginning that readings make; those that are held do not count."""
        known = [entry for entry in entries if entry.kind != Kind.HELD]
        newest = plan.step_of(max((entry.time for entry in known), default=0), rule)
        reach = newest - plan.train_size * plan.step - _look_back(plan)
        late = [entry for entry in known if entry.time > reach]
        last = [entry for entry in late if plan.step_of(entry.time, rule) == newest]
        if rule is None or any(entry.kind != Kind.LIVE for entry in last):
            return cls(*steps_of(late, plan, rule))
        complete = [entry for entry in late if plan.step_of(entry.time, rule) < newest]
        return cls(*steps_of(complete, plan, rule), tuple(entry.seq for entry in last))

    @property
    def until(self) -> int:
        """Return the time of the last step."""
        return int(self.times[-1].astype(np.int64)) if len(self.times) else NEVER

    def cut(self, sensor: int, seq: int, kind: str) -> Cut:
        """Return the cut of a start from here."""
        return Cut(sensor, seq, self.until, kind, self.left)


def _look_back(plan: Plan) -> int:
    """Return how far beyond its training set a history goes back, in microseconds."""
    if plan.model == "default":
        return LOOK_BACK
    return plan.settings(Declaration()).preset.features.reach * plan.step


def started(
    cut: Cut, settings: Settings, beginning: Beginning, before: Ripe, workspace: Workspace
) -> Snapshot:
    """Return the snapshot of a forecaster made of a sensor's readings.

    With a cut of the kind "start" it goes on at the hyperparameters that were learned before.
    """
    times, values = beginning.times, beginning.values
    learned = Forecaster.from_bytes(before.state)
    readings = Readings("", times, values, UTC)
    series = to_series(readings, step=settings.step, zone=parse_zone(settings.tz))
    forecaster = Forecaster.of(settings, series)
    if forecaster.refit_due:
        forecaster.refit(workspace)
    if cut.kind == "start" and learned.has_model and forecaster.has_model:
        known = forecaster.hyperparameters  # a model of another size may have others
        shared = {name: each for name, each in learned.hyperparameters.items() if name in known}
        forecaster.set(**shared)
    standing = before.standing
    if len(times):
        first = int(times[0].astype(np.int64))
        standing = msgspec.structs.replace(
            standing,
            newest=beginning.until,
            first=first if standing.first == NEVER else min(first, standing.first),
            value=None if np.isnan(values[-1]) else float(values[-1]),
        )
    standing = msgspec.structs.replace(standing, failed=None, rebuilt=cut.kind == "rebuilt")
    return _snapshot(cut, forecaster, standing)


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
