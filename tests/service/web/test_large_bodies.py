"""Bodies that are giant, nested, packed or slow: refused early, in little memory."""

import gzip
import socket
import time

import pytest
import zstandard

from tests.service.web.live import parsed, process

MOST = 64_000_000
PATCH = "import streamridge.service.web.receiving as r; r.PATIENCE, r.LEAST = 1.0, 1000"
CHUNK = b"[" + b" " * 65_534 + b"\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Give a service in a process of its own, which loses patience after a second."""
    with process(tmp_path_factory.mktemp("large") / "a.db", patches=[PATCH]) as served:
        send(served, b"[]", "application/json")  # what is made once counts for none
        yield served


@pytest.fixture
def frugal(served):
    """Let the memory that a test takes be at most 64 MB."""
    served.forget_peak()
    before = served.memory("VmRSS")
    yield served
    assert served.memory("VmHWM") - before < 64_000_000


def connected(served):
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


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
def test_64_mb_with_their_length_are_refused_before_they_come(frugal, path, counted):
    counted("B12", 2)
    with connected(frugal) as connection:
        connection.sendall(head(path, "application/json", f"Content-Length: {MOST}"))

        status, _, body = parsed(connection)

    assert status == 413
    assert b"sr-too-large" in body


def test_64_mb_without_their_length_are_refused_while_they_come(frugal, counted):
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
def test_100_000_brackets_cannot_be_read(frugal, kind, opening, counted):
    counted("B12", 6)

    status, _ = send(frugal, opening * 100_000, kind)

    assert status in (400, 422)


@pytest.mark.parametrize("route", ["set", "freeze", "exclude"])
def test_nor_can_they_where_something_is_asked_for(frugal, route, counted):
    counted("B12", 3)
    path = f"/v1/sensors/none/{route}"

    statuses = {
        send(frugal, body, "application/json", path=path)[0]
        for body in (b"[" * 60_000, b'{"names":' * 7000, b'{"values":{"a":' * 4000, b"\xff")
    }

    assert statuses <= {400, 422}


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_bomb_of_1_gb_does_not_go_off(frugal, packing, counted):
    counted("B12", 2)
    pack = {"gzip": gzip.compress, "zstd": zstandard.compress}[packing]
    bomb = pack(bytes(25_000_000)) * 40

    status, body = send(frugal, bomb, "application/json", f"Content-Encoding: {packing}")

    assert (status, b"sr-too-large" in body) == (413, True)


@pytest.mark.parametrize("drip", [b"", b" "])
def test_a_body_that_stalls_or_drips_is_given_up(frugal, drip, counted):
    counted("B12", 2)
    with connected(frugal) as connection:
        connection.sendall(head("/v1/readings", "application/json", "Content-Length: 100000"))
        begun = time.monotonic()
        for _ in range(8):
            connection.sendall(drip)
            time.sleep(0.1)

        status, headers, body = parsed(connection)

    assert (status, b"sr-slow-body" in body) == (408, True)
    assert headers["connection"] == "close"
    assert time.monotonic() - begun < 5


def test_a_slow_body_that_goes_on_is_taken(served):
    body = b"[" + b" " * 3000 + b"]"
    with connected(served) as connection:
        size = f"Content-Length: {len(body)}"
        connection.sendall(head("/v1/readings", "application/json", size))
        for start in range(0, len(body), 500):
            connection.sendall(body[start : start + 500])
            time.sleep(0.25)

        status, _, _ = parsed(connection)

    assert status == 200


def test_so_many_large_bodies_are_at_hand_at_once(served, counted):
    counted("B12", 20)
    waiting = [connected(served) for _ in range(20)]
    try:
        for connection in waiting:
            size = "Content-Length: 1000000"
            connection.sendall(head("/v1/readings", "application/json", size) + b" " * 400_000)

        statuses = [parsed(connection)[0] for connection in waiting]
    finally:
        for connection in waiting:
            connection.close()

    assert statuses.count(503) == 4
    assert statuses.count(408) == 16


def test_a_client_that_leaves_in_the_middle_does_no_harm(served):
    for _ in range(5):
        with connected(served) as connection:
            connection.sendall(head("/v1/readings", "application/json", "Content-Length: 100"))

    assert send(served, b"[]", "application/json")[0] == 200
