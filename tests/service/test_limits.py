"""Many sensors at a start, more requests than can be stored, and nobody else that is called."""

import asyncio
import subprocess
import sys
from threading import Event
from time import monotonic, process_time

import msgspec
import pytest

from streamridge.service.fleet.tracker import Standing
from streamridge.service.intake import Wish
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.records import Cut, Entry, Issued, SensorRow, Snapshot
from streamridge.service.problems import Problem
from streamridge.service.rows import Batch
from streamridge.service.service import Service
from streamridge.service.writer import MOST_WAITING
from tests.service.fleet.logs import START, STEP
from tests.service.living import rows_of, serving, settled, small

MANY = 4000


def filled(database):
    """Make a database in which many sensors have a snapshot and a forecast each."""
    standing = msgspec.json.encode(Standing(newest=START, first=START, value=1.0, fitted=True))
    sensors = [SensorRow(i + 1, f"sensor-{i}", START) for i in range(MANY)]
    with open_ledger(str(database)) as ledger:
        ledger.append(sensors, [Entry(i + 1, i + 1, START, 1.0, START) for i in range(MANY)])
        ledger.issue(
            [
                Issued(i + 1, i + 1, START + STEP, 0, "last", (1.0,), (0.5,), (1.5,))
                for i in range(MANY)
            ],
            done=MANY,
        )
        ledger.keep(
            [
                Snapshot(Cut(i + 1, i + 1, START, "kept"), b"x" * 50_000, standing, b"{}", "here")
                for i in range(MANY)
            ]
        )


def test_many_sensors_are_known_at_once_and_no_state_is_read(tmp_path, record_property):
    record_property("row", "A9")
    record_property("cases", MANY)
    filled(tmp_path / "a.db")

    async def started():
        service, begun = Service(small(tmp_path / "a.db")), process_time()
        service.open()
        try:
            return process_time() - begun, service.is_ready, service.board.places[MANY]
        finally:
            await service.close()

    seconds, ready, place = asyncio.run(started())

    assert ready
    assert place.forecast.values == (1.0,)
    assert seconds < 2


def test_more_than_can_be_stored_is_refused_at_once_and_nothing_is_lost(
    tmp_path, monkeypatch, record_property
):
    record_property("row", "D5")
    record_property("cases", 2 * MOST_WAITING)
    gate = Event()

    async def flooded(service):
        append = service.ledger.append
        monkeypatch.setattr(
            service.ledger, "append", lambda *args, **more: (gate.wait(), append(*args, **more))
        )
        waiting, refused = [], []
        for step in range(2 * MOST_WAITING):
            begun = monotonic()
            task = asyncio.ensure_future(service.take(Batch(rows_of(step), []), Wish()))
            await asyncio.sleep(0)
            if task.done():
                with pytest.raises(Problem, match="requests wait"):
                    task.result()
                refused.append(monotonic() - begun)
            else:
                waiting.append(task)
        gate.set()
        receipts = await asyncio.gather(*waiting)
        await settled(service)
        return receipts, refused

    receipts, refused = serving(flooded, tmp_path / "a.db")

    assert refused
    assert max(refused) < 0.1
    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        assert len(ledger.entries(1)) == len(receipts)
        assert all(receipt.accepted == 3 for receipt in receipts)


AUDITED = """
import sys

called = []
sys.addaudithook(lambda event, args: called.append(args[1]) if event == "socket.connect" else None)
from tests.service.living import fed, serving

if __name__ == "__main__":
    serving(lambda service: fed(service, 0, 20), sys.argv[1])
    print(called)
"""


def test_a_service_calls_nobody(tmp_path, record_property):
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
