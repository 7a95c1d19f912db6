"""Workers that are killed or hang, while readings come in and forecasts are asked for (C2)."""

import asyncio
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.rows import Batch, Row
from streamridge_service.verification.verify import check_sensors
from streamridge_service.workers.pool import ANSWER_TIMEOUT
from tests.support.service.batches import NAMES, batches_of
from tests.support.service.in_process import digest_of, serving, settled
from tests.support.service.live_server import Live, stamp
from tests.support.waiting import LIMIT, wait_until, wait_until_async

KILLS, HANGS, STEPS = 50, 5, 4000
# Seconds between batches, and between questions.
PAUSE = 0.2
# Messages that may wait for workers: a busy machine processes less than a client could send.
MOST_WAITING = 6
FEW_STEPS = 68  # the first refits come half a day after the past


class Clients:
    """A client that sends readings, and one that asks for forecasts; none of their requests fails.

    Parameters
    ----------
    live
        The service that they talk to.
    batches
        The batches to send.
    """

    def __init__(self, live, batches):
        self._live, self._batches = live, batches
        self._stop = threading.Event()
        self.sent = self.asked = 0
        self.failed = []

    def __enter__(self):
        self._pool = ThreadPoolExecutor(2)
        self._work = [self._pool.submit(each) for each in (self._send, self._ask)]
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._pool.shutdown()
        for each in self._work:
            each.result()

    def _send(self):
        with self._live.new_client() as client:
            while not self._stop.is_set():
                rows = self._batches[self.sent]
                body = [{"sensor": n, "time": stamp(t), "value": v} for n, t, v in rows]
                mode = "live" if self.sent else "backfill"
                self._note(client.post("/v1/readings", json=body, params={"mode": mode}))
                self.sent += 1
                while not self._stop.wait(PAUSE) and self._pool_is_busy():
                    pass

    def _pool_is_busy(self):
        return self._live.service.forecasts.pool.waiting > MOST_WAITING

    def _ask(self):
        with self._live.new_client() as client:
            while not self._stop.is_set():
                for name in NAMES if self.sent else ():
                    self._note(client.get(f"/v1/sensors/{name}/forecasts"))
                    self._note(client.get(f"/v1/sensors/{name}"))
                self._note(client.get("/v1/summary"))
                self._note(client.get("/readyz"))
                self.asked += 1
                time.sleep(PAUSE)

    def _note(self, answer):
        if answer.status_code != 200:
            self.failed.append((answer.url, answer.status_code, answer.text))

    def await_round(self):
        """Wait until all sensors were asked for once more."""
        asked = self.asked + 2  # a round is under way
        wait_until(lambda: self.asked >= asked, "answers to questions of all sensors")


def replace_workers(fleet, clients, fault, times, chance):
    """Cause a fault of a worker several times, each time after the last one was replaced.

    After every other one, all of them get on with their work.
    """
    for number in range(times):
        time.sleep(chance.uniform(0, 1))
        before = fleet.restarts
        fault(chance.choice(fleet.workers))
        wait_until(lambda: fleet.restarts > before, "a new worker")  # noqa: B023, called here
        if number % 2:
            clients.await_round()


def crash(worker):
    os.kill(worker.pid, signal.SIGKILL)


def hang(worker):
    """Stop a worker, and let it seem to owe its answers for long, until it is replaced."""
    wait_until(lambda: worker.is_ready, "a worker that has started")
    before = worker.restarts
    os.kill(worker.pid, signal.SIGSTOP)

    def is_replaced():
        with worker._lock:
            if worker.restarts == before:
                worker._last_progress_at -= ANSWER_TIMEOUT
                for number, (at, message) in worker.unanswered.items():
                    worker.unanswered[number] = at - ANSWER_TIMEOUT, message
        return worker.restarts > before

    wait_until(is_replaced, "a new worker")


