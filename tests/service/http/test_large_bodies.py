"""Huge, nested, compressed and slow bodies are refused early and use little memory."""

import asyncio
import gzip
import select
import socket

import pytest
import zstandard

from streamridge_service.http import requests
from streamridge_service.problems import Problem
from tests.support.service.live_server import parsed, process
from tests.support.virtual_time import run_in_virtual_time
from tests.support.waiting import LIMIT, wait_until

MOST = 64_000_000
# The machine may be busy, although none of these bodies is meant to be slow.
PATCH = f"import streamridge_service.http.requests as r; r.TIMEOUT = {LIMIT}"
CHUNK = b"[" + b" " * 65_534 + b"\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a service in its own process, whose memory can be measured."""
    with process(tmp_path_factory.mktemp("large") / "a.db", patches=[PATCH]) as served:
        send(served, b"[]", "application/json")  # memory that is allocated once does not count
        yield served


@pytest.fixture
def frugal(served):
    """Require that a test uses at most 64 MB of memory."""
    served.forget_peak()
    before = served.memory("VmRSS")
    yield served
    assert served.memory("VmHWM") - before < 64_000_000


@pytest.fixture
def impatient(live, monkeypatch):
    """Return a service that refuses bodies slower than 1000 bytes in half a second."""
    monkeypatch.setattr(requests, "TIMEOUT", 0.5)
    monkeypatch.setattr(requests, "MIN_BYTES", 1000)
    return live


def connected(served):
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=LIMIT)


def head(path, content_type, *more):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {content_type}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def send(served, body, content_type, *more, path="/v1/readings"):
    """Send a body in one piece; return status and body of the answer."""
    with connected(served) as connection:
        size = f"Content-Length: {len(body)}"
        connection.sendall(head(path, content_type, size, *more) + body)
        status, _, answer = parsed(connection)
    return status, answer


@pytest.mark.parametrize("path", ["/v1/readings", "/api/v2/write"])
def test_64_mb_with_a_content_length_are_refused_before_they_are_sent(frugal, path, counted):
    counted("B12", 2)
    with connected(frugal) as connection:
        connection.sendall(head(path, "application/json", f"Content-Length: {MOST}"))

        status, _, body = parsed(connection)

    assert status == 413
    assert b"sr-too-large" in body


def test_64_mb_without_a_content_length_are_refused_while_they_are_sent(frugal, counted):
    counted("B12", 1)
    with connected(frugal) as connection:
        connection.sendall(head("/v1/readings", "application/json", "Transfer-Encoding: chunked"))
        for _ in range(MOST // len(CHUNK)):
            connection.sendall(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK))
        connection.sendall(b"0\r\n\r\n")

        status, _, body = parsed(connection)

    assert status == 413
    assert b"sr-too-large" in body


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"readings":['])
def test_100_000_nested_brackets_are_refused_as_readings(frugal, kind, opening, counted):
    counted("B12", 6)

    status, _ = send(frugal, opening * 100_000, kind)

    assert status in (400, 422)


@pytest.mark.parametrize("route", ["set", "freeze", "exclude"])
def test_100_000_nested_brackets_are_refused_as_a_declaration(frugal, route, counted):
    counted("B12", 3)
    path = f"/v1/sensors/none/{route}"

    statuses = {
        send(frugal, body, "application/json", path=path)[0]
        for body in (b"[" * 60_000, b'{"names":' * 7000, b'{"values":{"a":' * 4000, b"\xff")
    }

    assert statuses <= {400, 422}


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_compressed_body_of_1_gb_is_refused(frugal, packing, counted):
    counted("B12", 2)
    pack = {"gzip": gzip.compress, "zstd": zstandard.compress}[packing]
    bomb = pack(bytes(25_000_000)) * 40

    status, body = send(frugal, bomb, "application/json", f"Content-Encoding: {packing}")

    assert (status, b"sr-too-large" in body) == (413, True)


@pytest.mark.parametrize("drip", [b"", b" "])
def test_a_stalled_body_is_refused(impatient, drip, counted):
    counted("B12", 2)
    with connected(impatient) as connection:
        connection.sendall(head("/v1/readings", "application/json", "Content-Length: 100000"))
        while not answered([connection], pause=0.1):
            connection.sendall(drip)

        status, headers, body = parsed(connection)

    assert (status, b"sr-slow-body" in body) == (408, True)
    assert headers["connection"] == "close"


class SlowRequest:
    """A request whose body is sent in chunks, with a pause before each."""

    def __init__(self, pieces, size, pause):
        self.headers = {}
        self._left, self._size, self._pause = pieces, size, pause

    async def receive(self):
        await asyncio.sleep(self._pause)
        self._left -= 1
        piece = b" " * self._size
        return {"type": "http.request", "body": piece, "more_body": self._left > 0}


async def received(request):
    with requests.LargeBodies().body() as size:
        return await requests.body_of(request, size)


def test_a_slow_body_above_the_minimum_rate_is_stored():
    size = requests.MIN_BYTES // 5
    request = SlowRequest(pieces=100, size=size, pause=requests.TIMEOUT / 10)

    assert len(run_in_virtual_time(received(request))) == 100 * size


def test_a_body_below_the_minimum_rate_is_refused():
    size = requests.MIN_BYTES // 15
    request = SlowRequest(pieces=100, size=size, pause=requests.TIMEOUT / 10)

    with pytest.raises(Problem, match="15,000 bytes"):
        run_in_virtual_time(received(request))


def test_more_than_16_large_bodies_at_once_are_refused(served, counted):
    counted("B12", 20)
    waiting = [connected(served) for _ in range(20)]
    try:
        for connection in waiting:
            size = "Content-Length: 1000000"
            connection.sendall(head("/v1/readings", "application/json", size) + b" " * 400_000)

        refused = wait_until(lambda: found if len(found := answered(waiting)) >= 4 else None, "503")
        statuses = [parsed(connection)[0] for connection in refused]
        is_all = not answered([each for each in waiting if each not in refused], pause=0.2)
    finally:
        for connection in waiting:
            connection.close()

    assert (statuses, is_all) == ([503] * 4, True)


def answered(connections, pause=0.0):
    """Return the connections that have received something."""
    return select.select(connections, [], [], pause)[0]


def test_a_client_that_disconnects_early_leaves_no_large_body_behind(served):
    for _ in range(5):
        with connected(served) as connection:
            connection.sendall(head("/v1/readings", "application/json", "Content-Length: 100"))

    assert send(served, b"[]", "application/json")[0] == 200
