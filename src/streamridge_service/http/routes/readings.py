"""Readings in: as JSON, NDJSON or CSV."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Annotated

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge_service.bodies.decoding import decode
from streamridge_service.http.requests import LARGE, Query, body_of
from streamridge_service.http.responses import (
    CSV,
    JSON,
    NDJSON,
    json_response,
    problem_response,
)
from streamridge_service.http.routing import (
    TEXT,
    BodySpec,
    HttpRequest,
    ResponseSpec,
    Routes,
    context_of,
    service_of,
)
from streamridge_service.intake import IngestOptions, Mode, OnConflict, Receipt
from streamridge_service.limits import LARGEST, MOST_REFUSALS
from streamridge_service.problems import CATALOGUE, Problem
from streamridge_service.rows import Batch
from streamridge_service.service.answers import (
    Answer,
    Name,
    SensorForecast,
    Time,
    newest_forecast,
    sensor_forecast,
)
from streamridge_service.service.ingest import OUTCOMES
from streamridge_service.service.service import Service

# Sensors whose forecasts one response holds at most.
MAX_SENSORS = 1000
# Why a response has no forecast yet.
NOT_READY = "the forecast after this reading is not ready yet; request it again in a moment"
PROBLEMS = (
    "sr-not-a-number", "sr-archived", "sr-too-many-sensors", "sr-unreadable", "sr-unsupported-type",
    "sr-too-large", "sr-slow-body",
)  # fmt: skip
NDJSON_EXAMPLE = (
    '{"sensor": "A2-35.1", "time": "2026-06-13T08:15:00Z", "value": 412}\n'
    '{"sensor": "A2-41.3", "time": "2026-06-13T08:15:00Z", "value": null}\n'
)
CSV_EXAMPLE = "sensor,time,value\nA2-35.1,2026-06-13T08:15:00Z,412\nA2-41.3,2026-06-13T08:15:00Z,\n"

routes = Routes("readings", "write")


class ReadingsQuery(Query, frozen=True):
    """How rows are stored."""

    on_conflict: Annotated[
        OnConflict,
        Meta(description="Whether another value for a stored time is refused or replaces it."),
    ] = "keep"
    atomic: Annotated[bool, Meta(description="Store nothing if any row is refused.")] = False
    mode: Annotated[
        Mode, Meta(description="Whether rows are current, or many rows of the past.")
    ] = "live"
    forecast: Annotated[
        bool, Meta(description="Return the next forecasts of the sensors as well.")
    ] = False


class PostedReading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value of a sensor; null means that there is no measurement."""

    sensor: Name
    time: Time
    value: Annotated[float, Meta(ge=-LARGEST, le=LARGEST, examples=[412])] | None


class PostedReadings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several readings in an object."""

    readings: list[PostedReading]


class RowCounts(Answer, frozen=True):
    """The number of rows by outcome."""

    accepted: Annotated[int, Meta(examples=[2])]
    duplicate: int
    late: int
    held: int
    replaced: int
    implausible: int
    refused: int
    forecasts: list[SensorForecast] | UnsetType = UNSET


@routes.add(
    "POST",
    "/v1/readings",
    responses={
        200: ResponseSpec(
            "All rows are stored.",
            {JSON: RowCounts},
            {"Streamridge-Written": "The number of rows that were stored."},
        )
    },
    body=BodySpec(
        {JSON: (list[PostedReading], PostedReading, PostedReadings), NDJSON: TEXT, CSV: TEXT},
        {NDJSON: NDJSON_EXAMPLE, CSV: CSV_EXAMPLE},
    ),
    problems=PROBLEMS,
    is_limited=False,
)
async def post_readings(request: HttpRequest, query: ReadingsQuery) -> Response[bytes]:
    """Store readings; a response of 200 or 422 means that valid rows are on disk.

    Valid rows are stored even if others are refused, unless `atomic` is set. Sending the same rows
    again is harmless. A body may be compressed with gzip or zstd.
    """
    content_type = request.headers.get("content-type")
    options = IngestOptions(query.on_conflict, query.atomic, query.mode)
    receipt = await store(request, lambda body: decode(body, content_type), options)
    if receipt.refused:
        return refusal(receipt)
    forecasts = await _forecasts(service_of(request), receipt) if query.forecast else UNSET
    counts = RowCounts(**_outcomes(receipt), forecasts=forecasts)
    return json_response(counts, headers={"Streamridge-Written": str(receipt.written)})


async def store(
    request: HttpRequest, decoder: Callable[[bytes], Batch], options: IngestOptions
) -> Receipt:
    """Store the rows of a body; a large one is decoded in another thread."""
    context = context_of(request)
    with context.large_bodies.body() as size:
        body = await body_of(request, size)
        batch = await asyncio.to_thread(decoder, body) if len(body) > LARGE else decoder(body)
        return await context.service.ingest.store(batch, options)


async def _forecasts(service: Service, receipt: Receipt) -> list[SensorForecast]:
    wanted = dict(islice(receipt.sensors.items(), MAX_SENSORS))
    now = service.now
    return [
        newest_forecast(status, now) if is_done else sensor_forecast(status, None, NOT_READY)
        for status, is_done in await service.forecasts.newest(wanted)
    ]


def _outcomes(receipt: Receipt) -> dict[str, int]:
    return {name: getattr(receipt, name) for name in OUTCOMES}


def refusal(receipt: Receipt) -> Response[bytes]:
    """Return the response to a request some of whose rows were refused."""
    codes = {refusal.code for refusal in receipt.refusals}
    code = codes.pop() if len(codes) == 1 else "sr-refused-rows"
    first = receipt.refusals[0]
    problem = Problem(
        code if code in CATALOGUE else "sr-refused-rows",
        f"{receipt.refused} rows were refused. Line {first.line}: {first.detail}",
        **_outcomes(receipt),
        refusals=receipt.refusals[:MOST_REFUSALS],
    )
    return problem_response(problem, **{"Streamridge-Written": str(receipt.written)})
