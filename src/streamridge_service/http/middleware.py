"""Checks and headers for every request and response, even where no route matches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from ipaddress import ip_address
from secrets import token_hex
from time import monotonic
from typing import Any

import structlog
from litestar import Litestar, Request
from litestar.types import HTTPScope, Message, Receive, Send
from structlog.contextvars import bound_contextvars

from streamridge_service.bodies.fields import brief
from streamridge_service.http.connections import Connections
from streamridge_service.http.responses import HEADERS, internal_problem, problem_response
from streamridge_service.http.routing import Traffic
from streamridge_service.problems import Problem
from streamridge_service.settings import LOCAL, ServiceSettings

SAFE = ("GET", "HEAD", "OPTIONS")
ANYWHERE = ("0.0.0.0", "::")
# Health checks, which never wait for other requests.
URGENT = ("/livez", "/readyz")
# This response never ends, so HEAD does not apply to it.
ENDLESS = "/v1/stream"

log = structlog.get_logger("streamridge_service.http")


class Middleware:
    """The application behind its checks."""

    def __init__(
        self, app: Litestar, settings: ServiceSettings, traffic: Traffic, connections: Connections
    ) -> None:
        self.app, self._traffic, self.connections = app, traffic, connections
        self._names = {*LOCAL, settings.host.lower(), *map(str.lower, settings.allowed_hosts)}
        self._any_address = settings.host in ANYWHERE
        self._turn = asyncio.Lock()  # requests get it in the order in which they ask

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, send)
        with bound_contextvars(request_id=exchange.id):
            try:
                if exchange.method in SAFE and exchange.path not in URGENT:
                    await self._await_turn()
                await self._respond(scope, receive, exchange)
            finally:
                self._count(exchange)

    async def _await_turn(self) -> None:
        """Wait until no other request that reads begins in this round of the event loop.

        Many requests at once thus delay readings and health checks by one request at most.
        """
        async with self._turn:
            await asyncio.sleep(0)

    async def _respond(self, scope: HTTPScope, receive: Receive, exchange: Exchange) -> None:
        try:
            self._require_own_host(scope)
            await self.app(_as_get(scope), receive, exchange.send)
            return
        except Problem as error:
            problem = error
        except Exception as error:
            if exchange.status:  # the response has begun and can only be cut off
                log.error("a response was cut off", exc_info=error)
                raise
            problem = internal_problem(exchange.id, error)
        response = problem_response(problem).to_asgi_response(None, Request(scope))
        await response(scope, receive, exchange.send)

    def _require_own_host(self, scope: HTTPScope) -> None:
        """Refuse requests for other hosts, and changes that a page of another origin requests."""
        host = _header(scope, b"host")
        if not self._is_own(host):
            raise Problem("sr-bad-host", f"{brief(host)} is not a host name of this service.")
        if scope["method"] not in SAFE and _is_cross_origin(scope, host):
            raise Problem("sr-cross-site", "A page of another origin must not change anything.")

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self._names:
            return True
        # Anyone can point a name here, but not an address.
        return self._any_address and _is_address(name)

    def _count(self, exchange: Exchange) -> None:
        seconds = monotonic() - exchange.started
        self._traffic.responses[f"{exchange.status // 100}xx"] += 1
        self._traffic.seconds += seconds
        write = log.info if exchange.status >= 400 else log.debug
        write(
            "answered",
            method=exchange.method,
            path=exchange.path,
            status=exchange.status,
            seconds=round(seconds, 4),
        )


class Exchange:
    """One request and its response."""

    def __init__(self, scope: HTTPScope, send: Send) -> None:
        self._send = send
        self.id, self.started, self.status = token_hex(8), monotonic(), 0
        self.method, self.path = str(scope.get("method")), scope["path"][:200]
        scope.setdefault("state", {})["request_id"] = self.id
        headers = {**HEADERS, "x-request-id": self.id}
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def send(self, message: Message) -> None:
        """Send a part of the response; its start gets the common headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*_with_cache_control(message["headers"]), *self._headers]
        await self._send(message)


def _with_cache_control(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return headers that forbid caching, unless they already say something about it."""
    found = list(headers)
    if not any(name.lower() == b"cache-control" for name, _ in found):
        found.append((b"cache-control", b"no-store"))
    return found


def _as_get(scope: HTTPScope) -> HTTPScope:
    """Return a HEAD request as a GET request; the server leaves the body out."""
    if scope["method"] == "HEAD" and scope["path"] != ENDLESS:
        return {**scope, "method": "GET"}
    return scope


def _header(scope: HTTPScope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _is_cross_origin(scope: HTTPScope, host: str) -> bool:
    """Return whether a page of another origin has made a browser send a request.

    Browsers state this in Sec-Fetch-Site, or at least name the page's origin. Programs send neither
    header. A page on another port of the same host belongs to another origin.
    """
    site, origin = _header(scope, b"sec-fetch-site"), _header(scope, b"origin")
    if site:
        return site not in ("same-origin", "none")
    return bool(origin) and _authority(origin) != _authority(f"{scope['scheme']}://{host}")


def _authority(url: str) -> str:
    """Return host and port of a URL, in lower case and without a default port.

    Examples
    --------
    >>> _authority("https://Roads.example.org:443"), _authority("http://[::1]:8321")
    ('roads.example.org', '[::1]:8321')
    """
    scheme, _, rest = url.lower().partition("://")
    return rest.removesuffix({"http": ":80", "https": ":443"}.get(scheme, ":none"))


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
