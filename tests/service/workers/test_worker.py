"""The rules of a worker, without its process."""

from contextlib import closing
from multiprocessing import Pipe
from multiprocessing.connection import wait

import msgspec
import pytest

from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import Action, Kind, StoredReading
from streamridge_service.workers import messages, tracker_cache
from streamridge_service.workers import worker as worker_module
from streamridge_service.workers.messages import (
    AskForecast,
    ItemProcessed,
    RefitEnded,
    RefitQueued,
    RefitStarted,
    RunAction,
    SensorFailed,
    TakeReadings,
)
from streamridge_service.workers.refitter import RefitJob, Refitter
from streamridge_service.workers.tracker import Tracker
from streamridge_service.workers.worker import (
    ASKED,
    LIMIT,
    LOADED,
    SHARED,
    Worker,
    WorkerConfig,
)
from tests.support.workers.logs import PLAN, SENSOR, START, STEP, World, daily, entries

LIVED = 350


@pytest.fixture(scope="module")
def lived():
    return World(plan=PLAN).follow(entries(daily(LIVED)))


@pytest.fixture
def ledger(lived, tmp_path):
    with open_ledger(str(tmp_path / "a.db")) as ledger:
        ledger.append([SENSOR], lived.log)
        ledger.add_snapshots([lived.snapshots[-1]])
        yield ledger


class Hired:
    """A worker with one sensor; it may hold as much memory as it likes."""

    def __init__(self, ledger, **config):
        self.service, connection = Pipe()
        self.shared = [0] * len(SHARED)
        self.shared[LIMIT] = 10**12
        known = WorkerConfig("", PLAN, [SENSOR], done=LIVED, memory=0, **config)
        self.worker = Worker(connection, ledger, known, self.shared)

    def sent(self):
        """Return the messages since the last call."""
        sent = []
        while self.service.poll():
            sent.append(messages.decode_for_service(self.service.recv_bytes()))
        return sent

    @property
    def has_parked(self):
        return self.worker._trackers.parked(SENSOR.id) is not None

    def close(self):
        self.worker._refitter.stop()
        self.service.close()


@pytest.fixture
def hired(ledger):
    with closing(Hired(ledger)) as hired:
        yield hired


def test_a_waiting_start_runs_although_its_parked_sensor_must_be_loaded_again(hired, ledger):
    worker = hired.worker
    worker._refitter.sensor = 99  # another sensor is being refitted
    earlier = StoredReading(LIVED + 1, SENSOR.id, START - 5 * STEP, 99.0, 0, Kind.BACKFILL)
    values = msgspec.json.encode({"values": {"regularization": 3.0}})
    action = Action(LIVED + 2, SENSOR.id, "set", values, 0)
    ledger.append([], [earlier], [action])
    worker._take_readings(TakeReadings(1, [earlier], []))
    worker._run_action(RunAction(2, action))  # it changes the state without a snapshot
    hired.shared[LIMIT] = 0
    worker._trackers.limit_memory()
    assert hired.has_parked
    worker._refitter.sensor = None
    hired.sent()

    worker._start_refit()

    kinds = [type(each) for each in hired.sent()]
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


def test_an_idle_worker_applies_a_new_limit(hired, monkeypatch):
    monkeypatch.setattr(worker_module, "IDLE_CHECK", 0.0)
    hired.worker._load_if_absent(SENSOR.id)
    assert hired.worker._answer_next()
    assert not hired.has_parked
    hired.shared[LIMIT] = 0

    assert hired.worker._answer_next()

    assert hired.has_parked


def test_a_failed_sensor_that_is_loaded_again_counts_as_used(ledger, monkeypatch):
    monkeypatch.setattr(tracker_cache, "MEASURE_EVERY", 1)
    failed = SensorFailed(SENSOR.id, 0, "a fault", "a fault")
    with closing(Hired(ledger, failed=((failed, 0.0),))) as hired:
        hired.shared[LIMIT] = 0
        assert hired.worker._answer_next()
        hired.worker._retry_failed()

        assert hired.has_parked


@pytest.mark.parametrize(
    ("seq", "process"),
    [
        (LOADED, lambda worker: worker._load_waiting(SENSOR.id)),
        (ASKED, lambda worker: worker._answer_forecast(AskForecast(1, SENSOR.id, START))),
    ],
)
def test_a_suspected_item_is_cleared_once_when_it_is_processed(ledger, seq, process):
    suspects = frozenset({(SENSOR.id, seq), (SENSOR.id, LIVED + 9)})
    with closing(Hired(ledger, suspects=suspects)) as hired:
        process(hired.worker)
        process(hired.worker)

        cleared = [each for each in hired.sent() if isinstance(each, ItemProcessed)]
    assert cleared == [ItemProcessed(SENSOR.id, seq)]
