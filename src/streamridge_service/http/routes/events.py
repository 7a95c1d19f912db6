"""Events: the summary, recorded events, and the event stream."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from streamridge_service.http.requests import Limit, Names, Query, parts
from streamridge_service.http.routing import TEXT, HttpRequest, ResponseSpec, Routes, service_of
from streamridge_service.http.streaming import StreamedResponse
from streamridge_service.ledger.records import Event
from streamridge_service.problems import Problem
from streamridge_service.service.answers import Answer, EventItem, Summary, event_item
from streamridge_service.service.events import Subscriber
from streamridge_service.service.sensor_status import STATES, SensorStatuses

# Kinds of events: a sensor changed to a state, or something else happened.
OTHER_KINDS = (
    "outside", "inside", "retuned", "refused", "clock_jump", "archived", "alert_failed",
    "acknowledged", "data_loss", "backup", "backup_failed", "pruned", "prune_failed",
)  # fmt: skip
KINDS = "|".join([*STATES, *OTHER_KINDS])
EVENT_STREAM = "text/event-stream"

routes = Routes("events")

Kinds = Annotated[
    str,
    Meta(
        pattern=f"^({KINDS})(,({KINDS})){{0,19}}$",
        description="Only events of these kinds, separated by commas.",
    ),
]


class EventsQuery(Query, frozen=True):
    """The events to return."""

    after: Annotated[int, Meta(ge=0, le=2**53, description="Only events after this number.")] = 0
    limit: Limit = 1000


class StreamQuery(Query, frozen=True):
    """The events to send."""

    sensors: Names | UnsetType = UNSET
    state: Kinds | UnsetType = UNSET


class Events(Answer, frozen=True):
    """Events, oldest first."""

    items: list[EventItem]


@routes.add("GET", "/v1/summary")
async def show_summary(request: HttpRequest) -> Summary:
    """Return the state of the service, and the number of sensors in each state."""
    return service_of(request).summary()


@routes.add("GET", "/v1/events")
async def list_events(request: HttpRequest, query: EventsQuery) -> Events:
    """List recent events: sensors that fell silent or came back, refits, refused rows."""
    service = service_of(request)
    events = await service.read(lambda ledger: ledger.events(after=query.after, limit=query.limit))
    return Events([_named(event, service.statuses) for event in events])


def _named(event: Event, statuses: SensorStatuses) -> EventItem:
    if event.sensor is None or event.sensor not in statuses:
        return event_item(event, None)
    return event_item(event, statuses[event.sensor].sensor.name)


@routes.add(
    "GET",
    "/v1/stream",
    responses={200: ResponseSpec("Events, until the client leaves.", {EVENT_STREAM: TEXT})},
    problems=("sr-too-many-streams",),
)
async def stream(request: HttpRequest, query: StreamQuery) -> StreamedResponse:
    """Send events as they happen, as server-sent events.

    `summary` is the response of /v1/summary, `event` an item of /v1/events, and `sensor` an item of
    /v1/sensors for the sensors in `sensors`. With `state`, events of other kinds are left out.
    Every event has an id. A client that sends it in the header Last-Event-ID gets the events after
    it. `resync` means that events were lost, `shutdown` that the service stops.
    """
    bus = service_of(request).bus
    if bus.is_closing:
        raise Problem("sr-stopping", "The service is stopping.")
    subscriber = Subscriber(parts(query.sensors), parts(query.state))
    if not bus.subscribe(subscriber, request.headers.get("last-event-id")):
        raise Problem("sr-too-many-streams", "There are as many event streams as allowed.")
    return StreamedResponse(
        bus.stream(subscriber),
        EVENT_STREAM,
        {"X-Accel-Buffering": "no"},
        on_close=lambda: bus.unsubscribe(subscriber),
    )
