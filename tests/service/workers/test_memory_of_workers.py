"""A worker process keeps within its memory, as the operating system measures it."""

import msgspec
import pytest

from streamridge import Workspace
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import SensorRow
from streamridge_service.plan import Plan
from streamridge_service.workers.messages import TakeReadings
from streamridge_service.workers.pool import WorkerHandle
from streamridge_service.workers.snapshots import StartHistory, started
from streamridge_service.workers.tracker import Tracker
from streamridge_service.workers.worker import REFIT_BYTES, WorkerConfig
from tests.support.waiting import wait_until
from tests.support.workers.logs import SENSOR, START, STEP, daily, entries

MB = 1_000_000
PLAN = Plan(step=STEP, train_size=1440)
SENSORS, STEPS = 120, 3
# The sensors would hold about 0.7 MB each; this much is allowed for all of them.
ALLOWED, SLACK = 30 * MB, 15 * MB


@pytest.fixture(scope="module")
def snapshot():
    """Return the snapshot of a sensor with a model."""
    tracker = Tracker(SENSOR, PLAN)
    history = StartHistory.of(entries(daily(1800)), tracker.plan)
    point = history.point(SENSOR.id, 0, "start")
    return started(point, tracker.settings, history, tracker.saved_state(), Workspace())


def test_a_worker_process_stays_within_its_limit_and_makes_the_same_forecasts(snapshot, tmp_path):
    rich, above = forecasts_of(tmp_path / "rich.db", snapshot, 10**10)
    poor, held = forecasts_of(tmp_path / "poor.db", snapshot, ALLOWED)

    assert max(held) < ALLOWED + SLACK < max(above)
    assert poor == rich


def forecasts_of(path, snapshot, allowed):
    """Return the forecasts of a worker, and how much more it held after each step."""
    answers = []
    with open_ledger(str(path)) as ledger:
        sensors = [SensorRow(i, f"sensor-{i}", START) for i in range(1, SENSORS + 1)]
        ledger.append(sensors)
        ledger.add_snapshots([copied(snapshot, each) for each in sensors])
        config = WorkerConfig(str(path), PLAN, sensors, done=0, memory=10**10)
        handle = WorkerHandle(config, lambda _, message: answers.append(message))
        try:
            handle.send(TakeReadings(0, [], []))
            held = [taken(handle, answers, 0)]
            handle.limit_memory(held[0] + allowed + REFIT_BYTES * PLAN.train_size**2)
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
    forecasts = {each.seq: each for message in answers for each in message.forecasts}
    assert len(forecasts) == SENSORS * STEPS
    return forecasts, [each - held[0] for each in held[1:]]


def copied(snapshot, sensor):
    point = msgspec.structs.replace(snapshot.point, sensor=sensor.id)
    return msgspec.structs.replace(snapshot, point=point)


def taken(handle, answers, number):
    """Wait for the answer of a number; return the memory that the worker holds."""
    wait_until(lambda: any(each.number == number for each in list(answers)), "the answer")
    return handle.resident
