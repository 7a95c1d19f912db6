"""Limits of connections: their number, their heads, and how fast clients send and read."""

import resource
from contextlib import ExitStack

import pytest

from streamridge_service.http import connections as limits
from streamridge_service.http.app import connections_of
from streamridge_service.http.connections import MAX_HEAD, MAX_HEADERS, default_limit
from streamridge_service.settings import settings_of
from tests.support.service.live_server import parsed, raw
from tests.support.service.small_server import HEAD, SmallServer, is_closed
from tests.support.waiting import wait_until

PART = HEAD % b"livez" + b"X-A: "
WHOLE = HEAD % b"livez" + b"\r\n"


@pytest.fixture
def small():
    with SmallServer() as server:
        yield server


class TestHeads:
    @pytest.mark.parametrize(
        "head",
        [
            PART + b"a" * MAX_HEAD,
            b"GET /" + b"a" * MAX_HEAD,
            HEAD % b"livez" + b"a:b\r\n" * MAX_HEADERS + b"\r\n",
        ],
        ids=["long header", "long path", "many headers"],
    )
    def test_a_large_head_is_refused(self, live, head, counted):
        counted("B12", 3)

        status, headers, body = raw(live.port, head)

        assert (status, b"sr-large-head" in body) == (431, True)
        assert headers["content-type"] == "application/problem+json"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["connection"] == "close"

    def test_a_head_just_below_the_limit_is_answered(self, live):
        head = PART + b"a" * (MAX_HEAD - len(PART) - 4) + b"\r\n\r\n"

        assert raw(live.port, head)[0] == 200

    def test_a_head_in_many_pieces_is_answered(self, small):
        with small.connect() as connection:
            for byte in WHOLE:
                connection.sendall(bytes([byte]))

            assert parsed(connection)[0] == 200

    def test_a_body_is_not_part_of_the_head(self, live):
        body = b" " * (3 * MAX_HEAD) + b"[]"
        head = (
            b"POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )

        answer = raw(live.port, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)

        assert answer[0] == 200

    def test_incomplete_heads_share_a_limit(self, small, monkeypatch):
        monkeypatch.setattr(limits, "MAX_ALL_HEADS", 3 * 10_000)
        with ExitStack() as stack:
            several = [stack.enter_context(small.connect()) for _ in range(4)]
            for i, each in enumerate(several):
                each.sendall(PART + b"a" * 9_000)
                wait_until(lambda n=i: small.connections.head_bytes >= 9_000 * min(n + 1, 3), "it")

            status, _, body = parsed(several[-1])

            assert (status, b"sr-busy" in body) == (503, True)
            assert small.ask() == 200
        wait_until(lambda: small.connections.head_bytes == 0, "the end of all heads")

    def test_many_requests_at_once_close_the_connection(self, small):
        with small.connect(HEAD % b"wait" + b"\r\n" + WHOLE * 50) as connection:
            assert is_closed(connection)
        assert small.ask() == 200

    def test_requests_that_follow_at_once_are_answered_in_order(self, small):
        with small.connect(WHOLE * 10) as connection:
            file = connection.makefile("rb")
            answers = [read_answer(file) for _ in range(10)]

        assert answers == [200] * 10


def read_answer(file):
    """Read one response in chunks; return its status."""
    status = int(file.readline().split()[1])
    while file.readline().strip():
        pass
    while size := int(file.readline(), 16):
        file.read(size + 2)
    file.readline()
    return status


class TestTime:
    def test_a_slow_head_is_refused(self, small, monkeypatch, counted):
        counted("B12", 1)
        monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.1)
        with small.connect(PART) as connection:
            status, _, body = parsed(connection)

        assert (status, b"sr-slow-head" in body) == (408, True)

    def test_a_slow_second_head_is_refused(self, small, monkeypatch):
        monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.1)
        with small.connect(WHOLE) as connection:
            file = connection.makefile("rb")
            assert read_answer(file) == 200
            connection.sendall(PART)

            assert int(file.readline().split()[1]) == 408

    def test_a_connection_without_a_request_is_closed(self, small, monkeypatch):
        monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.1)
        with small.connect() as connection:
            assert is_closed(connection)

    def test_a_request_in_progress_has_no_limit_of_time(self, small, monkeypatch):
        monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.05)
        with small.connect(HEAD % b"wait" + b"\r\n") as connection:
            small.begun.acquire()
            with small.connect() as idle:
                assert is_closed(idle)  # the limit has passed
            small.release.set()

            assert parsed(connection)[0] == 200

    def test_a_client_that_does_not_read_is_closed(self, small, monkeypatch, counted):
        counted("D4", 1)
        monkeypatch.setattr(limits, "READ_TIMEOUT", 0.1)
        with small.connect(HEAD % b"large" + b"\r\n"):
            wait_until(lambda: len(small.connections) == 1, "the connection")
            wait_until(lambda: len(small.connections) == 0, "its end")

    def test_of_many_clients_that_do_not_read_the_first_is_closed(self, small, monkeypatch):
        monkeypatch.setattr(limits, "MAX_UNREAD", 2)
        with ExitStack() as stack:
            for count in (1, 2, 2, 2):
                stack.enter_context(small.connect(HEAD % b"large" + b"\r\n"))
                wait_until(lambda n=count: len(small.connections._unread) == n, "a slow client")

            wait_until(lambda: small.connections.closed == 2, "two closed connections")


