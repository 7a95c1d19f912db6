"""A small service that answers as the real one does, out of simulated sensors.

It brings about what is hard to bring about in the real service: silence, refusals, labels that are
scripts, and modules of the page that are broken on purpose. To look at the page by hand:

    python -m tests.service.page.fake_service --port 8099
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.service.page.simulated import STEP, Roads

PAGE = Path(__file__).parents[3] / "src" / "streamridge" / "service" / "page"
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
    """A page that listens."""

    sensors: list[str]
    last_id: str | None
    queue: Queue[bytes | None] = field(default_factory=Queue)


class FakeService:
    """A service on a port of its own, to be used by `with`.

    Parameters
    ----------
    roads
        What it knows.
    token
        The token it asks for, or None.
    patches
        Changes of the page's files, by name.
    beat
        Seconds between summaries that it sends by itself, or None to be silent.
    slow
        Seconds that an answer takes, by the last part of its path.
    """

    def __init__(
        self,
        roads: Roads | None = None,
        *,
        token: str | None = None,
        patches: dict[str, Callable[[str], str]] | None = None,
        beat: float | None = None,
        slow: dict[str, float] | None = None,
        port: int = 0,
    ) -> None:
        self.roads = Roads() if roads is None else roads
        self.token, self.patches, self.beat = token, patches or {}, beat
        self.slow = slow or {}
        self.streams: list[Stream] = []
        self.asked: list[str] = []
        self.sent_bytes = 0
        self._last_id = 0
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
        self.cut_streams()
        self._server.shutdown()
        for thread in self._threads:
            thread.join()
        self._server.server_close()

    def push(self, kind: str, body: Any) -> None:
        """Send an event to all who listen to it."""
        with self._lock:
            self._last_id += 1
            text = f"id: {self._last_id}\nevent: {kind}\ndata: {json.dumps(body)}\n\n".encode()
            for stream in self.streams:
                if kind != "sensor" or body["id"] in stream.sensors:
                    stream.queue.put(text)

    def push_summary(self) -> None:
        """Send the line of truth."""
        self.push("summary", self.roads.summary())

    def cut_streams(self) -> None:
        """Break all streams off."""
        with self._lock:
            for stream in self.streams:
                stream.queue.put(None)

    def move_on(self) -> None:
        """Let a step pass: each sensor that reports has a new reading."""
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
        time.sleep(self.service.slow.get(parts.path.rpartition("/")[2], 0.0))
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
        file = PAGE / name
        if "/" in name or not file.is_file():
            self._send(404, _problem(404, "sr-not-found", "There is no such page."))
            return
        text = file.read_text()
        if name in self.service.patches:
            text = self.service.patches[name](text)
        self._send_bytes(200, text.encode(), TYPES[file.suffix])

    def _send(self, status: int, body: Any) -> None:
        kind = "application/json" if status == 200 else "application/problem+json"
        self._send_bytes(status, json.dumps(body).encode(), kind)

    def _send_bytes(self, status: int, body: bytes, kind: str) -> None:
        self.service.sent_bytes += len(body)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        with suppress(ConnectionError):  # the page does not want it any more
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
        self.service.streams.append(stream)
        self.close_connection = True
        try:
            self.wfile.write(b": welcome\n\n")
            while (text := _next(stream.queue)) is not None:
                self.wfile.write(text)
        except OSError:
            pass  # The page has gone.
        finally:
            self.service.streams.remove(stream)


def _next(queue: Queue[bytes | None]) -> bytes | None:
    """Return what to send next: a comment now and then finds out whether anybody listens."""
    try:
        return queue.get(timeout=1.0)
    except Empty:
        return b": still here\n\n"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _problem(status: int, code: str, detail: str) -> dict[str, Any]:
    return {"status": status, "code": code, "title": detail, "detail": detail}


def main() -> None:
    """Serve the page out of simulated sensors until the process is stopped."""
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
