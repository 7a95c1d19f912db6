"""Limits of connections: their number, and the size and the time of what they send and read.

A connection waits while it has no complete request: at its start, and between two requests. When
there are too many connections, the connection that has waited longest is closed. A new client is
therefore always served, even if others hold many idle connections.
"""

from __future__ import annotations

import asyncio
import resource
from asyncio import TimerHandle
from collections import Counter
from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_network
from typing import Any

import httptools
import msgspec
import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from streamridge_service.http.responses import HEADERS, PROBLEM, problem_answer
from streamridge_service.problems import RETRY_AFTER, Problem

# Bytes and headers of the head of a request: its first line and its headers.
MAX_HEAD, MAX_HEADERS = 65_536, 100
# Bytes of all heads that are incomplete.
MAX_ALL_HEADS = 16_000_000
# Requests that one connection may send before the first of them is answered.
MAX_PIPELINED = 16
# Seconds within which a head must be complete, and a client must read a part of a response.
HEAD_TIMEOUT, READ_TIMEOUT = 10.0, 30.0
# Connections whose clients read more slowly than the service sends: each holds a buffer.
MAX_UNREAD = 128
# Seconds for which a refused client may go on sending, so that it can read the refusal.
LINGER = 1.0
# Open files that the database and the workers need, and connections if files allow it.
RESERVED_FILES, FEWEST, MOST = 160, 16, 2048

log = structlog.get_logger("streamridge_service.http")


def default_limit(open_files: int | None = None) -> int:
    """Return how many connections the number of open files allows.

    Examples
    --------
    >>> default_limit(1024), default_limit(100_000)
    (864, 2048)
    """
    if open_files is None:
        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if open_files == resource.RLIM_INFINITY:
        return MOST
    return min(max(open_files - RESERVED_FILES, FEWEST), MOST)


class Connections:
    """All open connections of a service. Only its event loop uses it.

    Parameters
    ----------
    most
        Connections at the same time.
    most_of_one
        Connections of one address at the same time.
    proxies
        Addresses and networks of proxies, to which the second limit does not apply.
    """

    def __init__(self, most: int, most_of_one: int, proxies: Iterable[str] = ()) -> None:
        self.most, self._most_of_one = most, most_of_one
        self._proxies = [ip_network(each, strict=False) for each in proxies]
        # In the order in which they began to wait.
        self._waiting: dict[LimitedProtocol, None] = {}
        self._waiting_of: dict[str, dict[LimitedProtocol, None]] = {}
        self._unread: dict[LimitedProtocol, None] = {}
        self._of: Counter[str] = Counter()
        self._open: set[LimitedProtocol] = set()
        self.head_bytes = 0
        self.closed = 0  # connections that were refused, or closed to make room for others

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: LimitedProtocol) -> bool:
        """Add a new connection, which waits; return False if there is no room for it."""
        address = connection.address
        is_limited = not self._is_proxy(address)
        has_room = (
            not is_limited
            or self._of[address] < self._most_of_one
            or self._close_first(self._waiting_of.get(address, {}))
        ) and (len(self._open) < self.most or self._close_first(self._waiting))
        if not has_room:
            self.closed += 1
            log.warning("a connection was refused", open=len(self._open), address=address)
            return False
        self._open.add(connection)
        self._of[address] += 1
        self.wait(connection)
        return True

    def wait(self, connection: LimitedProtocol) -> None:
        """Note that a connection waits for a request."""
        if connection in self._open:
            self._waiting[connection] = None
            self._waiting_of.setdefault(connection.address, {})[connection] = None

    def work(self, connection: LimitedProtocol) -> None:
        """Note that a connection has a request that is not answered yet."""
        self._waiting.pop(connection, None)
        of_address = self._waiting_of.get(connection.address, {})
        of_address.pop(connection, None)
        if not of_address:
            self._waiting_of.pop(connection.address, None)

    def remove(self, connection: LimitedProtocol) -> None:
        """Remove a connection that is closed."""
        if connection not in self._open:
            return
        self.work(connection)
        self.has_read(connection)
        self._open.discard(connection)
        self._of[connection.address] -= 1
        if not self._of[connection.address]:
            del self._of[connection.address]

    def is_slow(self, connection: LimitedProtocol) -> None:
        """Note that a client reads too slowly; the slowest of too many is closed."""
        if connection in self._open:
            self._unread[connection] = None
        if len(self._unread) > MAX_UNREAD:
            self._close_first(self._unread)

    def has_read(self, connection: LimitedProtocol) -> None:
        """Note that a client has read what it was sent."""
        self._unread.pop(connection, None)

    def _close_first(self, connections: dict[LimitedProtocol, None]) -> bool:
        """Close the first of some connections; return False if there is none."""
        first = next(iter(connections), None)
        if first is None:
            return False
        self.closed += 1
        log.warning("a connection was closed to make room", address=first.address)
        self.remove(first)
        first.transport.abort()
        return True

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)


