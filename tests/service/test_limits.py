"""Many sensors at a start, more requests than can be stored, and nobody else that is called."""

import asyncio
import subprocess
import sys
from threading import Event

import msgspec
import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import (
    IssuedForecast,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch
from streamridge_service.service.service import Service
from streamridge_service.service.writer import MAX_WAITING
from streamridge_service.workers.sensor_state import SensorSummary
from tests.support.service.in_process import rows_of, serving, settled, small
from tests.support.workers.logs import START, STEP

MANY = 1000


def filled(database):
    """Make a database in which many sensors have a snapshot and a forecast each."""
    standing = msgspec.json.encode(SensorSummary(newest=START, first=START, value=1.0, fitted=True))
    sensors = [SensorRow(i + 1, f"sensor-{i}", START) for i in range(MANY)]
    with open_ledger(str(database)) as ledger:
        ledger.append(
            sensors, [StoredReading(i + 1, i + 1, START, 1.0, START) for i in range(MANY)]
        )
        ledger.add_forecasts(
            [
                IssuedForecast(i + 1, i + 1, START + STEP, 0, "last", (1.0,), (0.5,), (1.5,))
                for i in range(MANY)
            ],
            done=MANY,
        )
        ledger.add_snapshots(
            [
                Snapshot(
                    RefitPoint(i + 1, i + 1, START, "kept"), b"x" * 50_000, standing, b"{}", "here"
                )
                for i in range(MANY)
            ]
        )


def test_a_start_with_many_sensors_reads_no_state(tmp_path, monkeypatch, record_property):
    record_property("row", "A9")
    record_property("cases", MANY)
    filled(tmp_path / "a.db")
    monkeypatch.setattr(Ledger, "snapshot", pytest.fail)

    async def started():
        service = Service(small(tmp_path / "a.db"))
        service.open()
        try:
            return service.health.is_ready, service.statuses[MANY]
        finally:
            await service.close()

    ready, place = asyncio.run(started())

    assert ready
    assert place.forecast.values == (1.0,)


def test_readings_beyond_the_queue_are_refused_and_nothing_is_lost(
    tmp_path, monkeypatch, record_property
):
    record_property("row", "D5")
    record_property("cases", 2 * MAX_WAITING)
    gate = Event()

    async def flooded(service):
        append = service.ledger.append
        monkeypatch.setattr(
            service.ledger, "append", lambda *args, **more: (gate.wait(), append(*args, **more))
        )
        waiting, refused = [], []
        for step in range(2 * MAX_WAITING):
            task = asyncio.ensure_future(
                service.ingest.store(Batch(rows_of(step), []), IngestOptions())
            )
            await asyncio.sleep(0)
            if task.done():
                with pytest.raises(Problem, match="requests wait"):
                    task.result()
                refused.append(step)
            else:
                waiting.append(task)
        gate.set()
        receipts = await asyncio.gather(*waiting)
        await settled(service)
        return receipts, refused

    receipts, refused = serving(flooded, tmp_path / "a.db")

    assert refused
    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        assert len(ledger.readings(1)) == len(receipts)
        assert all(receipt.accepted == 3 for receipt in receipts)


AUDITED = """
import sys

called = []


def hook(event, args):
    # A text is the path of a socket of this machine: that of the process which forks workers.
    if event == "socket.connect" and not isinstance(args[1], str):
        called.append(args[1])


sys.addaudithook(hook)
from tests.support.service.in_process import fed, serving

if __name__ == "__main__":
    serving(lambda service: fed(service, 0, 20), sys.argv[1])
    print(called)
"""


def test_the_service_opens_no_connection(tmp_path, record_property):
    record_property("row", "E7")
    record_property("cases", 20)
    script = tmp_path / "audited.py"
    script.write_text(AUDITED)

    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "a.db")],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "[]"
