"""Sensors: listed, declared and archived."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.errors import StreamRidgeError
from streamridge_service.bodies.fields import FieldError, name_of
from streamridge_service.http.pagination import Filter
from streamridge_service.http.requests import Cursor, Limit, Query, Search, StateFilter, given
from streamridge_service.http.responses import (
    Columns,
    Format,
    format_of,
    json_response,
)
from streamridge_service.http.routes.history import (
    AtBound,
    Experts,
    Names,
    TuningPath,
    Values,
    tuning_state,
)
from streamridge_service.http.routing import (
    HttpRequest,
    ResponseSpec,
    Routes,
    context_of,
    service_of,
    status_of,
)
from streamridge_service.http.streaming import in_parts, stream_items
from streamridge_service.plan import Declaration, Plan
from streamridge_service.problems import Problem
from streamridge_service.service.answers import (
    Answer,
    AnyTime,
    Name,
    SensorItem,
    Time,
    iso_or_none,
    sensor_item,
)
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.service.service import Service

Sort = Annotated[
    Literal[
        "-error_ratio", "error_ratio", "-error", "error", "-outside", "outside",
        "-score", "score", "-newest", "newest", "id",
    ],
    Meta(description="The sort key; with - in front, the largest value first."),
]  # fmt: skip
COLUMNS: Columns = {
    **dict.fromkeys(("id", "label", "group", "state", "reason"), "string"),
    "step_seconds": "double",
    "newest": "string",
    "value": "double",
    **dict.fromkeys(("unit", "zone"), "string"),
    **dict.fromkeys(("latitude", "longitude", "error", "error_ratio", "outside"), "double"),
    "trend": "string",
    "score": "double",
    "outside_in_a_row": "int64",
}

routes = Routes("sensors")


class SensorsQuery(Query, frozen=True):
    """The sensors to list, and their order."""

    state: StateFilter | UnsetType = UNSET
    q: Search | UnsetType = UNSET
    sort: Sort = "-error_ratio"
    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET
    format: Format | UnsetType = UNSET


class SensorPage(Answer, frozen=True):
    """A page of sensors; the cursor leads to the next page."""

    items: list[SensorItem]
    cursor: str | None
    total: Annotated[int, Meta(examples=[1])]


class RefitTimes(Answer, frozen=True):
    """The times of the last and of the next refit, and the number of the refit in use."""

    at: Annotated[AnyTime, Meta(examples=["2026-06-12T18:30:00Z"])] | None
    next: Time | None
    seq: Annotated[int, Meta(examples=[184_233])]


class Neighbour(Answer, frozen=True):
    """A sensor that another one listens to."""

    sensor: Name
    strength: Annotated[
        float,
        Meta(
            examples=[0.31],
            description="How far it moves forecasts as a rule, in units of an expected error.",
        ),
    ]


class SensorNeighbours(Answer, frozen=True):
    """Whom a sensor of a group listens to, the strongest first, and what that has changed."""

    items: list[Neighbour]
    error_ratio: Annotated[
        float,
        Meta(
            examples=[0.94],
            description="Errors of corrected forecasts one step ahead over those of the sensor's "
            "own forecasts, in the last days.",
        ),
    ]


class SensorDetail(SensorItem, frozen=True):
    """All details of a sensor."""

    declared: Declaration
    neighbours: SensorNeighbours | None
    archived: AnyTime | None
    fit: RefitTimes
    experts: Experts
    hyperparameters: Values
    frozen: Names
    at_bound: AtBound


class DeclaredSensor(Answer, frozen=True):
    """A sensor with its present declaration."""

    id: Name
    declared: Declaration


@routes.add("GET", "/v1/sensors", tables=True)
async def list_sensors(request: HttpRequest, query: SensorsQuery) -> SensorPage | Response[bytes]:
    """List sensors; by default, the largest growth of errors over the usual level comes first."""
    service, kind = service_of(request), format_of(request, query.format)
    now = service.now
    wanted = sensor_filter(given(query.state), now, given(query.q))
    page = await context_of(request).pages.page(
        query.sort, wanted, given(query.cursor), query.limit
    )
    return await stream_items(
        service.queries,
        in_parts(page.statuses, lambda some: lambda _: [sensor_item(each, now) for each in some]),
        SensorPage([], page.cursor, page.total),
        kind=kind,
        columns=COLUMNS,
        flat=_flat,
        cursor=page.cursor,
    )


def sensor_filter(state: str | None, now: int, search: str | None = None) -> Filter:
    """Return the filter of a list of sensors."""
    text = (search or "").casefold()

    def is_wanted(status: SensorStatus) -> bool:
        if status.is_archived != (state == "archived"):
            return False
        if state not in (None, "archived") and status.state(now)[0] != state:
            return False
        names = (status.sensor.name, status.declared.label or "")
        return not text or any(text in name.casefold() for name in names)

    return is_wanted


def _flat(item: SensorItem) -> dict[str, Any]:
    latitude, longitude = item.position or (None, None)
    return {**msgspec.structs.asdict(item), "latitude": latitude, "longitude": longitude}


@routes.add("GET", "/v1/sensors/{sensor:str}")
async def show_sensor(request: HttpRequest) -> SensorDetail:
    """Return all details of a sensor: its state, forecast, errors, model and declaration."""
    service, known = service_of(request), status_of(request)
    answer = await service.forecasts.ask(known.sensor.id)
    path = await service.read(lambda ledger: TuningPath.of(ledger, known))
    current, status = tuning_state(answer.tuning), status_of(request)  # as it is by now
    return SensorDetail(
        **msgspec.structs.asdict(sensor_item(status, service.now)),
        declared=status.declared,
        neighbours=_neighbours(service, status.sensor.id),
        archived=iso_or_none(status.sensor.archived),
        fit=RefitTimes(
            iso_or_none(path.last),
            iso_or_none(path.next),
            status.forecast.fit if status.forecast else 0,
        ),
        experts=current.experts,
        hyperparameters=current.values,
        frozen=current.frozen,
        at_bound=current.at_bound,
    )


def _neighbours(service: Service, sensor: int) -> SensorNeighbours | None:
    """Return whom a sensor listens to; None if its forecasts are not corrected."""
    known = service.forecasts.groups.listening(sensor)
    if known is None:
        return None
    statuses = service.statuses
    items = [Neighbour(statuses[each].sensor.name, size) for each, size in known.neighbours]
    return SensorNeighbours(items, known.error_ratio)


@routes.add(
    "PUT",
    "/v1/sensors/{sensor:str}",
    scope="admin",
    responses={
        200: ResponseSpec.of(DeclaredSensor),
        201: ResponseSpec.of(DeclaredSensor, Location="The path of the new sensor."),
    },
    problems=("sr-bad-name", "sr-too-many-sensors", "sr-conflicting-declaration"),
)
async def declare_sensor(request: HttpRequest, body: Declaration) -> Response[bytes]:
    """Declare a sensor, known or new; the declaration replaces an earlier one.

    A change of zone, bounds, rule or holidays rebuilds the forecaster from the readings. The step
    cannot change once there are readings. A declaration also restores an archived sensor.
    """
    service = service_of(request)
    try:
        name = name_of(request.path_params["sensor"])
    except FieldError as error:
        raise Problem(error.code, error.detail) from None
    _validate(body, service.plan)
    is_new = await service.operators.declare(name, body)
    headers = {"Location": f"/v1/sensors/{name}"} if is_new else None
    return json_response(DeclaredSensor(name, body), 201 if is_new else 200, headers)


def _validate(declared: Declaration, plan: Plan) -> None:
    """Refuse a declaration from which no forecaster can be built."""
    for name in ("label", "group", "unit"):
        text = getattr(declared, name)
        if text is not None and not text.isprintable():
            raise Problem("sr-bad-field", f"{name} must be printable characters, got {text!r}.")
    try:
        plan.settings(declared)
    except StreamRidgeError as error:
        raise Problem("sr-bad-field", error.reason) from None


@routes.add("DELETE", "/v1/sensors/{sensor:str}", scope="admin")
async def archive_sensor(request: HttpRequest) -> None:
    """Archive a sensor: new readings are refused, and its stored data stays."""
    status = status_of(request)
    if not status.is_archived:
        await service_of(request).operators.archive(status.sensor.name)