class LimitedProtocol(HttpToolsProtocol):
    """One connection, which keeps to the limits."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        self.address = ""
        self._head_size = 0  # bytes of the incomplete head
        self._in_body = False
        self._completed = 0  # requests that were received
        self._has_begun = False  # whether a part of a head was received
        self._is_refused = False
        self._problem: Problem | None = None
        self._timer: TimerHandle | None = None
        self._read_timer: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; refuse the connection if there are too many."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "unknown"
        if self._connections.add(self):
            self._start_timer()
            return
        self._write_problem(Problem("sr-too-many-connections", "There are too many connections."))
        self._is_refused = True
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what the connection holds."""
        self._stop_timer()
        self._stop_read_timer()
        self._set_head_size(0)
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; a head that is too large is refused."""
        at = 0
        while at < len(data) and not self._is_refused and not self.transport.is_closing():
            # A part ends where the head would be too large.
            part = data[at : at + MAX_HEAD - self._head_size]
            at += len(part)
            before = self._completed
            super().data_received(part)
            if self._in_body or self._completed > before:
                self._set_head_size(0)
            else:
                self._set_head_size(self._head_size + len(part))
        if self._timer is None and self._is_idle:
            self._start_timer()

    def on_message_begin(self) -> None:
        """Note that a head has begun."""
        super().on_message_begin()
        self._has_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, unless there are too many."""
        if len(self.headers) >= MAX_HEADERS:
            text = f"A request must have at most {MAX_HEADERS} headers."
            self._problem = Problem("sr-large-head", text)
            raise httptools.HttpParserError(text)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start to answer a request."""
        if len(self.pipeline) >= MAX_PIPELINED:
            text = f"At most {MAX_PIPELINED} requests may wait on one connection."
            self._problem = Problem("sr-busy", text)
            raise httptools.HttpParserError(text)
        self._in_body, self._has_begun = True, False
        self._stop_timer()
        self._connections.work(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that a request was received."""
        self._in_body = False
        self._completed += 1
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or answer one that was received already."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and not self.transport.is_closing():
            self._connections.wait(self)
            if self._has_begun:
                self._start_timer()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed, or breaks a limit."""
        self._refuse(self._problem or Problem("sr-unreadable", msg))

    def pause_writing(self) -> None:
        """Note that the client reads slowly: the buffer for it is full."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_TIMEOUT, self.transport.abort)
        self._connections.is_slow(self)

    def resume_writing(self) -> None:
        """Note that the client has read most of the buffer."""
        super().resume_writing()
        self._stop_read_timer()
        self._connections.has_read(self)

    @property
    def _is_idle(self) -> bool:
        """Return whether the connection has no request that is not answered."""
        return self.cycle is None or self.cycle.response_complete

    def _set_head_size(self, size: int) -> None:
        self._connections.head_bytes += size - self._head_size
        self._head_size = size
        if size >= MAX_HEAD:
            text = f"The first line and the headers must have fewer than {MAX_HEAD:,} bytes."
            self._refuse(Problem("sr-large-head", text))
        elif size and self._connections.head_bytes > MAX_ALL_HEADS:
            self._refuse(Problem("sr-busy", "Too many incomplete requests are being received."))

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEAD_TIMEOUT, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _time_out(self) -> None:
        """Close a connection that has sent no complete head in time."""
        self._timer = None
        if self._has_begun:
            text = f"The headers were not complete within {HEAD_TIMEOUT:g} seconds."
            self._refuse(Problem("sr-slow-head", text))
        else:
            self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        """Answer with a problem, and close; the client has a moment to read the answer."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        self._stop_timer()
        if not self._is_idle:  # another response is being sent
            self.transport.abort()
            return
        self._write_problem(problem)
        self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER, self.transport.abort)

    def _write_problem(self, problem: Problem) -> None:
        body = msgspec.json.encode(problem_answer(problem))
        headers = {
            **HEADERS,
            "content-type": PROBLEM,
            "content-length": str(len(body)),
            "connection": "close",
        }
        if problem.status in RETRY_AFTER:
            headers["retry-after"] = str(RETRY_AFTER[problem.status])
        lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
        lines += [b"%s: %s\r\n" % pair for pair in self.server_state.default_headers]
        self.transport.write(b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", body]))


def protocol_of(connections: Connections) -> Callable[..., LimitedProtocol]:
    """Return the function with which the server makes the protocol of a connection."""
    return lambda **given: LimitedProtocol(connections, **given)
