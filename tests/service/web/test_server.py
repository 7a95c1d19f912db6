"""The server: when it begins to serve, when it does not, and how it ends."""

import json
import os
import signal
import socket
import threading
import time
from typing import NamedTuple

import apsw
import httpx
import pytest
import structlog

from streamridge.service.following import follow
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.plan import MINUTE, Plan
from streamridge.service.settings import settings_of
from streamridge.service.web import tokens
from streamridge.service.web.beginning import bound, require_tokens
from streamridge.service.web.server import run
from tests.service.web.live import NOW, Live, process, stamp
from tests.service.web.test_stream import Listener

# Clients that listen to events when a service is stopped.
STREAMS = 50


@pytest.fixture
def database(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def quiet():
    """Leave logs as they were."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def exit_code(database, quiet):
    """Give the function that returns the code of a service that does not begin, and why."""

    def code_of(**changes):
        said = []
        code = run(settings_of(database=str(database), **changes), complain=said.append)
        return code, "".join(said)

    return code_of


class TestBeginning:
    def test_beyond_this_machine_it_needs_tokens(self, database, exit_code, counted):
        counted("E1", 5)
        away = settings_of(database=str(database), host="0.0.0.0")

        for host in ("0.0.0.0", "::"):
            code, reason = exit_code(host=host)

            assert code == 78
            assert "streamridge token create" in reason
        require_tokens(away, has_tokens=True)
        require_tokens(settings_of(database=str(database)), has_tokens=False)
        require_tokens(settings_of(database=str(database), host="::", open=True), has_tokens=False)

    def test_a_port_that_is_taken(self, exit_code):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            code, reason = exit_code(port=taken.getsockname()[1])

        assert code == 78
        assert "cannot listen on 127.0.0.1" in reason

    def test_a_database_that_is_served(self, database, exit_code, counted):
        counted("A11", 1)
        with open_ledger(str(database)):
            code, reason = exit_code()

        assert code == 75
        assert f"process {os.getpid()} since" in reason

    def test_a_database_of_a_newer_version(self, database, exit_code, counted):
        counted("A7", 1)
        with open_ledger(str(database)) as ledger:
            ledger.put_facts({"format": "999"})

        assert exit_code()[0] == 65

    def test_a_file_that_is_no_database(self, database, exit_code):
        database.write_bytes(b"no database" * 1000)

        assert exit_code()[0] == 74

    def test_another_step(self, database, exit_code):
        with open_ledger(str(database)) as ledger:
            follow(ledger, Plan(step=5 * MINUTE), now=0)

        code, reason = exit_code(port=0)

        assert code == 78
        assert "--step 300s" in reason

    def test_a_library_that_could_do_harm(self, exit_code, monkeypatch):
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")

        assert exit_code()[0] == 78

    def test_an_address_of_the_next_generation(self):
        with bound("::1", 0) as listening:
            assert listening.family == socket.AF_INET6

    def test_with_tokens_it_is_reached_by_address_and_asks_for_them(self, database, counted):
        counted("E1", 3)
        with open_ledger(str(database)) as ledger:
            _, text = tokens.create(ledger, "a", ["read"], now=NOW)
        with Live(database, host="0.0.0.0") as served:
            url = served.url.replace("0.0.0.0", "127.0.0.1")
            own = {"Authorization": f"Bearer {text}"}

            assert httpx.get(f"{url}/v1/summary").status_code == 401
            assert httpx.get(f"{url}/v1/summary", headers=own).status_code == 200
            assert httpx.get(f"{url}/livez", headers={"Host": "evil.example"}).status_code == 421


class TestEnd:
    @pytest.mark.parametrize("stops", [3, pytest.param(50, marks=pytest.mark.slow)])
    def test_told_to_stop_it_ends_in_order(self, database, counted, stops):
        """Streams hear of it, what was acknowledged is stored, and the code is 0."""
        acknowledged, ends = [], []

        for _ in range(stops):
            ends.append(stopped_under_load(database, acknowledged))

        with open_ledger(str(database), read_only=True) as ledger:
            stored = [entry.time for entry in ledger.entries(1)]
            assert list(ledger.check()) == []
        assert {end.code for end in ends} == {0}
        assert max(end.seconds for end in ends) < 10
        assert all(end.goodbyes == ["shutdown"] * STREAMS for end in ends)
        assert not [line for end in ends for line in end.errors]
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        counted("A10", stops)

    def test_told_twice_it_ends_at_once(self, database, counted):
        counted("A10", 1)
        patch = (
            "import time; from streamridge.service.service import Service; "
            "Service._end = lambda *_: time.sleep(60)"
        )
        with process(database, patches=[patch]) as served:
            served.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            begun = time.monotonic()

            code, _ = served.end(signal.SIGINT)

        assert code == 0
        assert served.ended - begun < 1

    def test_a_storage_that_fails_ends_it(self, database, counted):
        counted("A5", 1)
        patch = (
            "from streamridge.service.ledger.writing import SqlLedger; "
            "from streamridge.service.ledger.base import StorageFailedError\n"
            "def fail(*_): raise StorageFailedError('the disk is broken')\n"
            "SqlLedger.append = fail"
        )
        with process(database, patches=[patch]) as served:
            row = {"sensor": "a", "time": "2026-01-01T00:00:00Z", "value": 1}
            answer = httpx.post(f"{served.url}/v1/readings", json=row)

            code, _ = served.left()

        assert (answer.status_code, answer.json()["code"]) == (503, "sr-storage-failed")
        assert code == 74


class End(NamedTuple):
    """How a service ended: its code, how long that took, and what was heard of it."""

    code: int
    seconds: float
    goodbyes: list[str]
    errors: list[str]


def stopped_under_load(database, acknowledged):
    """Stop a service that clients listen to, and one writes to; return how that went.

    The readings that it acknowledges are added to those of before.
    """
    enough = len(acknowledged) + 20
    with process(database) as served:
        writer = threading.Thread(target=write, args=(served.url, acknowledged))
        writer.start()
        streams = [Listener(at(served)) for _ in range(STREAMS)]
        while len(acknowledged) < enough:
            time.sleep(0.01)
        begun = time.monotonic()
        code, logged = served.end()
        writer.join()
        goodbyes = [stream.next("shutdown")[1] for stream in streams]
        for stream in streams:
            stream.close()
    errors = [line for line in logged.splitlines() if not is_harmless(line)]
    return End(code, served.ended - begun, goodbyes, errors)


def is_harmless(line):
    """Return whether a line is one of the log, and tells of no error."""
    try:
        return json.loads(line)["level"] != "error"
    except ValueError:
        return False


def at(served):
    """Return what a listener needs to know of a process."""
    served.port = int(served.url.rpartition(":")[2])
    return served


def write(url, acknowledged):
    """Send readings one after another, and note those that were acknowledged, until it ends."""
    with httpx.Client(base_url=url) as client:
        while True:
            seconds = 1_767_225_600 + 900 * len(acknowledged)
            row = {"sensor": "a", "time": stamp(seconds), "value": len(acknowledged) % 50}
            try:
                answer = client.post("/v1/readings", json=row)
            except httpx.TransportError:
                return
            if answer.status_code != 200:
                return
            acknowledged.append(seconds * 10**6)