class TestNumber:
    def test_idle_connections_make_room_for_a_new_one(self, counted):
        counted("D4", 20)
        with SmallServer(most=4) as small, ExitStack() as stack:
            idle = [stack.enter_context(small.connect(PART)) for _ in range(20)]
            wait_until(lambda: small.connections.closed >= 16, "closed connections")

            assert small.ask() == 200
            assert all(map(is_closed, idle[:16]))
            assert small.connections.closed == 17

    def test_a_connection_with_a_request_is_not_closed(self):
        with SmallServer(most=2) as small, ExitStack() as stack:
            busy = [stack.enter_context(small.connect(HEAD % b"wait" + b"\r\n")) for _ in range(2)]
            for _ in busy:
                small.begun.acquire()

            with small.connect(WHOLE) as refused:
                status, headers, body = parsed(refused)
            small.release.set()

            assert (status, b"sr-too-many-connections" in body) == (503, True)
            assert int(headers["retry-after"]) > 0
            assert [parsed(each)[0] for each in busy] == [200, 200]

    def test_one_address_cannot_take_the_place_of_others(self):
        with SmallServer(most=4, most_of_one=2) as small, ExitStack() as stack:
            other = stack.enter_context(small.connect(HEAD % b"wait", "127.0.0.2"))
            wait_until(lambda: len(small.connections) == 1, "the other connection")
            many = [stack.enter_context(small.connect(PART)) for _ in range(10)]
            assert all(map(is_closed, many[:8]))

            other.sendall(b"\r\n\r\n")
            small.release.set()

            assert parsed(other)[0] == 200
            assert len(small.connections) <= 3

    def test_a_proxy_may_open_as_many_connections_as_all(self):
        proxies = ("127.0.0.0/30",)
        with SmallServer(most=6, most_of_one=2, proxies=proxies) as small, ExitStack() as stack:
            for _ in range(6):
                stack.enter_context(small.connect(PART))
            wait_until(lambda: len(small.connections) == 6, "all connections")

            assert small.connections.closed == 0

    def test_the_default_leaves_files_for_the_database(self, tmp_path, monkeypatch):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 300))
        usual = connections_of(settings_of(database=str(tmp_path / "a.db")))
        wished = connections_of(settings_of(database=str(tmp_path / "a.db"), max_connections=5000))

        assert usual.most == wished.most == default_limit(300) == 140
        assert default_limit(resource.RLIM_INFINITY) == default_limit(10**6) == 2048
