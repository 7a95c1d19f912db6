"""Forecasts out: of one sensor from now on, or of all as they were issued."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.service import views
from streamridge.service.board import Place
from streamridge.service.ledger.records import Issued
from streamridge.service.service import Service
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
from streamridge.service.web.examples import FORECAST, FORECAST_ROW
from streamridge.service.web.listing import beside
from streamridge.service.web.parameters import Cursor, Limit, given
from streamridge.service.web.queries import moment_of, query_of
from streamridge.service.web.shapes import ForecastPage, SensorForecast, Time
from streamridge.service.web.tables import Columns, Format, format_of, table_answer

COLUMNS: Columns = {
    "sensor": "string",
    "label": "string",
    "seq": "int64",
    "source": "string",
    "reason": "string",
    "time": "string",
    "lead": "int64",
    **dict.fromkeys(("value", "lower", "upper"), "double"),
}
NOTHING = dict.fromkeys(("time", "lead", "value", "lower", "upper"))


class ForecastQuery(Query, frozen=True):
    """In which format."""

    format: Format | UnsetType = UNSET


class ForecastsQuery(Query, frozen=True):
    """Which forecasts, in which format."""

    at: (
        Annotated[
            Time,
            Meta(description="Forecasts whose first step is the one at or after this moment."),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[Limit, Meta(description="The most sensors of one answer.")] = 1000
    cursor: Cursor | UnsetType = UNSET
    format: Format | UnsetType = UNSET


@route(
    "GET",
    "/v1/sensors/{sensor:str}/forecasts",
    Contract(
        "read",
        "forecasts",
        {
            200: Answer(
                "The next forecasts.", {JSON: SensorForecast, CSV: TEXT, PARQUET: TEXT}, FORECAST
            )
        },
        ForecastQuery,
        problems=("sr-unknown-sensor", "sr-not-acceptable"),
    ),
)
async def forecast_sensor(request: Asked) -> Response[bytes]:
    """Return the forecasts of a sensor for the steps after now, each with its band."""
    query, service, place = (
        query_of(request, ForecastQuery),
        service_of(request),
        place_of(request),
    )
    kind = format_of(request, query.format)
    told = views.forecast(service, place, await service.ask(place.sensor.id))
    if kind == "json":
        return json_answer(told)
    return table_answer(_rows(service, place, told), COLUMNS, kind)


@route(
    "GET",
    "/v1/forecasts",
    Contract(
        "read",
        "forecasts",
        {
            200: Answer(
                "Forecasts as they were issued, a row for each step.",
                {JSON: ForecastPage, CSV: TEXT, PARQUET: TEXT},
                {"items": [FORECAST_ROW], "cursor": None, "total": 1},
                {"Streamridge-Cursor": "Where the page ended, if there are more."},
            )
        },
        ForecastsQuery,
        problems=("sr-not-acceptable",),
    ),
)
async def list_forecasts(request: Asked) -> Response[bytes]:
    """Return the newest forecasts of all sensors, or those that were issued for a moment."""
    query, service = query_of(request, ForecastsQuery), service_of(request)
    kind = format_of(request, query.format)
    page = await context_of(request).listing.page(
        "id", lambda place: place.sensor.archived is None, given(query.cursor), query.limit
    )
    issued = None if query.at is UNSET else await _issued(service, moment_of(query.at, "at"))
    rows = await beside(len(page.places), _all_rows, service, page.places, issued)
    if kind == "json":
        return json_answer({"items": rows, "cursor": page.cursor, "total": page.total})
    headers = {"Streamridge-Cursor": page.cursor} if page.cursor else None
    return await asyncio.to_thread(table_answer, rows, COLUMNS, kind, headers)


async def _issued(service: Service, at: int) -> dict[int, Issued]:
    """Return the forecasts whose first step is the one at or after a moment, by sensor."""
    step = service.plan.step
    first = -(-at // step) * step
    return await service.read(
        lambda ledger: {
            each.sensor: each for each in ledger.forecasts(start=first, end=first + step)
        }
    )


def _all_rows(
    service: Service, places: list[Place], issued: dict[int, Issued] | None
) -> list[dict[str, Any]]:
    """Return the forecasts of sensors as rows: those issued, or the newest."""
    return [
        row
        for place in places
        for row in _rows(
            service,
            place,
            views.newest_forecast(service, place)
            if issued is None
            else views.issued_forecast(service, place, issued.get(place.sensor.id)),
        )
    ]


def _rows(service: Service, place: Place, told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a forecast as rows; one without numbers, and with the reason, if there is none."""
    label = service.intake.declared(place.sensor).label
    common = {
        "label": label,
        **{name: told[name] for name in ("sensor", "seq", "source", "reason")},
    }
    return [{**common, **step} for step in told["items"] or [NOTHING]]


HANDLERS = [forecast_sensor, list_forecasts]
