"""What every request passes on its way in, and every answer on its way out.

It stands before the routes, so that it holds for what no route answers as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from secrets import token_hex
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog
from litestar import Litestar
from litestar.types import HTTPScope, Message, Receive, Send
from structlog.contextvars import bound_contextvars

from streamridge.service.bodies.fields import brief
from streamridge.service.problems import Problem
from streamridge.service.settings import LOCAL, ServiceSettings
from streamridge.service.web.answers import PROBLEM, internal, problem_headers
from streamridge.service.web.context import Traffic

# On every answer, whatever it is. Scripts, styles and data come from here alone; nothing may show
# a page of this service within its own, take an answer for another type, or learn where one was.
HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
SAFE = ("GET", "HEAD", "OPTIONS")
ANYWHERE = ("0.0.0.0", "::")
# Never ends, so that it cannot be asked for without its body.
ENDLESS = "/v1/stream"

log = structlog.get_logger("streamridge.service.web")


class Door:
    """The application behind its door.

    Parameters
    ----------
    app
        The routes.
    settings
        By which names the service may be called.
    traffic
        Where answers are counted.
    """

    def __init__(self, app: Litestar, settings: ServiceSettings, traffic: Traffic) -> None:
        self.app, self._traffic = app, traffic
        self._names = {*LOCAL, settings.host.lower(), *map(str.lower, settings.allowed_hosts)}
        self._any_address = settings.host in ANYWHERE

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        visit = Visit(scope, send)
        with bound_contextvars(request_id=visit.number):
            try:
                await self._answered(scope, receive, visit)
            finally:
                self._count(visit)

    async def _answered(self, scope: HTTPScope, receive: Receive, visit: Visit) -> None:
        try:
            self._require_own(scope)
            await self.app(_as_get(scope), receive, visit.send)
        except Problem as problem:
            await _refuse(problem, visit.send)
        except Exception as error:
            if visit.status:  # the answer has begun: all that is left is to break it off
                log.error("an answer broke off", exc_info=error)
                raise
            await _refuse(internal(visit.number, error), visit.send)

    def _require_own(self, scope: HTTPScope) -> None:
        """Refuse what another site lets a browser send, under its name or under ours."""
        host = _header(scope, b"host")
        if not self._is_own(host):
            raise Problem("sr-bad-host", f"This service is not called {brief(host)}.")
        if scope["method"] in SAFE:
            return
        origin = _header(scope, b"origin")
        foreign = origin and not self._is_own(urlsplit(origin).netloc)
        if foreign or _header(scope, b"sec-fetch-site") == "cross-site":
            raise Problem("sr-forbidden", "Another site must not change anything here.")

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self._names:
            return True
        # A name can be made to point here by others; an address cannot.
        return self._any_address and _is_address(name)

    def _count(self, visit: Visit) -> None:
        seconds = monotonic() - visit.since
        self._traffic.answers[f"{visit.status // 100}xx"] += 1
        self._traffic.seconds += seconds
        tell = log.info if visit.status >= 400 else log.debug
        tell(
            "answered",
            method=visit.method,
            path=visit.path,
            status=visit.status,
            seconds=round(seconds, 4),
        )


class Visit:
    """One request and its answer.

    Parameters
    ----------
    scope, send
        As the server gave them.
    """

    def __init__(self, scope: HTTPScope, send: Send) -> None:
        self._send = send
        self.number, self.since, self.status = token_hex(8), monotonic(), 0
        self.method, self.path = str(scope.get("method")), scope["path"][:200]
        scope.setdefault("state", {})["request_id"] = self.number
        given = {**HEADERS, "x-request-id": self.number}
        self._headers = [(name.encode(), value.encode()) for name, value in given.items()]

    async def send(self, message: Message) -> None:
        """Send a part of the answer; its beginning with the headers that all have."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*self._lasting(message["headers"]), *self._headers]
        await self._send(message)

    def _lasting(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer; unless it says otherwise, nobody keeps a copy."""
        found = list(headers)
        if not any(name.lower() == b"cache-control" for name, _ in found):
            found.append((b"cache-control", b"no-store"))
        return found


def _as_get(scope: HTTPScope) -> HTTPScope:
    """Return a request for the headers alone as one for all; the server leaves the body out."""
    if scope["method"] == "HEAD" and scope["path"] != ENDLESS:
        return {**scope, "method": "GET"}
    return scope


def _header(scope: HTTPScope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        ip_address(name)
        return True
    return False


async def _refuse(problem: Problem, send: Send) -> None:
    body = msgspec.json.encode(problem.members())
    headers = {
        **problem_headers(problem),
        "content-type": PROBLEM,
        "content-length": str(len(body)),
    }
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": False})
