"""Faults of the storage under a running service: vanished files, a full disk, failed checks."""

import os
import shutil
import signal
from threading import Event

import httpx
import pytest

from streamridge_service.ledger.errors import DiskFullError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.service import service as service_module
from tests.support.service.live_server import Live, Process, process, readings
from tests.support.waiting import LIMIT, wait_until

FIRST = 1_767_225_600
# Without forced exits a service must stop in order.
NO_FORCE = (
    "import streamridge_service.http.server as server; "
    f"server.REQUEST_TIMEOUT = server.WORKER_TIMEOUT = server.STOP_TIMEOUT = {10 * LIMIT}"
)
UNMEASURED = (
    "import shutil\n"
    "def fail(path): raise OSError(5, 'Input/output error')\n"
    "shutil.disk_usage = fail"
)


@pytest.fixture
def database(tmp_path):
    return tmp_path / "roads.db"


def rows(first, count=4):
    return readings("north", FIRST + first * 900, [float(i) for i in range(count)])


def delete(path):
    path.unlink()


def replace(path):
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


class TestVanishedFiles:
    @pytest.mark.parametrize("change", [delete, replace])
    def test_readings_are_not_acknowledged_and_the_service_says_why(
        self, database, change, counted
    ):
        counted("A6", 1)
        with Live(database) as live:
            assert live.post(rows(0)).status_code == 200
            change(database)

            answer = live.post(rows(4))
            ready = live.client.get("/readyz")

        assert (answer.status_code, answer.json()["code"]) == (503, "sr-storage-gone")
        assert "nothing was stored" in answer.json()["detail"]
        assert ready.status_code == 503
        assert any("a file of the database was deleted" in each for each in ready.json()["reasons"])

    def test_an_idle_service_notices_it(self, database, monkeypatch):
        monkeypatch.setattr(service_module, "MEASURE_EVERY", 0.01)
        with Live(database) as live:
            database.unlink()

            wait_until(
                lambda: live.client.get("/readyz").status_code == 503, "a service that is not ready"
            )
            assert live.service.writer.error_code == "sr-storage-gone"

    @pytest.mark.slow
    def test_the_process_ends_and_does_not_start_with_an_empty_database(self, database):
        with process(database) as served:
            stored = httpx.post(f"{served.url}/v1/readings", json=rows(0), timeout=LIMIT)
            database.unlink()
            refused = httpx.post(f"{served.url}/v1/readings", json=rows(4), timeout=LIMIT)
            code, _ = served.left()
        again, words = Process(database, wait=False).left()

        assert (stored.status_code, refused.status_code, code) == (200, 503, 74)
        assert again == 65
        assert "is missing or empty, but 4 readings in it were acknowledged" in words


class TestFullDisk:
    @pytest.fixture
    def full(self, monkeypatch):
        """Give the event that says whether the disk is full."""
        is_full, append, put_facts = Event(), Ledger.append, Ledger.put_facts

        def guarded(write):
            def guarded_write(*arguments, **more):
                if is_full.is_set():
                    raise DiskFullError("there is no room.")
                return write(*arguments, **more)

            return guarded_write

        monkeypatch.setattr(Ledger, "append", guarded(append))
        monkeypatch.setattr(Ledger, "put_facts", guarded(put_facts))
        return is_full

    def test_the_service_is_not_ready_until_a_write_succeeds(self, database, full):
        with Live(database) as live:
            full.set()
            assert live.post(rows(0)).status_code == 507

            for _ in range(3):
                live.do(service_module.Service._measure)
                assert live.client.get("/readyz").status_code == 503
                live.service.writer.submit(lambda ledger: None).result(LIMIT)
                assert live.client.get("/readyz").status_code == 503

            full.clear()
            live.do(service_module.Service._measure)
            live.service.writer.submit(lambda ledger: None).result(LIMIT)
            assert live.client.get("/readyz").status_code == 200
            assert live.post(rows(0)).status_code == 200


class TestMeasurement:
    def test_a_disk_that_cannot_be_measured_is_reported_and_does_not_stop_the_probe(
        self, database, monkeypatch
    ):
        def fail(path):
            raise OSError(5, "Input/output error")

        with Live(database) as live:
            live.service.writer.error_code = "sr-disk-full"
            monkeypatch.setattr(shutil, "disk_usage", fail)

            live.do(service_module.Service._measure)
            live.service.writer.submit(lambda ledger: None).result(LIMIT)
            live.call(lambda service: service.health.check(0, 0))
            assert live.client.get("/readyz").json() == {
                "ready": True,
                "state": "degraded",
                "reasons": ["the disk cannot be measured"],
            }

            monkeypatch.undo()
            live.do(service_module.Service._measure)
            live.call(lambda service: service.health.check(0, 0))
            assert live.client.get("/readyz").json()["reasons"] == []

    @pytest.mark.slow
    def test_the_first_signal_stops_a_service_that_cannot_be_measured(self, database):
        with process(database, patches=[NO_FORCE, UNMEASURED]) as served:
            wait_until(
                lambda: "measured" in httpx.get(f"{served.url}/readyz", timeout=LIMIT).text,
                "a failed measurement",
            )

            code, _ = served.end(signal.SIGTERM)

        assert code == 0

    def test_a_failed_check_does_not_keep_the_service_from_stopping(self, database):
        """A task that ended with an error must not keep workers alive."""

        async def broken(service):
            service._tasks.append(service._loop.create_task(failing()))

        async def failing():
            raise OSError(5, "Input/output error")

        with Live(database) as live:
            live.do(broken)
            workers = [each._process for each in live.service.forecasts.pool.workers]

        assert not any(worker.is_alive() for worker in workers)
        open_ledger(database).close()
