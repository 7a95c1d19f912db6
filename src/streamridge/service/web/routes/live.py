"""What happens, as it happens; and the one line of truth."""

from __future__ import annotations

from typing import Annotated

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge.service import views
from streamridge.service.board import STATES
from streamridge.service.hub import Listener
from streamridge.service.problems import Problem
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, service_of
from streamridge.service.web.contracts import JSON, TEXT, Answer, Contract, Query, route
from streamridge.service.web.event_stream import EVENT_STREAM, EventStream
from streamridge.service.web.examples import EVENT, SUMMARY
from streamridge.service.web.parameters import Limit, Names, parts
from streamridge.service.web.queries import query_of
from streamridge.service.web.shapes import Events, Summary

# What an event can tell of: that a sensor is in a state, or that something was done.
EVENT_KINDS = "|".join([*STATES, "retuned", "refused", "clock_jump", "archived"])


class EventsQuery(Query, frozen=True):
    """Which events."""

    after: Annotated[int, Meta(ge=0, le=2**53, description="Only events after this number.")] = 0
    limit: Limit = 1000


class StreamQuery(Query, frozen=True):
    """What to hear of."""

    sensors: Names | UnsetType = UNSET
    state: (
        Annotated[
            str,
            Meta(
                pattern=f"^({EVENT_KINDS})(,({EVENT_KINDS})){{0,19}}$",
                description="Only events of these kinds, with commas between them.",
            ),
        ]
        | UnsetType
    ) = UNSET


@route(
    "GET",
    "/v1/summary",
    Contract("read", "live", {200: Answer("How it is now.", {JSON: Summary}, SUMMARY)}),
)
async def show_summary(request: Asked) -> Response[bytes]:
    """Tell how the service does, and how many sensors are in which state."""
    query_of(request, Query)
    return json_answer(views.summary(service_of(request)))


@route(
    "GET",
    "/v1/events",
    Contract(
        "read",
        "live",
        {200: Answer("What changed, oldest first.", {JSON: Events}, {"items": [EVENT]})},
        EventsQuery,
    ),
)
async def list_events(request: Asked) -> Response[bytes]:
    """List what changed of late: sensors that fell silent or came back, refits, refusals."""
    query, service = query_of(request, EventsQuery), service_of(request)
    events = await service.read(lambda ledger: ledger.events(after=query.after, limit=query.limit))
    return json_answer({"items": [views.event_item(service, event) for event in events]})


@route(
    "GET",
    "/v1/stream",
    Contract(
        "read",
        "live",
        {
            200: Answer(
                "Events, until the client leaves or the service stops.", {EVENT_STREAM: TEXT}
            )
        },
        StreamQuery,
        problems=("sr-too-many-streams",),
    ),
)
async def stream(request: Asked) -> Response[None]:
    """Send events as they happen, as server-sent events.

    `summary` is the answer of /v1/summary, `event` an item of /v1/events, and `sensor` an item of
    /v1/sensors of those named by `sensors`. With `state`, events of other kinds are left out. Every
    event has an id; with it in the header Last-Event-ID a client gets what it missed. `resync` says
    that something was missed for good, `shutdown` that the service stops.
    """
    query, hub = query_of(request, StreamQuery), service_of(request).hub
    if hub.closing:
        raise Problem("sr-stopping", "The service is stopping.")
    listener = Listener(parts(query.sensors), parts(query.state))
    if not hub.join(listener, request.headers.get("last-event-id")):
        raise Problem("sr-too-many-streams", "There are as many event streams as there may be.")
    return EventStream(hub, listener)


HANDLERS = [show_summary, list_events, stream]
