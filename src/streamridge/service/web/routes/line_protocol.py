"""Readings in, as InfluxDB's clients send them."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.service.bodies.line_protocol import decode_lines
from streamridge.service.intake import Wish
from streamridge.service.web.answers import empty_answer
from streamridge.service.web.context import Asked, context_of, service_of
from streamridge.service.web.contracts import PLAIN, TEXT, Answer, Contract, Query, Sent, route
from streamridge.service.web.examples import LINES_TEXT
from streamridge.service.web.queries import query_of
from streamridge.service.web.receiving import body_of
from streamridge.service.web.routes.readings import PROBLEMS, decoded, refusal_answer

Ignored = Annotated[str, Meta(max_length=200, description="Taken, and of no meaning here.")]


class WriteQuery(Query, frozen=True):
    """The parameters that InfluxDB's clients send."""

    precision: Annotated[Literal["ns", "us", "ms", "s"], Meta(description="The unit of times.")] = (
        "ns"
    )
    bucket: Ignored | UnsetType = UNSET
    org: Ignored | UnsetType = UNSET
    orgID: Ignored | UnsetType = UNSET  # noqa: N815, the name that clients send


@route(
    "POST",
    "/api/v2/write",
    Contract(
        "write",
        "readings",
        {204: Answer("All readings are stored.")},
        WriteQuery,
        Sent({PLAIN: TEXT}, {PLAIN: LINES_TEXT}, required=False),
        PROBLEMS,
        counts=False,
    ),
)
async def write_lines(request: Asked) -> Response[None] | Response[bytes]:
    """Store readings in line protocol, as Telegraf and Home Assistant send them.

    Each field that is a number is a reading of its own sensor, named by measurement, tags and
    field. A token may come as `Authorization: Token ...`, as these clients send it.
    """
    query, service = query_of(request, WriteQuery), service_of(request)
    with context_of(request).room.guest() as guest:
        body = await body_of(request, guest)
        now = service.clock.now()
        batch = await decoded(body, lambda: decode_lines(body, query.precision, now))
        receipt = await service.take(batch, Wish())
    return refusal_answer(receipt) if receipt.refused else empty_answer()


HANDLERS = [write_lines]
