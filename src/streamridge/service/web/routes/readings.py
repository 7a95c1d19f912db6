"""Readings in: as JSON, lines of JSON, CSV or Parquet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Response
from msgspec import Meta

from streamridge.service.bodies.decoding import decode
from streamridge.service.intake import Mode, OnConflict, Receipt, Wish
from streamridge.service.problems import CATALOGUE, Problem
from streamridge.service.rows import LARGEST, MOST_REFUSALS, Batch
from streamridge.service.web.answers import json_answer, problem_answer
from streamridge.service.web.context import Asked, context_of, service_of
from streamridge.service.web.contracts import (
    CSV,
    JSON,
    NDJSON,
    PARQUET,
    TEXT,
    Answer,
    Contract,
    Query,
    Sent,
    route,
)
from streamridge.service.web.examples import COUNTS, CSV_TEXT, NDJSON_TEXT, READINGS
from streamridge.service.web.making import forecasts_of
from streamridge.service.web.queries import query_of
from streamridge.service.web.receiving import body_of
from streamridge.service.web.room import LARGE
from streamridge.service.web.shapes import Counts, Name, Time

COUNTED = ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused")
WRITTEN = {"Streamridge-Written": "How many rows were stored."}
PROBLEMS = (
    "sr-not-a-number", "sr-archived", "sr-too-many-sensors", "sr-unreadable", "sr-unsupported-type",
    "sr-too-large", "sr-slow-body", "sr-disk-full",
)  # fmt: skip


class ReadingsQuery(Query, frozen=True):
    """How rows shall be taken."""

    on_conflict: Annotated[
        OnConflict,
        Meta(description="Whether another value for a known time is refused or replaces it."),
    ] = "keep"
    atomic: Annotated[bool, Meta(description="Store nothing if any row is refused.")] = False
    mode: Annotated[
        Mode, Meta(description="Whether rows are of now, or many of the past at once.")
    ] = "live"
    forecast: Annotated[
        bool, Meta(description="Answer with the next forecasts of the sensors as well.")
    ] = False


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sensor measured; null is no measurement."""

    sensor: Name
    time: Time
    value: Annotated[float, Meta(ge=-LARGEST, le=LARGEST)] | None


class Readings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several readings in an object."""

    readings: list[Reading]


@route(
    "POST",
    "/v1/readings",
    Contract(
        "write",
        "readings",
        {200: Answer("All rows are stored.", {JSON: Counts}, COUNTS, WRITTEN)},
        ReadingsQuery,
        Sent(
            {
                JSON: (list[Reading], Reading, Readings),
                NDJSON: TEXT,
                CSV: TEXT,
                PARQUET: {"type": "string", "format": "binary"},
            },
            {JSON: READINGS, NDJSON: NDJSON_TEXT, CSV: CSV_TEXT},
        ),
        PROBLEMS,
        counts=False,
    ),
)
async def post_readings(request: Asked) -> Response[bytes]:
    """Store readings; what is answered with 200 or 422 has been written to disk.

    Rows that are good are stored even if others are refused, unless `atomic`. To send the same
    again is harmless. A body may be packed by gzip or zstd.
    """
    query, service = query_of(request, ReadingsQuery), service_of(request)
    wish = Wish(query.on_conflict, query.atomic, query.mode)
    content_type = request.headers.get("content-type")
    with context_of(request).room.guest() as guest:
        body = await body_of(request, guest)
        batch = await decoded(body, lambda: decode(body, content_type))
        receipt = await service.take(batch, wish)
    if receipt.refused:
        return refusal_answer(receipt)
    answer = counts_of(receipt)
    if query.forecast:
        answer["forecasts"] = await forecasts_of(service, receipt.sensors)
    return json_answer(answer, headers={"Streamridge-Written": str(receipt.written)})


async def decoded(body: bytes, decoder: Callable[[], Batch]) -> Batch:
    """Return the rows of a body; others are answered while a large one is read."""
    return await asyncio.to_thread(decoder) if len(body) > LARGE else decoder()


def counts_of(receipt: Receipt) -> dict[str, Any]:
    """Return what became of the rows of a request."""
    return {name: getattr(receipt, name) for name in COUNTED}


def refusal_answer(receipt: Receipt) -> Response[bytes]:
    """Return the answer to a request of which some rows were refused."""
    codes = {refusal.code for refusal in receipt.refusals}
    code = codes.pop() if len(codes) == 1 else "sr-refused-rows"
    first = receipt.refusals[0]
    refusals = [each.members() for each in receipt.refusals[:MOST_REFUSALS]]
    problem = Problem(
        code if code in CATALOGUE else "sr-refused-rows",
        f"{receipt.refused} rows were refused. Line {first.line}: {first.detail}",
        **counts_of(receipt),
        refusals=refusals,
    )
    return problem_answer(problem, {"Streamridge-Written": str(receipt.written)})


HANDLERS = [post_readings]
