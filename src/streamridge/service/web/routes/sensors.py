"""Sensors: listed, declared, archived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.errors import StreamRidgeError
from streamridge.service import views
from streamridge.service.board import Place
from streamridge.service.bodies.fields import FieldError, name_of
from streamridge.service.plan import Declaration, Rule
from streamridge.service.problems import Problem
from streamridge.service.service import Service
from streamridge.service.web.answers import empty_answer, json_answer
from streamridge.service.web.context import Asked, context_of, place_of, service_of
from streamridge.service.web.contracts import (
    CSV,
    JSON,
    PARQUET,
    TEXT,
    Answer,
    Contract,
    Query,
    Sent,
    route,
)
from streamridge.service.web.examples import DECLARATION, DETAIL, ITEM
from streamridge.service.web.listing import beside
from streamridge.service.web.parameters import Cursor, Limit, Search, StateFilter, given
from streamridge.service.web.queries import query_of
from streamridge.service.web.receiving import said
from streamridge.service.web.shapes import Declared, SensorDetail, SensorPage
from streamridge.service.web.tables import Columns, Format, format_of, table_answer

Sort = Annotated[
    Literal[
        "-error_ratio", "error_ratio", "-error", "error", "-outside", "outside",
        "-newest", "newest", "id",
    ],
    Meta(description="What to sort by; with - in front, the largest first."),
]  # fmt: skip
COLUMNS: Columns = {
    **dict.fromkeys(("id", "label", "group", "state", "reason", "newest"), "string"),
    "value": "double",
    **dict.fromkeys(("unit", "zone"), "string"),
    **dict.fromkeys(("latitude", "longitude", "error", "error_ratio", "outside"), "double"),
    "trend": "string",
}
LONGEST_LABEL = 200


class SensorsQuery(Query, frozen=True):
    """Which sensors, in which order."""

    state: StateFilter | UnsetType = UNSET
    q: Search | UnsetType = UNSET
    sort: Sort = "-error_ratio"
    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET
    format: Format | UnsetType = UNSET


class Saying(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be declared of a sensor; what is left out is not declared."""

    label: Annotated[str, Meta(min_length=1, max_length=LONGEST_LABEL)] | None = None
    group: Annotated[str, Meta(min_length=1, max_length=LONGEST_LABEL)] | None = None
    position: (
        tuple[Annotated[float, Meta(ge=-90, le=90)], Annotated[float, Meta(ge=-180, le=180)]] | None
    ) = None
    unit: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    zone: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    bounds: tuple[float | None, float | None] | None = None
    rule: Rule | None = None
    holidays: (
        Annotated[list[Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]], Meta(max_length=1000)]
        | Annotated[str, Meta(min_length=2, max_length=10)]
        | None
    ) = None


@route(
    "GET",
    "/v1/sensors",
    Contract(
        "read",
        "sensors",
        {
            200: Answer(
                "A page of sensors.",
                {JSON: SensorPage, CSV: TEXT, PARQUET: TEXT},
                {"items": [ITEM], "cursor": None, "total": 1},
                {"Streamridge-Cursor": "Where the page ended, if there are more."},
            )
        },
        SensorsQuery,
        problems=("sr-not-acceptable",),
    ),
)
async def list_sensors(request: Asked) -> Response[bytes]:
    """List sensors, those first whose errors have grown most against their own last four weeks."""
    query, service = query_of(request, SensorsQuery), service_of(request)
    kind = format_of(request, query.format)
    page = await context_of(request).listing.page(
        query.sort,
        wanted(service, given(query.state), given(query.q)),
        given(query.cursor),
        query.limit,
    )
    items = await beside(
        len(page.places), lambda: [views.item(service, place) for place in page.places]
    )
    if kind == "json":
        return json_answer({"items": items, "cursor": page.cursor, "total": page.total})
    headers = {"Streamridge-Cursor": page.cursor} if page.cursor else None
    return table_answer(map(_flat, items), COLUMNS, kind, headers)


