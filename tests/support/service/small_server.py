"""A server with limited connections and an application of a few lines, in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn

from streamridge_service.http.connections import Connections, protocol_of
from streamridge_service.http.server import bind
from tests.support.service.live_server import parsed
from tests.support.waiting import LIMIT, wait_until

HEAD = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n"
# More than the buffers of a connection hold.
LARGE = 30_000_000


class SmallServer:
    """A server for use with `with`; `/wait` is answered after `release`, `/large` is long."""

    def __init__(self, most=100, most_of_one=100, proxies=()):
        self.connections = Connections(most, most_of_one, proxies)
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            http=protocol_of(self.connections),
            lifespan="off",
            log_config=None,
        )
        self._server = uvicorn.Server(config)
        self._socket = bind("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        asyncio.run(self._server.serve([self._socket]))

    async def _answer(self, scope, receive, send):
        if scope["path"] == "/wait":
            self.begun.release()
            await asyncio.to_thread(self.release.wait, LIMIT)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/large":
            for _ in range(LARGE // 100_000):
                body = bytes(100_000)
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"ok"})

    def __enter__(self):
        self._thread.start()
        wait_until(lambda: self._server.started, "a server that listens")
        return self

    def __exit__(self, *_):
        self.release.set()
        self._server.should_exit = True
        self._thread.join()

    def connect(self, sent=b"", address="127.0.0.1"):
        """Return a connection from an address of this machine, after it has sent some bytes."""
        source = (address, 0)
        connection = socket.create_connection(("127.0.0.1", self.port), LIMIT, source)
        connection.sendall(sent)
        return connection

    def ask(self, path=b"", address="127.0.0.1"):
        """Return the status of a request on a connection of its own."""
        with self.connect(HEAD % path + b"Connection: close\r\n\r\n", address) as connection:
            return parsed(connection)[0]


def is_closed(connection):
    """Return whether the server closes a connection, instead of answering on it."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
