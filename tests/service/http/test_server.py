"""The server: its start, reasons not to start, and its stop."""

import json
import os
import signal
import socket
import threading
from queue import SimpleQueue
from typing import NamedTuple

import apsw
import httpx
import pytest
import structlog

from streamridge_service.http import tokens
from streamridge_service.http.server import FINE, ForcedExit, bind, require_tokens, run
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.plan_log import record_plan
from streamridge_service.plan import MINUTE, Plan
from streamridge_service.settings import settings_of
from tests.support.service.event_listener import Listener
from tests.support.service.live_server import NOW, Live, process, stamp
from tests.support.waiting import LIMIT, wait_until

# Without forced exits a service must stop in order.
NO_FORCE = (
    "import streamridge_service.http.server as server; "
    f"server.REQUEST_TIMEOUT = server.WORKER_TIMEOUT = server.STOP_TIMEOUT = {10 * LIMIT}"
)
# Clients of the event stream while the service is stopped.
STREAMS = 50


@pytest.fixture
def database(tmp_path):
    return tmp_path / "a.db"


@pytest.fixture
def quiet():
    """Restore the configuration of logs."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def exit_code(database, quiet):
    """Return a function that returns the exit code and the reason of a failed start."""

    def code_of(**changes):
        said = []
        code = run(settings_of(database=str(database), **changes), print_error=said.append)
        return code, "".join(said)

    return code_of


class TestStart:
    def test_a_service_reachable_from_other_machines_needs_tokens(
        self, database, exit_code, counted
    ):
        counted("E1", 5)
        away = settings_of(database=str(database), host="0.0.0.0")

        for host in ("0.0.0.0", "::"):
            code, reason = exit_code(host=host)

            assert code == 78
            assert "streamridge token create" in reason
        require_tokens(away, has_tokens=True)
        require_tokens(settings_of(database=str(database)), has_tokens=False)
        require_tokens(settings_of(database=str(database), host="::", open=True), has_tokens=False)

    def test_a_port_in_use_is_reported(self, exit_code):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            code, reason = exit_code(port=taken.getsockname()[1])

        assert code == 78
        assert "cannot listen on 127.0.0.1" in reason

    def test_a_database_in_use_is_reported(self, database, exit_code, counted):
        counted("A11", 1)
        with open_ledger(str(database)):
            code, reason = exit_code()

        assert code == 75
        assert f"process {os.getpid()} since" in reason

    def test_a_database_of_a_newer_version_is_refused(self, database, exit_code, counted):
        counted("A7", 1)
        with open_ledger(str(database)) as ledger:
            ledger.put_facts({"format": "999"})

        assert exit_code()[0] == 65

    def test_a_file_that_is_no_database_is_refused(self, database, exit_code):
        database.write_bytes(b"no database" * 1000)

        assert exit_code()[0] == 74

    def test_another_step_than_the_stored_one_is_refused(self, database, exit_code):
        with open_ledger(str(database)) as ledger:
            record_plan(ledger, Plan(step=5 * MINUTE), now=0)

        code, reason = exit_code(port=0)

        assert code == 78
        assert "--step 300s" in reason

    def test_a_library_version_with_a_known_bug_is_refused(self, exit_code, monkeypatch):
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")

        assert exit_code()[0] == 78

    def test_an_ipv6_address_can_be_bound(self):
        with bind("::1", 0) as listening:
            assert listening.family == socket.AF_INET6

    def test_a_public_service_requires_tokens_and_its_own_host_name(self, database, counted):
        counted("E1", 3)
        with open_ledger(str(database)) as ledger:
            _, text = tokens.create(ledger, "a", ["read"], now=NOW)
        with Live(database, host="0.0.0.0") as served:
            url = served.url.replace("0.0.0.0", "127.0.0.1")
            own = {"Authorization": f"Bearer {text}"}

            assert httpx.get(f"{url}/v1/summary", timeout=LIMIT).status_code == 401
            assert httpx.get(f"{url}/v1/summary", headers=own, timeout=LIMIT).status_code == 200
            assert (
                httpx.get(
                    f"{url}/livez", headers={"Host": "evil.example"}, timeout=LIMIT
                ).status_code
                == 421
            )


class TestStop:
    @pytest.mark.parametrize("stops", [1, pytest.param(50, marks=pytest.mark.slow)])
    def test_a_signal_stops_the_service_without_loss(self, database, counted, stops):
        """Streams get a shutdown event, acknowledged readings are stored, and the code is 0."""
        acknowledged, ends = [], []

        for _ in range(stops):
            ends.append(stopped_under_load(database, acknowledged))

        with open_ledger(str(database), read_only=True) as ledger:
            stored = [entry.time for entry in ledger.readings(1)]
            assert list(ledger.check()) == []
        assert {end.code for end in ends} == {0}
        assert all(end.goodbyes == ["shutdown"] * STREAMS for end in ends)
        assert not [line for end in ends for line in end.errors]
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        counted("A10", stops)

    def test_a_second_signal_stops_the_service_at_once(self, database, counted):
        counted("A10", 1)
        hang = (
            "import time; from streamridge_service.service.service import Service; "
            f"Service._close = lambda *_: (print('hangs', flush=True), time.sleep({10 * LIMIT}))"
        )
        with process(database, patches=[NO_FORCE, hang]) as served:
            served.process.send_signal(signal.SIGINT)
            assert served.process.stdout.readline() == "hangs\n"

            code, _ = served.end(signal.SIGINT)

        assert code == 0

    def test_a_forced_exit_cleans_up_first(self, monkeypatch, counted):
        counted("A10", 1)
        done = SimpleQueue()
        monkeypatch.setattr(os, "_exit", done.put)

        ForcedExit(lambda: done.put("cleaned up")).start(0, FINE)

        assert [done.get(timeout=LIMIT) for _ in range(2)] == ["cleaned up", FINE]

    @pytest.mark.slow
    def test_a_signal_that_another_thread_receives_stops_the_service(self, database, counted):
        """The main thread waits for the closing thread, and the signal does not interrupt it."""
        counted("A10", 1)
        signalled = (
            "import signal, threading; from streamridge_service.service.service import Service; "
            "Service._close = lambda *_: ("
            "signal.pthread_kill(threading.get_ident(), signal.SIGINT), threading.Event().wait())"
        )
        with process(database, patches=[NO_FORCE, signalled]) as served:
            code, _ = served.end(signal.SIGINT)

        assert code == 0

    def test_a_failed_storage_stops_the_service(self, database, counted):
        counted("A5", 1)
        patch = (
            "from streamridge_service.ledger.ledger import Ledger; "
            "from streamridge_service.ledger.errors import StorageFailedError\n"
            "def fail(*_): raise StorageFailedError('the disk is broken')\n"
            "Ledger.append = fail"
        )
        with process(database, patches=[patch]) as served:
            row = {"sensor": "a", "time": "2026-01-01T00:00:00Z", "value": 1}
            answer = httpx.post(f"{served.url}/v1/readings", json=row, timeout=LIMIT)

            code, _ = served.left()

        assert (answer.status_code, answer.json()["code"]) == (503, "sr-storage-failed")
        assert code == 74


class End(NamedTuple):
    """The end of a service: exit code, last events of its streams, and errors in its log."""

    code: int
    goodbyes: list[str]
    errors: list[str]


def stopped_under_load(database, acknowledged):
    """Stop a service that has streams and a client that writes; return its end.

    The readings that it acknowledges are added to those of before.
    """
    enough = len(acknowledged) + 20
    with process(database, patches=[NO_FORCE]) as served:
        writer = threading.Thread(target=write, args=(served.url, acknowledged))
        writer.start()
        streams = [Listener(at(served)) for _ in range(STREAMS)]
        wait_until(lambda: len(acknowledged) >= enough, "readings that were acknowledged")
        code, logged = served.end()
        writer.join()
        goodbyes = [stream.next("shutdown")[1] for stream in streams]
        for stream in streams:
            stream.close()
    errors = [line for line in logged.splitlines() if not is_harmless(line)]
    return End(code, goodbyes, errors)


def is_harmless(line):
    """Return whether a line belongs to the log and is no error."""
    try:
        return json.loads(line)["level"] != "error"
    except ValueError:
        return False


def at(served):
    """Return the part of a process that a listener needs."""
    served.port = int(served.url.rpartition(":")[2])
    return served


def write(url, acknowledged):
    """Send readings until the service stops, and note the acknowledged ones."""
    with httpx.Client(base_url=url, timeout=LIMIT) as client:
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
