"""How a pool counts crashes: which sensors it isolates, for how long, and what waits for them."""

from contextlib import contextmanager
from multiprocessing import Pipe
from queue import SimpleQueue

import pytest

from streamridge_service.workers import messages, pool
from streamridge_service.workers.messages import (
    AskForecast,
    FromWorker,
    ItemProcessed,
    SensorFailed,
    SensorRecovered,
)
from streamridge_service.workers.pool import FIRST_ISOLATION, LONGEST_ISOLATION, WorkerHandle
from streamridge_service.workers.worker import (
    ADOPTED,
    ASKED,
    ITEMS,
    LOADED,
    PREPARED,
    SENSOR,
    SEQ,
    WorkerConfig,
)
from tests.support.workers.logs import PLAN
from tests.support.workers.logs import SENSOR as ROW

PATIENCE = 60.0  # seconds to wait for a thread of the handle


class EndedProcess:
    """A process of which only the connection is used."""

    pid = None

    def kill(self):
        pass

    def join(self, timeout=None):
        pass

    def is_alive(self):
        return False


class PlayedWorker:
    """The worker of a handle, played by the test: it sends messages and crashes when told to."""

    def __init__(self):
        self._starts = SimpleQueue()
        self.config, self._connection = None, None

    def start_process(self, handle):
        ours, theirs = Pipe()
        self._starts.put((handle._config, theirs))
        return EndedProcess(), ours

    def hear(self, handle, message: FromWorker):
        if isinstance(message, SensorRecovered):
            handle.recover(message.sensor)

    def begin(self):
        self.config, self._connection = self._starts.get(timeout=PATIENCE)

    def send(self, message: FromWorker):
        self._connection.send_bytes(messages.encode(message))

    def crash(self, seq, sensor=ROW.id):
        """Crash while an item is processed; return the failed sensors that the next one is told.

        They are given as arrival numbers that wait, and seconds of isolation.
        """
        self.handle._shared[SENSOR], self.handle._shared[SEQ] = sensor, seq
        self._connection.close()
        self.begin()
        return {each.sensor: (each.seq, pause) for each, pause in self.config.failed}

    @contextmanager
    def hired(self):
        config = WorkerConfig("", PLAN, [ROW], done=0, memory=0)
        self.handle = WorkerHandle(config, self.hear)
        self.begin()
        try:
            yield self
        finally:
            self.leave()
            self.handle.stop(0)

    def leave(self):
        """End without being restarted."""
        self.handle._stopping.set()
        self._connection.close()


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr("streamridge_service.workers.pool.EARLY_CRASH", 0.0)
    played = PlayedWorker()
    monkeypatch.setattr(WorkerHandle, "_start_process", lambda handle: played.start_process(handle))
    with played.hired():
        yield played


@pytest.mark.parametrize("seq", [PREPARED, ADOPTED])
def test_a_refit_that_ends_workers_isolates_its_sensor_although_it_can_be_loaded(worker, seq):
    worker.crash(seq)
    worker.send(ItemProcessed(ROW.id, LOADED))

    assert worker.crash(seq) == {ROW.id: (0, FIRST_ISOLATION)}


@pytest.mark.parametrize("seq", [LOADED, ASKED, 7])
def test_an_item_that_is_processed_between_two_crashes_is_not_blamed(worker, seq, record_property):
    record_property("row", "C2")
    record_property("cases", 1)
    assert worker.crash(seq) == {}
    assert worker.config.suspects == {(ROW.id, seq)}
    worker.send(ItemProcessed(ROW.id, seq))

    assert worker.crash(seq) == {}


@pytest.mark.parametrize(("seq", "first"), [(LOADED, 0), (ASKED, 0), (7, 7)])
def test_two_crashes_in_a_row_during_one_item_isolate_its_sensor(worker, seq, first):
    worker.crash(seq)

    assert worker.crash(seq) == {ROW.id: (first, FIRST_ISOLATION)}


def test_a_sensor_that_ends_workers_when_it_is_loaded_again_is_isolated_for_longer(worker):
    worker.crash(7)
    worker.crash(7)

    pauses = [worker.crash(LOADED)[ROW.id] for _ in range(12)]

    # Its first waiting reading stays known: forecasts from there on are missing.
    assert pauses[:3] == [(7, 2 * FIRST_ISOLATION), (7, 4 * FIRST_ISOLATION), (7, 80.0)]
    assert pauses[-1] == (7, LONGEST_ISOLATION)


def test_a_recovered_sensor_is_not_blamed_for_its_earlier_crashes(worker):
    worker.crash(7)
    worker.crash(7)
    worker.send(SensorRecovered(ROW.id))

    assert worker.crash(9) == {}
    assert worker.crash(LOADED) == {}


def test_a_forecast_that_ends_workers_isolates_a_recovered_sensor_at_once(worker):
    """Loading succeeds, so that the sensor recovers each time."""
    worker.crash(ASKED)
    worker.crash(ASKED)
    worker.send(SensorRecovered(ROW.id))

    assert worker.crash(ASKED) == {ROW.id: (0, 2 * FIRST_ISOLATION)}


def test_a_crash_in_a_failed_sensor_keeps_its_pause_until_it_repeats(worker):
    worker.send(SensorFailed(ROW.id, 5, "a fault", "a fault"))

    assert worker.crash(LOADED) == {ROW.id: (5, 0.0)}
    assert worker.crash(LOADED) == {ROW.id: (5, FIRST_ISOLATION)}


class StubbornProcess(EndedProcess):
    """A process that runs until it is killed; it notes for how long it was waited for."""

    def __init__(self):
        self.waits, self._is_alive = [], True

    def kill(self):
        self._is_alive = False

    def join(self, timeout=None):
        self.waits.append(timeout)

    def is_alive(self):
        return self._is_alive


class TestStart:
    """A worker counts the items that it has processed, of which its start is the first."""

    @pytest.mark.parametrize(
        ("items", "timeout"), [(0, pool.START_TIMEOUT), (1, pool.ANSWER_TIMEOUT)]
    )
    def test_a_slow_start_is_not_a_hang(self, worker, monkeypatch, items, timeout):
        handle, now = worker.handle, [1000.0]
        monkeypatch.setattr(pool, "monotonic", lambda: now[0])
        handle._process = StubbornProcess()
        handle._shared[ITEMS] = items
        handle.send(AskForecast(1, ROW.id, 0))
        alive = []

        for seconds in (0.0, timeout, 1.0):
            now[0] += seconds
            handle.kill_if_hanging()
            alive.append(handle._process.is_alive())

        assert alive == [True, True, False]

    @pytest.mark.parametrize(("items", "wait"), [(0, 0), (1, 4.0)])
    def test_a_worker_that_has_not_started_is_not_waited_for_at_a_stop(self, worker, items, wait):
        handle = worker.handle
        handle._process = process = StubbornProcess()
        handle._shared[ITEMS] = items

        worker.leave()
        handle.stop(4.0)

        assert process.waits == [wait, None]
        assert not process.is_alive()
