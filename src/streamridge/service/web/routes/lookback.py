"""Looking back: what was measured and forecast, tuning, and how good forecasts were."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.service import views
from streamridge.service.plan import HOUR, SECOND
from streamridge.service.web.accuracy import by_hour, of_sensor
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, context_of, place_of, service_of
from streamridge.service.web.contracts import (
    CSV,
    JSON,
    PARQUET,
    TEXT,
    Answer,
    Contract,
    Query,
    route,
)
from streamridge.service.web.examples import HISTORY
from streamridge.service.web.parameters import (
    MOST_ITEMS,
    Cursor,
    Limit,
    Names,
    Span,
    given,
    parts,
    require_few,
    span_of,
)
from streamridge.service.web.queries import query_of
from streamridge.service.web.shapes import Accuracy, History, Tuning
from streamridge.service.web.tables import Columns, Format, format_of, table_answer

DAY = 24 * HOUR
# Of so many sensors, spread evenly, errors by hour of the day are looked up.
SAMPLE = 100
COLUMNS: Columns = {
    "sensor": "string",
    "time": "string",
    "lead": "int64",
    "actual": "double",
    "status": "string",
    **dict.fromkeys(("forecast", "lower", "upper"), "double"),
    "source": "string",
    "issued_at_seq": "int64",
}


class HistoryQuery(Span, frozen=True):
    """Which stretch of time, forecast how far ahead."""

    lead: Annotated[int, Meta(ge=1, le=96, description="How many steps ahead.")] = 1
    format: Format | UnsetType = UNSET


class TuningQuery(Query, frozen=True):
    """How far back."""

    days: Annotated[int, Meta(ge=1, le=3660, description="How many days back.")] = 30


class AccuracyQuery(Query, frozen=True):
    """By what errors are told."""

    by: Literal["sensor", "hour"] = "sensor"
    sensors: Names | UnsetType = UNSET
    days: Annotated[int, Meta(ge=1, le=28, description="By hour: how many days back.")] = 7
    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET


@route(
    "GET",
    "/v1/sensors/{sensor:str}/history",
    Contract(
        "read",
        "looking back",
        {
            200: Answer(
                "The steps of that time.", {JSON: History, CSV: TEXT, PARQUET: TEXT}, HISTORY
            )
        },
        HistoryQuery,
        problems=("sr-unknown-sensor", "sr-not-acceptable"),
    ),
)
async def show_history(request: Asked) -> Response[bytes]:
    """Return measured values beside the forecasts made of them, of the last day or another time."""
    query, service = query_of(request, HistoryQuery), service_of(request)
    place, kind = place_of(request), format_of(request, query.format)
    start, end = span_of(query, service.now, DAY)
    require_few((end - start) // service.plan.step, MOST_ITEMS, "steps")
    declared = service.intake.declared(place.sensor)
    items = await service.read(
        lambda ledger: views.history(
            ledger, place.sensor, service.plan, declared, (start, end + 1), query.lead
        )
    )
    common = {"sensor": place.sensor.name, "lead": query.lead}
    if kind == "json":
        step = service.plan.step / SECOND
        return json_answer({**common, "step_seconds": step, "items": items})
    rows = [{**common, **item} for item in items]
    return await asyncio.to_thread(table_answer, rows, COLUMNS, kind)


@route(
    "GET",
    "/v1/sensors/{sensor:str}/tuning",
    Contract(
        "read",
        "looking back",
        {200: Answer("The path of the hyperparameters.", {JSON: Tuning})},
        TuningQuery,
        problems=("sr-unknown-sensor",),
    ),
)
async def show_tuning(request: Asked) -> Response[bytes]:
    """Return where a sensor's hyperparameters stood after each refit, with their limits."""
    query, service = query_of(request, TuningQuery), service_of(request)
    place, start = place_of(request), service.now - query.days * DAY
    told = await service.ask(place.sensor.id)
    path = await service.read(lambda ledger: ledger.tunings(place.sensor.id, start=start))
    return json_answer(views.tuning(service, place, told, path))


@route(
    "GET",
    "/v1/accuracy",
    Contract(
        "read",
        "looking back",
        {200: Answer("How good forecasts were.", {JSON: Accuracy})},
        AccuracyQuery,
        problems=("sr-unknown-sensor",),
    ),
)
async def show_accuracy(request: Asked) -> Response[bytes]:
    """Return how well sensors are forecast one step ahead: by sensor, or by hour of the day in UTC.

    By hour, it is that of the sensors named, or of a hundred spread evenly over all.
    """
    query, service = query_of(request, AccuracyQuery), service_of(request)
    names = parts(query.sensors)
    page = await context_of(request).listing.page(
        "id",
        lambda place: place.sensor.archived is None and (not names or place.sensor.name in names),
        given(query.cursor) if query.by == "sensor" else None,
        query.limit if query.by == "sensor" else MOST_ITEMS,
    )
    if query.by == "sensor":
        items, cursor = [of_sensor(place) for place in page.places], page.cursor
    else:
        page.places[:] = page.places[:: max(len(page.places) // SAMPLE, 1)][:SAMPLE]
        items, cursor = await by_hour(service, page.places, query.days), None
    return json_answer(
        {"by": query.by, "items": items, "sensors": len(page.places), "cursor": cursor}
    )


HANDLERS = [show_history, show_tuning, show_accuracy]