@pytest.mark.slow
def test_crashed_and_hanging_workers_fail_no_request(tmp_path, monkeypatch, record_property):
    monkeypatch.setattr("streamridge_service.workers.pool.EARLY_CRASH", 0.5)
    # Otherwise so many crashes make the service unready.
    monkeypatch.setattr("streamridge_service.workers.pool.MANY_CRASHES", KILLS + HANGS + 1)
    # A busy machine is slow, which is no fault.
    monkeypatch.setattr("streamridge_service.service.forecasts.ANSWER_TIMEOUT", LIMIT)
    chance, database = random.Random(2), tmp_path / "a.db"

    with Live(database, workers=2) as live:
        with Clients(live, batches_of(STEPS)) as clients:
            clients.await_round()
            replace_workers(live.service.forecasts.pool, clients, crash, KILLS, chance)
            replace_workers(live.service.forecasts.pool, clients, hang, HANGS, chance)
        live.do(worked_off)

    assert clients.failed == []
    with open_ledger(str(database), read_only=True) as ledger:
        times = [[e.time for e in ledger.readings(s.id)] for s in ledger.sensors()]
        found = [
            (v.fault, v.is_exact, v.forecasts) for v in check_sensors(ledger, ledger.sensors())
        ]
    assert all(each == sorted(set(each)) for each in times)
    assert found == [(None, True, clients.sent - 1)] * len(NAMES)
    record_property("row", "C2")
    record_property("cases", KILLS + HANGS)


# The most lives in which a worker is to be stopped in a refit.
LIVES = 20


async def fed(service, batches, first=0):
    """Feed batches one by one, and wait for the forecasts and refits of each."""
    for number in range(first, len(batches)):
        rows = [Row(1, name, time * 10**6, value) for name, time, value in batches[number]]
        mode = "live" if number else "backfill"
        await service.ingest.store(Batch(rows, []), IngestOptions(mode=mode))
        yield number
        await settled(service)


def stop_in_refit(worker):
    """Return whether a worker was stopped in a refit, at the first moment that one is seen."""
    while worker._refitting is None:
        if not worker.unanswered and not worker.waiting_refits:
            return False
        time.sleep(0.0005)
    os.kill(worker.pid, signal.SIGSTOP)
    time.sleep(0.02)  # messages that were sent before it stopped arrive
    if worker._refitting is not None:
        return True
    os.kill(worker.pid, signal.SIGCONT)
    return False


def lived(database, steps):
    """Let a service live without a stop; return the digest of its database."""

    async def all_fed(service):
        async for _ in fed(service, batches_of(steps)):
            pass

    serving(all_fed, database, train_size=400)
    return digest_of(database)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("whole") / "a.db", FEW_STEPS)


@pytest.mark.parametrize(
    ("kills", "steps"), [(1, FEW_STEPS), pytest.param(30, 700, marks=pytest.mark.slow)]
)
def test_a_worker_killed_in_refits_changes_no_byte(
    whole, tmp_path, monkeypatch, kills, steps, record_property
):
    """The refit is made again at once, and does not wait for the next reading."""
    monkeypatch.setattr("streamridge_service.workers.pool.EARLY_CRASH", 0.0)
    killed = []

    async def disturbed(service):
        (worker,) = service.forecasts.pool.workers
        async for number in fed(service, batches_of(steps)):
            wanted = number and len(killed) < kills
            if wanted and await asyncio.to_thread(stop_in_refit, worker):
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)

    # On a busy machine all refits may end before one is seen: then the service lives once more.
    for life in range(LIVES):
        database = tmp_path / f"killed-{life}.db"
        serving(disturbed, database, train_size=400)
        if len(killed) == kills:
            break
        killed.clear()

    assert len(killed) == kills
    undisturbed = whole if steps == FEW_STEPS else lived(tmp_path / "whole.db", steps)
    assert digest_of(database) == undisturbed
    record_property("row", "C2")
    record_property("cases", kills)


def test_a_refit_that_a_service_did_not_finish_is_made_when_it_starts_again(
    whole, tmp_path, record_property
):
    record_property("row", "A1")
    record_property("cases", 1)
    batches = batches_of(FEW_STEPS)

    async def ended(service):
        (worker,) = service.forecasts.pool.workers
        async for number in fed(service, batches):
            if number and await asyncio.to_thread(stop_in_refit, worker):
                service.forecasts.pool.stop(timeout=0)
                return number
        return None

    async def went_on(service, number):
        await settled(service)
        refits = service.forecasts.counts["refit"]
        async for _ in fed(service, batches, number + 1):
            pass
        return refits

    # On a busy machine all refits may end before one is seen, or while its worker is stopped: then
    # the service lives once more.
    for life in range(LIVES):
        database, refits = tmp_path / f"ended-{life}.db", 0
        number = serving(ended, database, train_size=400)
        if number is not None:
            refits = serving(partial(went_on, number=number), database, train_size=400)
        if refits:
            break

    assert refits == 1
    assert digest_of(database) == whole


async def worked_off(service):
    """Wait until the forecasts of all readings are stored, also of isolated sensors."""
    pool, writer = service.forecasts.pool, service.writer
    await wait_until_async(
        lambda: pool.done >= writer.seq and not pool.failed, "the forecasts of all readings"
    )
