"""Attacks on a service in its own process: it stays small, and it answers meanwhile.

The mechanisms are tested without load in test_connections.py and test_readers.py.
"""

import json
import resource
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from tests.support.service.live_server import START, process, stamp
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.slow

MB = 1_000_000
MAX_GROWTH = 64 * MB
# Seconds: one on an idle machine.
MAX_ANSWER = 20.0
MAX_LINES = 200
# The text of an endless header.
CHUNK = b"a" * 65_536


class Prober:
    """Asks for /livez all the time; notes the statuses and the longest answer."""

    def __init__(self, url):
        self._url, self._done = url, threading.Event()
        self.longest, self.statuses = 0.0, set()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._done.is_set():
            begun = time.monotonic()
            # A new connection each time, as a client has that comes during the attack.
            try:
                self.statuses.add(httpx.get(f"{self._url}/livez", timeout=LIMIT).status_code)
            except httpx.HTTPError as error:
                self.statuses.add(repr(error))
            self.longest = max(self.longest, time.monotonic() - begun)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


@contextmanager
def attacked(database, **changes):
    """Serve; require little memory, quick answers and a short log during the block."""
    with process(database, **changes) as served:
        httpx.get(f"{served.url}/livez", timeout=LIMIT)
        before = served.memory("VmRSS")
        served.forget_peak()
        with Prober(served.url) as prober:
            yield served
        growth = served.memory("VmHWM") - before
        code, log = served.end()
    assert growth <= MAX_GROWTH, f"{growth / MB:.0f} MB"
    assert prober.statuses == {200}
    assert prober.longest <= MAX_ANSWER
    assert code == 0
    assert len([json.loads(line) for line in log.splitlines()]) <= MAX_LINES


def connect(served):
    host, _, port = served.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), LIMIT)


def test_endless_headers_take_no_memory(tmp_path, counted):
    counted("B12", 600)

    def attack(served):
        with connect(served) as connection, suppress(ConnectionError):
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ")
            for _ in range(1600):  # 100 MB, unless the service closes the connection
                connection.sendall(CHUNK)

    with attacked(tmp_path / "a.db") as served:
        threads = [threading.Thread(target=attack, args=(served,)) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def test_half_open_connections_do_not_keep_others_out(tmp_path, counted):
    counted("D4", 1100)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    few_files = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))"
    with attacked(tmp_path / "a.db", patches=[few_files]) as served, ExitStack() as stack:
        for _ in range(1100):
            connection = stack.enter_context(connect(served))
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 4000)


def test_readers_of_long_histories_do_not_delay_readings(tmp_path, counted):
    """24 clients read 10,000 steps again and again, some of them slowly; one client posts."""
    counted("D5", 24)
    stop, seconds = threading.Event(), []

    def read(served, pause):
        path = f"/v1/sensors/a/history?from={stamp(START)}&to={stamp(START + 9_999 * 900)}"
        with httpx.Client(base_url=served.url, timeout=LIMIT) as client:
            while not stop.is_set():
                with client.stream("GET", path) as answer:
                    assert answer.status_code == 200
                    for _ in answer.iter_raw(10_000):
                        if stop.wait(pause):
                            return

    with attacked(tmp_path / "a.db") as served:
        rows = [
            {"sensor": "a", "time": stamp(START + 900 * i), "value": i % 96} for i in range(20_000)
        ]
        url = f"{served.url}/v1/readings"
        httpx.post(f"{url}?mode=backfill", json=rows, timeout=LIMIT).raise_for_status()
        readers = [
            threading.Thread(target=read, args=(served, pause)) for pause in [0.0] * 12 + [0.2] * 12
        ]
        for each in readers:
            each.start()
        for i in range(100):
            row = {"sensor": "b", "time": stamp(START + 900 * i), "value": i}
            begun = time.monotonic()
            httpx.post(url, json=row, timeout=LIMIT).raise_for_status()
            seconds.append(time.monotonic() - begun)
        stop.set()
        for each in readers:
            each.join()

    assert max(seconds) <= MAX_ANSWER, sorted(seconds)[-5:]


def test_many_slow_readers_take_no_memory(tmp_path, counted):
    counted("D4", 200)
    with attacked(tmp_path / "a.db") as served, ExitStack() as stack:
        for _ in range(200):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, _, port = served.url.removeprefix("http://").partition(":")
            connection.connect((host, int(port)))
            stack.enter_context(connection)
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
        # While these are answered, the service handles the other requests as well.
        for _ in range(100):
            assert httpx.get(f"{served.url}/livez", timeout=LIMIT).status_code == 200
