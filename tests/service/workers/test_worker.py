"""The rules of a worker, without its process."""

from multiprocessing.connection import wait

import msgspec
import pytest

from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import Action, Kind, StoredReading
from streamridge_service.workers import messages
from streamridge_service.workers.messages import (
    RefitEnded,
    RefitQueued,
    RefitStarted,
    RunAction,
    TakeReadings,
)
from streamridge_service.workers.refitter import Refitter, RefitJob
from streamridge_service.workers.tracker import Tracker
from streamridge_service.workers.worker import LIMIT, SHARED, Worker, WorkerConfig
from tests.support.workers.logs import PLAN, SENSOR, START, STEP, World, daily, entries

LIVED = 350


class Pipe:
    """A connection that keeps the messages of a worker."""

    def __init__(self):
        self.sent = []

    def send_bytes(self, message):
        self.sent.append(messages.decode_for_service(message))


@pytest.fixture(scope="module")
def lived():
    return World(plan=PLAN).follow(entries(daily(LIVED)))


@pytest.fixture
def ledger(lived, tmp_path):
    with open_ledger(str(tmp_path / "a.db")) as ledger:
        ledger.append([SENSOR], lived.log)
        ledger.add_snapshots([lived.snapshots[-1]])
        yield ledger


@pytest.fixture
def worker(ledger):
    """Return a worker with one sensor; it may hold as much memory as it likes."""
    shared = [0] * len(SHARED)
    shared[LIMIT] = 10**12
    config = WorkerConfig("", PLAN, [SENSOR], done=LIVED, memory=0)
    worker = Worker(Pipe(), ledger, config, shared)
    yield worker
    worker._refitter.stop()


def park_all(worker):
    worker._shared[LIMIT] = 0
    worker._trackers.limit_memory()
    assert worker._trackers.parked(SENSOR.id) is not None


def test_a_waiting_start_runs_although_its_parked_sensor_must_be_loaded_again(worker, ledger):
    worker._refitter.sensor = 99  # another sensor is being refitted
    earlier = StoredReading(LIVED + 1, SENSOR.id, START - 5 * STEP, 99.0, 0, Kind.BACKFILL)
    values = msgspec.json.encode({"values": {"regularization": 3.0}})
    action = Action(LIVED + 2, SENSOR.id, "set", values, 0)
    ledger.append([], [earlier], [action])
    worker._take_readings(TakeReadings(1, [earlier], []))
    worker._run_action(RunAction(2, action))  # it changes the state without a snapshot
    park_all(worker)
    worker._refitter.sensor = None
    worker._connection.sent.clear()

    worker._start_refit()

    kinds = [type(each) for each in worker._connection.sent]
    assert RefitStarted in kinds
    assert not {RefitEnded, RefitQueued} & set(kinds)
    assert worker._refitter.sensor == SENSOR.id
    assert not worker._waiting


def test_only_a_fit_of_full_size_ends_the_reserve_of_memory_for_refits(lived):
    young, refitter = Tracker(SENSOR, PLAN), Refitter()
    for reading in lived.log:
        young.process(reading)
        if young.due_refit is not None:
            break
    saved = lived.tracker.saved_state()
    refit = msgspec.structs.replace(saved.point, kind="refit")
    full = msgspec.structs.replace(saved, point=refit)

    seen = []
    for state in (young.due_refit, saved, full, saved):
        refitter.submit(RefitJob(state))
        assert wait([refitter.ready], 60)
        kinds = [result.outcome.point.kind for result in refitter.finished()]
        seen.append((*kinds, refitter.has_full_fit))
    refitter.stop()

    assert seen == [("kept", False), ("kept", False), ("refit", True), ("kept", True)]
