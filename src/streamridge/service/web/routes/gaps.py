"""Gaps: how many readings came, hour by hour."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.service import views
from streamridge.service.board import Place
from streamridge.service.fleet.tracker import NEVER
from streamridge.service.plan import HOUR, Rule
from streamridge.service.service import Service
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, context_of, place_of, service_of
from streamridge.service.web.contracts import JSON, Answer, Contract, route
from streamridge.service.web.parameters import (
    Cursor,
    Span,
    StateFilter,
    given,
    require_few,
    span_of,
)
from streamridge.service.web.queries import query_of
from streamridge.service.web.routes.sensors import wanted
from streamridge.service.web.shapes import Gaps, SensorGaps

DAY = 24 * HOUR
# Hours of one answer: a month for one sensor, a week for many.
MOST_HOURS, MOST_HOURS_OF_MANY, MOST_OF_MANY = 744, 168, 1000


class GapsQuery(Span, frozen=True):
    """Which sensors, and which stretch of time."""

    state: StateFilter | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_OF_MANY, description="The most sensors.")] = 100
    cursor: Cursor | UnsetType = UNSET


@route(
    "GET",
    "/v1/sensors/{sensor:str}/gaps",
    Contract(
        "read",
        "looking back",
        {200: Answer("The hours of that time.", {JSON: SensorGaps})},
        Span,
        problems=("sr-unknown-sensor",),
    ),
)
async def show_gaps(request: Asked) -> Response[bytes]:
    """Return how many readings of a sensor were expected and received, hour by hour."""
    query, service, place = query_of(request, Span), service_of(request), place_of(request)
    span = _hours(service, query, DAY, MOST_HOURS)
    counts = await _counts(service, [place], span)
    steps = _expected(service, span)
    hours = [
        {"time": views.iso(span[0] + i * HOUR), "expected": expected, "received": received}
        for i, (expected, received) in enumerate(zip(steps, counts[place.sensor.id], strict=True))
    ]
    return json_answer({"sensor": place.sensor.name, "hours": hours})


@route(
    "GET",
    "/v1/gaps",
    Contract(
        "read",
        "looking back",
        {200: Answer("A page of sensors, with the hours of that time.", {JSON: Gaps})},
        GapsQuery,
    ),
)
async def list_gaps(request: Asked) -> Response[bytes]:
    """Return how many readings of many sensors were received, hour by hour; null before the first.

    Sensors come by name, so that those of one road stand together.
    """
    query, service = query_of(request, GapsQuery), service_of(request)
    span = _hours(service, query, DAY, MOST_HOURS_OF_MANY)
    page = await context_of(request).listing.page(
        "id", wanted(service, given(query.state)), given(query.cursor), query.limit
    )
    counts = await _counts(service, page.places, span)
    return json_answer(
        {
            "items": [
                _gaps_row(service, place, counts[place.sensor.id], span[0]) for place in page.places
            ],
            "from": views.iso(span[0]),
            "hours": (span[1] - span[0]) // HOUR,
            "cursor": page.cursor,
            "total": page.total,
        }
    )


def _hours(service: Service, query: Span, usual: int, most: int) -> tuple[int, int]:
    """Return a stretch of whole hours; by default it ends with the hour that runs."""
    now = -(-(service.now + 1) // HOUR) * HOUR
    start, end = span_of(query, now, usual)
    count = (end - start) // HOUR
    require_few(count, most, "hours")
    return start, start + count * HOUR


async def _counts(
    service: Service, places: list[Place], span: tuple[int, int]
) -> dict[int, list[int]]:
    rules: dict[int, Rule | None] = {
        place.sensor.id: service.intake.declared(place.sensor).rule or service.plan.rule
        for place in places
    }
    return await service.read(lambda ledger: views.gaps(ledger, rules, service.plan, span))


def _expected(service: Service, span: tuple[int, int]) -> list[int]:
    """Return how many steps each hour has."""
    start, end = span
    step = service.plan.step
    return [-(-(at + HOUR) // step) - -(-at // step) for at in range(start, end, HOUR)]


def _gaps_row(service: Service, place: Place, counts: list[int], start: int) -> dict[str, Any]:
    declared, first = service.intake.declared(place.sensor), place.standing.first
    hours = [
        None if (first == NEVER or start + (i + 1) * HOUR <= first) and not count else count
        for i, count in enumerate(counts)
    ]
    return {
        "id": place.sensor.name,
        "label": declared.label,
        "group": declared.group,
        "hours": hours,
    }


HANDLERS = [show_gaps, list_gaps]
