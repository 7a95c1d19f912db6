"""Events for whoever listens: numbered, remembered for a while, and never in anyone's way.

A client that does not keep up loses its oldest events, and is told so by `resync`.
"""

from __future__ import annotations

from asyncio import Event as Bell
from asyncio import wait_for
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from secrets import token_hex

import msgspec

# Events that wait for one client, that are remembered for those who come back, and clients.
BACKLOG, REMEMBERED, MOST_CLIENTS = 256, 2048, 200
# After so many seconds without an event a client gets a sign of life.
HEARTBEAT = 15.0


class Message(msgspec.Struct, frozen=True):
    """An event as it goes out; `about` is the sensor's name, or the state that it tells of."""

    number: int
    kind: str
    data: bytes
    about: str | None = None


class Listener:
    """One client: what it asked for, and what waits for it.

    Parameters
    ----------
    sensors
        Names of sensors whose own events it wants.
    states
        Of what is an `event`, it wants those of these kinds; of any if there are none.
    """

    def __init__(
        self, sensors: frozenset[str] = frozenset(), states: frozenset[str] = frozenset()
    ) -> None:
        self.sensors, self.states = sensors, states
        self.waiting: deque[Message] = deque()
        self.bell = Bell()
        self.lost = 0

    def wants(self, message: Message) -> bool:
        """Return whether an event is for this client."""
        if message.kind == "event":
            return not self.states or message.about in self.states
        return message.kind != "sensor" or message.about in self.sensors

    def offer(self, message: Message) -> bool:
        """Let an event wait for the client; return whether an older one had to go."""
        dropped = len(self.waiting) >= BACKLOG
        if dropped:
            self.waiting.popleft()
            self.lost += 1
        self.waiting.append(message)
        self.bell.set()
        return dropped


class Hub:
    """The events of a service; to be used from its event loop only."""

    def __init__(self) -> None:
        self._last = 0
        # Numbers begin anew with every start: by its name, those of another run are recognized.
        self._run = token_hex(4)
        self._past: deque[Message] = deque(maxlen=REMEMBERED)
        self.listeners: set[Listener] = set()
        self.watched: frozenset[str] = frozenset()  # sensors that some client asked for
        self.dropped = 0
        self.closing = False

    def publish(self, kind: str, data: object, about: str | None = None) -> None:
        """Send an event to all clients that want it."""
        self._last += 1
        if kind == "event" and isinstance(data, dict):
            about = data.get("kind")
        message = Message(self._last, kind, msgspec.json.encode(data), about)
        self._past.append(message)
        for listener in self.listeners:
            if listener.wants(message):
                self.dropped += listener.offer(message)

    @property
    def is_full(self) -> bool:
        """Return whether there are as many clients as there may be."""
        return len(self.listeners) >= MOST_CLIENTS

    def join(self, listener: Listener, last: str | None = None) -> bool:
        """Let a client listen until it leaves; return False if there are as many as there may be.

        With `last`, the id of the last event that it has seen, it gets what it missed; if that is
        not remembered, it is told to `resync`.
        """
        if self.is_full:
            return False
        if last is not None:
            self._catch_up(listener, last)
        self.listeners.add(listener)
        self._note_watched()
        return True

    def leave(self, listener: Listener) -> None:
        """Forget a client."""
        self.listeners.discard(listener)
        self._note_watched()

    def _note_watched(self) -> None:
        self.watched = frozenset().union(*(listener.sensors for listener in self.listeners))

    async def listen(self, listener: Listener) -> AsyncIterator[bytes]:
        """Yield events as bytes until the service stops."""
        yield b": welcome\n\n"
        while not self.closing:
            async for piece in self._pieces(listener):
                yield piece
        yield self._encoded(Message(self._last, "shutdown", b"{}"))

    def _catch_up(self, listener: Listener, last: str) -> None:
        run, _, text = last.partition("-")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
        oldest = self._past[0].number if self._past else self._last + 1
        if run != self._run or not oldest - 1 <= number <= self._last:
            listener.lost = 1
            return
        for message in self._past:
            if message.number > number and listener.wants(message):
                listener.offer(message)

    async def _pieces(self, listener: Listener) -> AsyncIterator[bytes]:
        """Yield what waits for a client; wait for it if there is nothing."""
        if not listener.waiting and not listener.lost:
            listener.bell.clear()
            with suppress(TimeoutError):
                await wait_for(listener.bell.wait(), HEARTBEAT)
            if not listener.waiting and not self.closing:
                yield b": still here\n\n"
        if listener.lost:
            listener.lost = 0
            yield self._encoded(Message(self._last, "resync", b"{}"))
        while listener.waiting:
            yield self._encoded(listener.waiting.popleft())

    def _encoded(self, message: Message) -> bytes:
        """Return an event as a client reads it."""
        identity = f"{self._run}-{message.number}".encode()
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (
            identity,
            message.kind.encode(),
            message.data,
        )

    def close(self) -> None:
        """Tell all clients that the service stops."""
        self.closing = True
        for listener in self.listeners:
            listener.bell.set()
