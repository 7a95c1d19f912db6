"""Events: numbered, kept for a while, and published to the clients of the event stream.

A client that reads too slowly loses its oldest events, and a `resync` event tells it so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from secrets import token_hex

import msgspec

from streamridge_service.ledger.records import Event, SensorRow
from streamridge_service.service.answers import EventItem, event_item
from streamridge_service.service.writer import PendingWrites, Writer

# Events queued for one client, events kept for clients that reconnect, and clients at most.
MAX_QUEUED, MAX_KEPT, MAX_SUBSCRIBERS = 256, 2048, 200
# Seconds without an event after which a client gets a heartbeat.
HEARTBEAT = 15.0
MAX_REASON = 300


class EventMessage(msgspec.Struct, frozen=True):
    """An event for clients; `topic` is a sensor's name, or the kind of an operator's event."""

    number: int
    kind: str
    data: bytes
    topic: str | None = None


class Subscriber:
    """One client of the event stream: its queue, and the names and kinds that it wants.

    It gets updates of these sensors, and operators' events of these kinds, or of all if empty.
    """

    def __init__(
        self, sensors: frozenset[str] = frozenset(), kinds: frozenset[str] = frozenset()
    ) -> None:
        self.sensors, self.kinds = sensors, kinds
        self.queue: deque[EventMessage] = deque()
        self.wake = asyncio.Event()
        self.lost = 0

    def wants(self, message: EventMessage) -> bool:
        """Return whether the client wants an event."""
        if message.kind == "event":
            return not self.kinds or message.topic in self.kinds
        return message.kind != "sensor" or message.topic in self.sensors

    def put(self, message: EventMessage) -> bool:
        """Queue an event; return whether the oldest one was dropped for it."""
        dropped = len(self.queue) >= MAX_QUEUED
        if dropped:
            self.queue.popleft()
            self.lost += 1
        self.queue.append(message)
        self.wake.set()
        return dropped


class EventBus:
    """The events of one service. Only its event loop uses it."""

    def __init__(self) -> None:
        self._last = 0
        # Numbers restart with the service: this id tells the events of another run apart.
        self._run = token_hex(4)
        self._kept: deque[EventMessage] = deque(maxlen=MAX_KEPT)
        self.subscribers: set[Subscriber] = set()
        self.watched: frozenset[str] = frozenset()  # sensors that some client asked for
        self.dropped = 0
        self.is_closing = False

    def publish(self, kind: str, data: object, topic: str | None = None) -> None:
        """Send an event to all clients that want it."""
        self._last += 1
        message = EventMessage(self._last, kind, msgspec.json.encode(data), topic)
        self._kept.append(message)
        for subscriber in self.subscribers:
            if subscriber.wants(message):
                self.dropped += subscriber.put(message)

    def subscribe(self, subscriber: Subscriber, last_id: str | None = None) -> bool:
        """Add a client; return False if there are too many.

        `last_id` is the id of the last event that the client has seen: later events are queued for
        it. If they are not kept any more, the client gets a `resync` event.
        """
        if len(self.subscribers) >= MAX_SUBSCRIBERS:
            return False
        if last_id is not None:
            self._catch_up(subscriber, last_id)
        self.subscribers.add(subscriber)
        self._update_watched()
        return True

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a client."""
        self.subscribers.discard(subscriber)
        self._update_watched()

    def _update_watched(self) -> None:
        self.watched = frozenset().union(*(each.sensors for each in self.subscribers))

    async def stream(self, subscriber: Subscriber) -> AsyncIterator[bytes]:
        """Yield events as bytes until the service stops."""
        yield b": welcome\n\n"
        while not self.is_closing:
            if not subscriber.queue and not subscriber.lost:
                subscriber.wake.clear()
                # `asyncio.wait_for` would ignore the end of the client at the moment of an event.
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT):
                        await subscriber.wake.wait()
                if not subscriber.queue and not self.is_closing:
                    yield b": still here\n\n"
            if subscriber.lost:
                subscriber.lost = 0
                yield self._encoded(EventMessage(self._last, "resync", b"{}"))
            while subscriber.queue:
                yield self._encoded(subscriber.queue.popleft())
        yield self._encoded(EventMessage(self._last, "shutdown", b"{}"))

    def _catch_up(self, subscriber: Subscriber, last_id: str) -> None:
        run, _, text = last_id.partition("-")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
        oldest = self._kept[0].number if self._kept else self._last + 1
        if run != self._run or not oldest - 1 <= number <= self._last:
            subscriber.lost = 1
            return
        for message in self._kept:
            if message.number > number and subscriber.wants(message):
                subscriber.put(message)

    def _encoded(self, message: EventMessage) -> bytes:
        event_id = f"{self._run}-{message.number}".encode()
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (event_id, message.kind.encode(), message.data)

    def close(self) -> None:
        """Tell all clients that the service stops."""
        self.is_closing = True
        for subscriber in self.subscribers:
            subscriber.wake.set()


class EventLog:
    """Events that operators should know about: stored in the ledger, and published."""

    def __init__(
        self, bus: EventBus, writer: Writer, now: Callable[[], int], last_id: int = 0
    ) -> None:
        self._bus, self._writer, self._now, self._last_id = bus, writer, now, last_id
        self.listener: Callable[[EventItem], None] = lambda event: None

    def record(self, kind: str, sensor: SensorRow | None, reason: str) -> None:
        """Store an event about a sensor, or about the whole service, and publish it."""
        self._last_id += 1
        number, name = (None, None) if sensor is None else (sensor.id, sensor.name)
        event = Event(self._last_id, self._now(), kind, number, reason[:MAX_REASON])
        self._writer.add(PendingWrites(events=[event]))
        item = event_item(event, name)
        self._bus.publish("event", item, kind)
        self.listener(item)
