"""A small service that answers like the real one, with simulated sensors.

It brings about what is hard to bring about in the real service: silence, refusals, labels that are
scripts, and modules of the page that are broken on purpose. To look at the page by hand:

    python -m tests.support.page.fake_service --port 8099
"""

from __future__ import annotations

import argparse
import gzip
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.page.simulated import STEP, Roads
from tests.support.paths import ROOT

PAGE = ROOT / "src" / "streamridge_service" / "page"
VENDOR = PAGE / "vendor" / "uplot"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass
class Stream:
    """A page that is subscribed to events."""

    sensors: list[str]
    last_id: str | None
    queue: Queue[bytes | None] = field(default_factory=Queue)

    def offer(self, kind: str, body: Any, text: bytes) -> None:
        """Send an event, except for sensors that the page did not ask for."""
        if kind != "sensor" or body["id"] in self.sensors:
            self.queue.put(text)


class FakeService:
    """A service on its own port, for use with `with`.

    Parameters
    ----------
    roads
        The simulated sensors.
    token
        The token that it needs, or None.
    patches
        Changes of the page's files, by name.
    beat
        Seconds between summaries, or None to send none.
    held
        Ends of paths whose responses are delayed until `release` is called.
    """

    def __init__(
        self,
        roads: Roads | None = None,
        *,
        token: str | None = None,
        patches: dict[str, Callable[[str], str]] | None = None,
        beat: float | None = None,
        held: tuple[str, ...] = (),
        port: int = 0,
    ) -> None:
        self.roads = Roads() if roads is None else roads
        self.token, self.patches, self.beat = token, patches or {}, beat
        self.held, self._released = held, threading.Event()
        self.streams: list[Stream] = []
        self.asked: list[str] = []
        self.sent_bytes = 0
        self._past: list[tuple[str, Any, bytes]] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._server.serve_forever, args=(0.05,))]
        if beat is not None:
            self._threads.append(threading.Thread(target=self._beat))

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> FakeService:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.release()
        self.cut_streams()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()

    def push(self, kind: str, body: Any) -> None:
        """Send an event to all subscribed pages."""
        with self._lock:
            number = len(self._past) + 1
            text = f"id: {number}\nevent: {kind}\ndata: {json.dumps(body)}\n\n".encode()
            self._past.append((kind, body, text))
            for stream in self.streams:
                stream.offer(kind, body, text)

    def join(self, stream: Stream) -> None:
        """Subscribe a page; a page that reconnects gets the missed events."""
        with self._lock:
            for event in self._past[int(stream.last_id) :] if stream.last_id else []:
                stream.offer(*event)
            self.streams.append(stream)

    def hold(self, name: str) -> None:
        """Delay a response if its path is held."""
        if name in self.held:
            self._released.wait()

    def release(self) -> None:
        """Send the delayed responses."""
        self._released.set()

    def push_summary(self) -> None:
        """Send the state of the service."""
        self.push("summary", self.roads.summary())

    def cut_streams(self) -> None:
        """Cut all event streams."""
        with self._lock:
            for stream in self.streams:
                stream.queue.put(None)

    def move_on(self) -> None:
        """Advance the time by a step: each active sensor gets a new reading."""
        self.roads.newest += STEP
        self.push_summary()
        for sensor in self.roads.sensors:
            self.push("sensor", self.roads.item(sensor))

    def _beat(self) -> None:
        while not self._stopped.wait(self.beat):
            self.push_summary()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: FakeService

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.service.asked.append(self.path)
        self.service.hold(parts.path.rpartition("/")[2])
        if parts.path == "/" or parts.path.startswith("/page/"):
            self._send_file(parts.path.removeprefix("/page/").strip("/") or "index.html")
        elif not self._allowed():
            self._send(401, _problem(401, "sr-no-token", "There is no valid token."))
        elif parts.path == "/v1/stream":
            self._stream(query)
        else:
            self._send(*self._answer(parts.path.split("/")[2:], query))

    def _allowed(self) -> bool:
        token = self.service.token
        return token is None or self.headers.get("Authorization") == f"Bearer {token}"

    def _send_file(self, name: str) -> None:
        file = next((file for file in (PAGE / name, VENDOR / name) if file.is_file()), None)
        if "/" in name or file is None:
            self._send(404, _problem(404, "sr-not-found", "There is no such page."))
            return
        text = file.read_text()
        if name in self.service.patches:
            text = self.service.patches[name](text)
        kind = {"Content-Type": TYPES[file.suffix], "Content-Encoding": "gzip"}
        self._send_bytes(200, gzip.compress(text.encode()), kind)

    def _send(self, status: int, body: Any) -> None:
        kind = "application/json" if status == 200 else "application/problem+json"
        self._send_bytes(status, json.dumps(body).encode(), {"Content-Type": kind})

    def _send_bytes(self, status: int, body: bytes, kind: dict[str, str]) -> None:
        self.service.sent_bytes += len(body)
        self.send_response(status)
        for name, value in {**HEADERS, **kind, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        with suppress(ConnectionError):  # the page has cancelled the request
            self.end_headers()
            self.wfile.write(body)

    def _answer(self, path: list[str], query: dict[str, str]) -> tuple[int, Any]:
        roads = self.service.roads
        start, limit = int(query.get("cursor", 0)), int(query.get("limit", 100))
        state = query.get("state", "")
        match path:
            case ["summary"]:
                return 200, roads.summary()
            case ["sensors"]:
                return 200, roads.listed(state, query.get("q", ""), start, limit)
            case ["events"]:
                return 200, {"items": roads.events}
            case ["gaps"]:
                first = _seconds(query["from"])
                hours = round((_seconds(query["to"]) - first) / 3600)
                return 200, roads.gaps(state, start, limit, first, hours)
            case ["sensors", name, *rest]:
                return self._answer_sensor(unquote(name), rest, query)
        return 404, _problem(404, "sr-not-found", "There is no such page.")

    def _answer_sensor(self, name: str, rest: list[str], query: dict[str, str]) -> tuple[int, Any]:
        roads = self.service.roads
        sensor = roads.named(name)
        if sensor is None:
            return 404, _problem(404, "sr-unknown-sensor", f"There is no sensor {name}.")
        match rest:
            case []:
                return 200, roads.detail(sensor)
            case ["history"]:
                return 200, roads.history(sensor, _seconds(query["from"]), _seconds(query["to"]))
            case ["forecasts"]:
                return 200, roads.forecasts(sensor)
            case ["tuning"]:
                return 200, roads.tuning(sensor)
        return 404, _problem(404, "sr-not-found", "There is no such page.")

    def _stream(self, query: dict[str, str]) -> None:
        stream = Stream(query.get("sensors", "").split(","), self.headers.get("Last-Event-ID"))
        self.send_response(200)
        for name, value in {**HEADERS, "Content-Type": "text/event-stream"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.service.join(stream)
        self.close_connection = True
        try:
            self.wfile.write(b": welcome\n\n")
            while (text := _next(stream.queue)) is not None:
                self.wfile.write(text)
        except OSError:
            pass  # The page was closed.
        finally:
            self.service.streams.remove(stream)


def _next(queue: Queue[bytes | None]) -> bytes | None:
    """Return the next event; a regular comment detects closed connections."""
    try:
        return queue.get(timeout=1.0)
    except Empty:
        return b": still here\n\n"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _problem(status: int, code: str, detail: str) -> dict[str, Any]:
    return {"status": status, "code": code, "title": detail, "detail": detail}


def main() -> None:
    """Serve the page with simulated sensors until the process is stopped."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--every", type=float, default=20.0, help="seconds a step takes")
    options = parser.parse_args()
    with FakeService(beat=2.0, port=options.port) as service:
        print(f"Open {service.url}")  # noqa: T201
        while True:
            time.sleep(options.every)
            service.move_on()


if __name__ == "__main__":
    main()
