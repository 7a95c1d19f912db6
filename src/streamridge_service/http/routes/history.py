"""History: measured values with their forecasts, and the path of the hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Self

import msgspec
import numpy as np
from litestar import Response
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from streamridge_service.http.requests import MAX_ITEMS, Query, TimeRange, require_at_most
from streamridge_service.http.responses import Columns, Format, format_of
from streamridge_service.http.routing import HttpRequest, Routes, service_of, status_of
from streamridge_service.http.streaming import PART, stream_items
from streamridge_service.intake import is_within
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import IssuedForecast, Kind, RefitPoint
from streamridge_service.plan import DAY, SECOND, Declaration
from streamridge_service.service.answers import (
    Answer,
    Lower,
    Measured,
    Name,
    NextTime,
    Score,
    Seq,
    Source,
    StepSeconds,
    Time,
    Upper,
    Value,
    iso,
    iso_or_none,
)
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.workers.error_scores import anomaly_score
from streamridge_service.workers.sensor_state import hyperparameter_bounds
from streamridge_service.workers.steps import step_values

COLUMNS: Columns = {
    "sensor": "string",
    "time": "string",
    "lead": "int64",
    "actual": "double",
    "status": "string",
    **dict.fromkeys(("forecast", "lower", "upper", "score"), "double"),
    "source": "string",
    "issued_at_seq": "int64",
}

routes = Routes("history")

RowStatus = Annotated[
    str, Meta(extra_json_schema={"enum": ["good", "implausible", "missing"]}, examples=["good"])
]
Values = Annotated[dict[str, float], Meta(examples=[{"regularization": 2.31}])]
Experts = Annotated[
    dict[str, float], Meta(examples=[{"model": 0.83, "week": 0.11, "day": 0.04, "last": 0.02}])
]
Names = Annotated[list[str], Meta(examples=[["regularization"]])]
AtBound = Annotated[dict[str, str], Meta(examples=[{}])]


# A refit on schedule that succeeded or failed; a new start from the readings; a saved state without
# a refit; or the action of an operator.
TUNING_KINDS = [
    *("refit", "failed", "start", "reset", "rebuilt", "kept"),
    *("retune", "rollback", "set", "freeze", "unfreeze", "exclude"),
]
TuningKind = Annotated[str, Meta(extra_json_schema={"enum": TUNING_KINDS}, examples=["refit"])]
# Kinds after which the model is a new fit.
FITTED = ("refit", "start", "reset", "rebuilt", "retune", "rollback", "set")


class HistoryQuery(TimeRange, frozen=True):
    """The range of time, and how far ahead values were forecast."""

    lead: Annotated[int, Meta(ge=1, le=96, description="The number of steps ahead.")] = 1
    format: Format | UnsetType = UNSET


class TuningQuery(Query, frozen=True):
    """The range of time."""

    days: Annotated[int, Meta(ge=1, le=3660, description="The number of days back.")] = 30


class HistoryRow(Answer, frozen=True):
    """A step: its measured value, and its forecast."""

    time: Time
    actual: Measured | None
    status: RowStatus
    forecast: Value | None
    lower: Lower | None
    upper: Upper | None
    score: Score | None
    source: Source | None
    issued_at_seq: Seq | None


class SensorHistory(Answer, frozen=True):
    """Measured values with the forecasts made `lead` steps ahead."""

    sensor: Name
    lead: Annotated[int, Meta(examples=[1])]
    step_seconds: StepSeconds
    items: list[HistoryRow]


class TuningState(msgspec.Struct, frozen=True):
    """Hyperparameters and weights of experts, as a worker reports and stores them."""

    values: dict[str, float] = {}
    experts: dict[str, float] = {}
    at_bound: dict[str, str] = {}
    frozen: list[str] = []


class TuningStep(Answer, frozen=True):
    """Hyperparameters after a refit, or after another change of the forecaster."""

    time: Time
    values: Values
    experts: Experts
    at_bound: AtBound
    frozen: Names
    kind: TuningKind


class TuningHistory(Answer, frozen=True):
    """The path of a sensor's hyperparameters, with their limits."""

    sensor: Name
    names: Names
    limits: Annotated[
        dict[str, tuple[float, float]], Meta(examples=[{"regularization": [0.001, 1000.0]}])
    ]
    learned: Names
    weights: Annotated[list[str], Meta(examples=[[]])]
    items: list[TuningStep]
    last: Time | None
    next: NextTime | None
    at_bound: AtBound
    frozen: Names
    values: Values
    experts: Experts


