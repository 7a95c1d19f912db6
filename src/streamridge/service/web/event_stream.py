"""Server-sent events to one client, who may leave, stall, or stay until the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from litestar import Response
from litestar.types import Receive, Scope, Send

from streamridge.service.hub import Hub, Listener

EVENT_STREAM = "text/event-stream"
# Seconds that a client may take to make room for the next event.
PATIENCE = 30.0


class EventStream(Response[None]):
    """The answer that goes on as long as the client listens.

    Parameters
    ----------
    hub
        Where events come from.
    listener
        The client, who has joined.
    """

    def __init__(self, hub: Hub, listener: Listener) -> None:
        super().__init__(None, media_type=EVENT_STREAM)
        self._hub, self._listener = hub, listener

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Return what sends the answer."""
        return self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = [asyncio.create_task(self._send(send)), asyncio.create_task(_left(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._listener)
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError, TimeoutError):
                    await task

    async def _send(self, send: Send) -> None:
        """Send events; raises `TimeoutError` if the client takes none for too long."""
        headers = [(b"content-type", EVENT_STREAM.encode()), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for piece in self._hub.listen(self._listener):
            async with asyncio.timeout(PATIENCE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
