"""Forecasts out: of one sensor from now on, or of all sensors as they were issued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge_service.http.requests import Cursor, Limit, Query, given, time_of
from streamridge_service.http.responses import Columns, Format, format_of, table_response
from streamridge_service.http.routing import HttpRequest, Routes, context_of, service_of, status_of
from streamridge_service.http.streaming import PART, in_parts, stream_items
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import IssuedForecast
from streamridge_service.plan import Label
from streamridge_service.service.answers import (
    Answer,
    Lower,
    Name,
    NextTime,
    SensorForecast,
    Seq,
    Source,
    StepSeconds,
    Time,
    Upper,
    Value,
    newest_forecast,
    sensor_forecast,
)
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.service.service import Service

COLUMNS: Columns = {
    "sensor": "string",
    "label": "string",
    "step_seconds": "double",
    "seq": "int64",
    "source": "string",
    "reason": "string",
    "time": "string",
    "lead": "int64",
    **dict.fromkeys(("value", "lower", "upper"), "double"),
}

routes = Routes("forecasts")


class ForecastQuery(Query, frozen=True):
    """The format of the response."""

    format: Format | UnsetType = UNSET


class ForecastsQuery(Query, frozen=True):
    """The forecasts to return, and their format."""

    at: (
        Annotated[
            Time, Meta(description="Forecasts whose first step is the first at or after this time.")
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[Limit, Meta(description="The most sensors of one response.")] = 1000
    cursor: Cursor | UnsetType = UNSET
    format: Format | UnsetType = UNSET


class ForecastRow(Answer, frozen=True):
    """One step of one sensor's forecast; without a forecast, one row with the reason."""

    label: Label | None
    sensor: Name
    step_seconds: StepSeconds
    seq: Seq
    source: Source
    reason: str | None
    time: NextTime | None
    lead: Annotated[int, Meta(examples=[1])] | None
    value: Value | None
    lower: Lower | None
    upper: Upper | None


class ForecastPage(Answer, frozen=True):
    """Forecasts of many sensors."""

    items: list[ForecastRow]
    cursor: str | None
    total: Annotated[int, Meta(examples=[1])]


@routes.add("GET", "/v1/sensors/{sensor:str}/forecasts", tables=True)
async def forecast_sensor(
    request: HttpRequest, query: ForecastQuery
) -> SensorForecast | Response[bytes]:
    """Return the forecasts of a sensor for the steps after now, each with its band.

    If a forecast was issued for these steps, it is returned. A refit or an operator's action since
    then applies to the forecast after the next reading.
    """
    service, kind = service_of(request), format_of(request, query.format)
    answer = await service.forecasts.ask(status_of(request).sensor.id)
    status, newest = status_of(request), answer.forecast
    reason = status.reason_without_forecast(service.now)
    if newest is None:
        reason = status.fault or reason
    elif status.forecast is not None and status.forecast.time == newest.time:
        newest = status.forecast
    forecast = sensor_forecast(status, newest, reason)
    if kind == "json":
        return forecast
    rows = _rows(forecast, status.declared.label)
    return table_response(map(msgspec.structs.asdict, rows), COLUMNS, kind)


@routes.add("GET", "/v1/forecasts", tables=True)
async def list_forecasts(
    request: HttpRequest, query: ForecastsQuery
) -> ForecastPage | Response[bytes]:
    """Return the newest forecasts of all sensors, or forecasts that were issued for a time."""
    service, kind = service_of(request), format_of(request, query.format)
    page = await context_of(request).pages.page(
        "id", lambda status: not status.is_archived, given(query.cursor), query.limit
    )
    issued = None
    if query.at is not UNSET:
        issued = await _issued(service, page.statuses, time_of(query.at, "at"))
    now = service.now
    return await stream_items(
        service.queries,
        in_parts(page.statuses, lambda some: lambda _: _all_rows(some, issued, now)),
        ForecastPage([], page.cursor, page.total),
        kind=kind,
        columns=COLUMNS,
        cursor=page.cursor,
    )


async def _issued(
    service: Service, statuses: list[SensorStatus], at: int
) -> dict[int, IssuedForecast]:
    """Return the forecasts whose first step is the first at or after a time, by sensor."""
    first = {each.sensor.id: -(-at // each.plan.step) * each.plan.step for each in statuses}
    found: dict[int, IssuedForecast] = {}
    for time in set(first.values()):
        all_sensors = await service.queries.read_part(partial(_issued_for, time))
        while some := await service.queries.work(partial(_next_part, all_sensors)):
            found |= {each.sensor: each for each in some if first.get(each.sensor) == time}
    return found


def _issued_for(time: int, ledger: Ledger) -> Iterator[IssuedForecast]:
    return ledger.forecasts(start=time, end=time + 1, corrected=True)


def _next_part(forecasts: Iterator[IssuedForecast]) -> list[IssuedForecast]:
    return list(islice(forecasts, PART))


def _all_rows(
    statuses: Sequence[SensorStatus], issued: dict[int, IssuedForecast] | None, now: int
) -> list[ForecastRow]:
    """Return the rows of all issued forecasts; without `issued`, of the newest forecasts."""
    rows = []
    for status in statuses:
        if issued is None:
            forecast = newest_forecast(status, now)
        else:
            forecast = sensor_forecast(status, issued.get(status.sensor.id))
        rows += _rows(forecast, status.declared.label)
    return rows


def _rows(forecast: SensorForecast, label: str | None) -> list[ForecastRow]:
    """Return a forecast as rows; without a forecast, one row with the reason."""
    own = forecast.sensor, forecast.step_seconds
    common = (label, *own, forecast.seq, forecast.source, forecast.reason)
    nothing: list[Any] = [(None,) * 5]
    steps = [msgspec.structs.astuple(step) for step in forecast.items]
    return [ForecastRow(*common, *step) for step in steps or nothing]
