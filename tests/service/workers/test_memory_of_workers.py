"""A worker process keeps within its memory, as measured, and may be slow because of it."""

from time import monotonic

import msgspec
import pytest

from streamridge import Workspace
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import SensorRow
from streamridge_service.memory import refit_bytes, resident_bytes
from streamridge_service.plan import Plan
from streamridge_service.workers import pool
from streamridge_service.workers.messages import TakeReadings
from streamridge_service.workers.pool import WorkerHandle
from streamridge_service.workers.snapshots import StartHistory, started
from streamridge_service.workers.tracker import Tracker
from streamridge_service.workers.worker import ITEMS, WorkerConfig
from tests.support.waiting import wait_until
from tests.support.workers.logs import SENSOR, START, STEP, daily, entries

MB = 1_000_000
PLAN = Plan(step=STEP, train_size=1440)
SENSORS, STEPS = 120, 2
# Without a limit, the sensors hold 0.7 MB each. This much is allowed for all of them.
ALLOWED, SLACK = 30 * MB, 15 * MB


@pytest.fixture(scope="module")
def snapshot():
    """Return the snapshot of a sensor with a model."""
    tracker = Tracker(SENSOR, PLAN)
    history = StartHistory.of(entries(daily(1800)), tracker.plan)
    point = history.point(SENSOR.id, 0, "start")
    return started(point, tracker.settings, history, tracker.saved_state(), Workspace())


def test_a_worker_process_stays_within_its_limit(snapshot, tmp_path):
    path, answers = tmp_path / "a.db", []
    with open_ledger(str(path)) as ledger:
        sensors = [SensorRow(i, f"sensor-{i}", START) for i in range(1, SENSORS + 1)]
        ledger.append(sensors)
        ledger.add_snapshots([copied(snapshot, each) for each in sensors])
        config = WorkerConfig(str(path), PLAN, sensors, done=0, memory=10**10)
        handle = WorkerHandle(config, lambda _, message: answers.append(message))
        try:
            handle.send(TakeReadings(0, [], []))
            held = [taken(handle, answers, 0)]
            handle.limit_memory(held[0] + ALLOWED + refit_bytes(PLAN))
            for number, reading in enumerate(entries(daily(STEPS), first=1800), 1):
                step = [
                    msgspec.structs.replace(reading, seq=(number - 1) * SENSORS + i, sensor=i)
                    for i in range(1, SENSORS + 1)
                ]
                ledger.append(readings=step)
                handle.send(TakeReadings(number, step, []))
                held.append(taken(handle, answers, number))
        finally:
            handle.stop(5.0)

    forecasts = [each for message in answers for each in message.forecasts]
    assert len(forecasts) == SENSORS * STEPS
    assert max(held) - held[0] < ALLOWED + SLACK


def test_a_slow_worker_is_not_taken_for_a_hanging_one(tmp_path, monkeypatch):
    with open_ledger(str(tmp_path / "a.db")):
        pass
    config = WorkerConfig(str(tmp_path / "a.db"), PLAN, [], done=0, memory=10**10)
    now = monotonic()
    monkeypatch.setattr(pool, "monotonic", lambda: now)
    handle = WorkerHandle(config, lambda _, message: None)
    try:
        handle.unanswered[1] = now, TakeReadings(1, [], [])
        for _ in range(3):  # each time it has processed one more item
            now += 0.9 * pool.ANSWER_TIMEOUT
            handle._shared[ITEMS] += 1
            handle.kill_if_hanging()
        slow = handle.pid, resident_bytes(handle.pid)
        now += 1.1 * pool.ANSWER_TIMEOUT
        handle.kill_if_hanging()
        wait_until(lambda: handle.restarts or handle.pid != slow[0], "another process")
    finally:
        handle.stop(5.0)

    assert slow[1] > 0


def copied(snapshot, sensor):
    point = msgspec.structs.replace(snapshot.point, sensor=sensor.id)
    return msgspec.structs.replace(snapshot, point=point)


def taken(handle, answers, number):
    """Wait for the answer of a number; return the memory that the worker holds."""
    wait_until(lambda: any(each.number == number for each in list(answers)), "the answer")
    return handle.resident