@routes.add("GET", "/v1/sensors/{sensor:str}/history", tables=True)
async def show_history(
    request: HttpRequest, query: HistoryQuery
) -> SensorHistory | Response[bytes]:
    """Return measured values with their forecasts, of the last day or another range."""
    service, status = service_of(request), status_of(request)
    kind = format_of(request, query.format)
    start, end = query.resolve(service.now, DAY)
    require_at_most((end - start) // status.plan.step, MAX_ITEMS, "steps")
    name, lead = status.sensor.name, query.lead
    return await stream_items(
        service.queries,
        HistoryParts(status, start, end + 1, lead),
        SensorHistory(name, lead, status.plan.step / SECOND, []),
        kind=kind,
        columns=COLUMNS,
        flat=lambda row: {"sensor": name, "lead": lead, **msgspec.structs.asdict(row)},
    )


def measured(
    ledger: Ledger, status: SensorStatus, start: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the steps with readings from `start` until `end`, and their values, NaN for null."""
    first, last = status.plan.times_of(start, end)
    entries = ledger.readings(status.sensor.id, start=first, end=last)
    arrived = [each for each in entries if each.kind != Kind.HELD]
    times, values = step_values(arrived, status.plan)
    return times.astype(np.int64), values


@dataclass
class HistoryParts:
    """The steps from `start` until `end` with their forecasts `lead` steps ahead, in parts.

    Steps before the first and after the last known one are left out. Steps without a reading and a
    forecast between them are missing.
    """

    status: SensorStatus
    start: int
    end: int
    lead: int
    # The first step that was not returned yet; None before the first known step.
    _next: int | None = None

    def __iter__(self) -> Iterator[Callable[[Ledger], list[HistoryRow]]]:
        """Yield the query of each part; they must run in this order."""
        length = PART * self.status.plan.step
        for start in range(self.start, self.end, length):
            yield partial(self._read, start, min(start + length, self.end))

    def _read(self, start: int, end: int, ledger: Ledger) -> list[HistoryRow]:
        status, plan, lead = self.status, self.status.plan, self.lead
        times, values = measured(ledger, status, start, end)
        actual = dict(zip(times.tolist(), values.tolist(), strict=True))
        ahead = (lead - 1) * plan.step
        span = {"start": start - ahead, "end": end - ahead}
        issued = ledger.forecasts(status.sensor.id, **span, corrected=True)
        forecasts = {each.time + ahead: each for each in issued if len(each.values) >= lead}
        known = [*actual, *forecasts]
        if not known:
            return []
        first = min(known) if self._next is None else self._next
        self._next = max(known) + plan.step
        return [
            _history_row(time, actual.get(time), forecasts.get(time), lead, status.declared)
            for time in range(first, self._next, plan.step)
        ]


def _history_row(
    time: int, value: float | None, issued: IssuedForecast | None, lead: int, declared: Declaration
) -> HistoryRow:
    if value is None or value != value:
        actual, status = None, "missing"
    else:
        actual, status = value, "good" if is_within(value, declared.bounds) else "implausible"
    if issued is None:
        return HistoryRow(iso(time), actual, status, None, None, None, None, None, None)
    band = issued.values[lead - 1], issued.lower[lead - 1], issued.upper[lead - 1]
    score = None if actual is None else anomaly_score(actual, *band)
    return HistoryRow(iso(time), actual, status, *band, score, issued.source, issued.seq)


@routes.add("GET", "/v1/sensors/{sensor:str}/tuning")
async def show_tuning(request: HttpRequest, query: TuningQuery) -> TuningHistory:
    """Return a sensor's hyperparameters after each refit, with their limits."""
    service, status = service_of(request), status_of(request)
    start = service.now - query.days * DAY
    answer = await service.forecasts.ask(status.sensor.id)
    path = await service.read(lambda ledger: TuningPath.of(ledger, status))
    settings, now = status.plan.settings(status.declared), tuning_state(answer.tuning)
    space = settings.model.space
    return TuningHistory(
        sensor=status.sensor.name,
        names=list(space.names),
        limits=hyperparameter_bounds(settings),
        learned=[n for n, on in zip(space.names, space.learned.tolist(), strict=True) if on],
        weights=[n for group in space.groups if group.kind == "weight" for n in group.names],
        items=path.items(start),
        last=iso_or_none(path.last),
        next=iso_or_none(path.next),
        at_bound=now.at_bound,
        frozen=now.frozen,
        values=now.values,
        experts=now.experts,
    )


class TuningPath(msgspec.Struct, frozen=True):
    """The refit points of a sensor, with their kinds and the tuning after each."""

    points: list[tuple[RefitPoint, TuningKind, bytes]]
    last: int | None  # time of the last fit
    next: int | None  # time of the next refit on schedule

    @classmethod
    def of(cls, ledger: Ledger, status: SensorStatus) -> Self:
        """Read the path of a sensor; a state that was saved after an action is of its kind."""
        actions = {action.seq: action.kind for action in ledger.actions(status.sensor.id)}
        points = [
            (point, actions.get(point.seq, "kept") if point.kind == "kept" else point.kind, tuning)
            for point, tuning in ledger.tunings(status.sensor.id)
        ]
        fits = [point.until for point, kind, _ in points if kind in FITTED]
        if not fits:
            return cls(points, None, None)
        due = status.plan.next_refit(status.sensor.name, points[-1][0].until)
        return cls(points, fits[-1], due)

    def items(self, start: int) -> list[TuningStep]:
        """Return the path from a time on."""
        return [
            TuningStep(iso(point.until), **msgspec.structs.asdict(tuning_state(body)), kind=kind)
            for point, kind, body in self.points
            if point.until >= start
        ]


def tuning_state(body: bytes) -> TuningState:
    """Return the tuning in a worker's JSON."""
    return msgspec.json.decode(body, type=TuningState)