def wanted(
    service: Service, state: str | None, search: str | None = None
) -> Callable[[Place], bool]:
    """Return the function that tells whether a sensor is asked for."""
    now, text = service.now, (search or "").casefold()

    def is_wanted(place: Place) -> bool:
        if (place.sensor.archived is None) == (state == "archived"):
            return False
        if state not in (None, "archived") and service.board.state(place, now)[0] != state:
            return False
        if not text or text in place.sensor.name.casefold():
            return True
        return text in (service.intake.declared(place.sensor).label or "").casefold()

    return is_wanted


def _flat(item: dict[str, Any]) -> dict[str, Any]:
    latitude, longitude = item["position"] or (None, None)
    return {**item, "latitude": latitude, "longitude": longitude}


@route(
    "GET",
    "/v1/sensors/{sensor:str}",
    Contract(
        "read",
        "sensors",
        {200: Answer("All about the sensor.", {JSON: SensorDetail}, DETAIL)},
        problems=("sr-unknown-sensor",),
    ),
)
async def show_sensor(request: Asked) -> Response[bytes]:
    """Tell all about one sensor: its state, forecast, errors, model and declaration."""
    query_of(request, Query)
    service, place = service_of(request), place_of(request)
    told = await service.ask(place.sensor.id)
    cuts = await service.read(lambda ledger: ledger.cuts(place.sensor.id))
    return json_answer(views.detail(service, place, told, [(cut.until, cut.kind) for cut in cuts]))


@route(
    "PUT",
    "/v1/sensors/{sensor:str}",
    Contract(
        "admin",
        "sensors",
        {
            200: Answer("The sensor is declared anew.", {JSON: Declared}),
            201: Answer(
                "The sensor is new.",
                {JSON: Declared},
                {"id": "A2-35.1", "declared": DECLARATION},
                {"Location": "Where the sensor is found."},
            ),
        },
        sent=Sent({JSON: Saying}, {JSON: DECLARATION}),
        problems=(
            "sr-bad-name", "sr-bad-field", "sr-unreadable", "sr-unsupported-type", "sr-too-large",
            "sr-slow-body", "sr-too-many-sensors", "sr-conflicting-declaration", "sr-disk-full",
        ),
    ),
)  # fmt: skip
async def declare_sensor(request: Asked) -> Response[bytes]:
    """Declare a sensor, known or new; what is left out is not declared any more.

    A change of zone, bounds, rule or holidays makes its forecaster anew from its readings. A sensor
    that was archived lives again.
    """
    query_of(request, Query)
    service, name = service_of(request), _name_of(request)
    declared = declaration_of(service, await said(request, Saying))
    is_new = name not in service.intake.sensors
    sensor = await service.declare(name, declared)
    answer = {"id": name, "declared": msgspec.to_builtins(declared)}
    assert sensor.name == name
    headers = {"Location": f"/v1/sensors/{name}"} if is_new else None
    return json_answer(answer, 201 if is_new else 200, headers)


def _name_of(request: Asked) -> str:
    try:
        return name_of(request.path_params["sensor"])
    except FieldError as error:
        raise Problem(error.code, error.detail) from None


def declaration_of(service: Service, saying: Saying) -> Declaration:
    """Return a declaration that a forecaster can be made of."""
    for name in ("label", "group", "unit"):
        text = getattr(saying, name)
        if text is not None and not text.isprintable():
            raise Problem("sr-bad-field", f"{name} must be printable characters, got {text!r}.")
    values = msgspec.structs.asdict(saying)
    if isinstance(saying.holidays, list):
        values["holidays"] = tuple(saying.holidays)
    declared = Declaration(**values)
    try:
        service.plan.settings(declared)
    except StreamRidgeError as error:
        raise Problem("sr-bad-field", error.reason) from None
    return declared


@route(
    "DELETE",
    "/v1/sensors/{sensor:str}",
    Contract(
        "admin",
        "sensors",
        {204: Answer("The sensor is archived.")},
        problems=("sr-unknown-sensor", "sr-disk-full"),
    ),
)
async def archive_sensor(request: Asked) -> Response[None]:
    """Archive a sensor: its readings are taken no more, and what is stored stays."""
    query_of(request, Query)
    place = place_of(request)
    if place.sensor.archived is None:
        await service_of(request).archive(place.sensor)
    return empty_answer()


HANDLERS = [list_sensors, show_sensor, declare_sensor, archive_sensor]
