"""Workers that crash again and again: an item that ends them is isolated, and operators see it."""

import os
import signal
import time

import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.rows import Batch, Row
from streamridge_service.workers import pool, processes
from tests.support.service.in_process import NAMES, fed, rows_of, serving, settled
from tests.support.waiting import wait_until_async
from tests.support.workers.logs import START, STEP

# Read by every Python that starts with its folder in PYTHONPATH: a worker ends at one value.
POISON = 666.0
POISONED = f"""
import os
from streamridge_service.workers.tracker import Tracker

learn = Tracker._learn

def poisoned(self, step, value, waiting):
    if value == {POISON}:
        os._exit(1)
    learn(self, step, value, waiting)

Tracker._learn = poisoned
"""


@pytest.fixture
def poisoned(tmp_path, monkeypatch):
    """Let workers end when they process the poison; they are restarted without a pause."""
    (tmp_path / "sitecustomize.py").write_text(POISONED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(processes, "METHOD", "spawn")  # forked ones do not read it
    monkeypatch.setattr(pool, "EARLY_CRASH", 0.0)


def test_a_reading_that_ends_its_worker_twice_costs_only_its_sensor(
    poisoned, tmp_path, record_property
):
    record_property("row", "C2")
    record_property("cases", 1)
    poison = Row(1, "south", START + 2 * STEP, POISON)

    async def fed_poison(service):
        await fed(service, 0, 2)
        rows = [poison if row.sensor == "south" else row for row in rows_of(2)]
        await service.ingest.store(Batch(rows, []), IngestOptions())
        await settled(service)
        await fed(service, 3, 5)
        answers = [(await service.forecasts.ask(sensor)).forecast for sensor in (1, 2, 3)]
        known = {
            status.sensor.name: status.state(service.now)
            for status in service.statuses.copy().values()
        }
        return answers, known, service.forecasts.pool.restarts

    answers, known, restarts = serving(fed_poison, tmp_path / "a.db")

    assert restarts >= 2
    assert known["south"] == ("degraded", "its processing has ended the worker several times")
    assert {known[name][0] for name in NAMES if name != "south"} == {"new"}
    assert [answer is None for answer in answers] == [False, True, False]
    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        assert [len(list(ledger.forecasts(sensor))) for sensor in (1, 2, 3)] == [5, 2, 5]
        assert len(ledger.readings(2)) == 5
        assert ledger.done_seq() < poison_seq(ledger), "a restarted service tries it again"


def poison_seq(ledger):
    return next(each.seq for each in ledger.readings(2) if each.value == POISON)


def test_a_worker_that_crashes_repeatedly_makes_the_service_unready_for_a_while(
    tmp_path, monkeypatch, record_property
):
    record_property("row", "F4")
    record_property("cases", 1)
    passed = [0.0]  # seconds that the clock of the workers is ahead
    monkeypatch.setattr(pool, "monotonic", lambda: time.monotonic() + passed[0])
    monkeypatch.setattr(pool, "EARLY_CRASH", 0.0)

    async def killed(service):
        workers = service.forecasts.pool
        seen = []
        for kills in range(1, pool.MANY_CRASHES + 1):
            os.kill(workers.workers[0].pid, signal.SIGKILL)
            await wait_until_async(lambda: workers.restarts >= kills, "a new worker")  # noqa: B023
            seen.append((await health_of(service))[0])
        crashing = await health_of(service)
        passed[0] += pool.CRASH_SPAN
        return seen, crashing, await health_of(service)

    seen, crashing, later = serving(killed, tmp_path / "a.db")

    assert seen == [True, True, False]
    assert crashing == (False, "degraded", ["1 worker crashed repeatedly"])
    assert later == (True, "live", [])


async def health_of(service):
    await service._check()
    await service._announce()
    summary = service.summary()
    return service.health.is_ready, summary.state, summary.reasons
