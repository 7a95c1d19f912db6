"""Which sensors of a worker are in memory, and that a parked sensor continues bit for bit."""

import msgspec
import pytest

from streamridge_service.ledger.records import SensorRow
from streamridge_service.workers.tracker import Tracker
from streamridge_service.workers.tracker_cache import MEASURE_EVERY, TrackerCache
from tests.support.workers.logs import PLAN, SENSOR, START, World, daily, entries

COUNT, ROUNDS = 18, 4
# What the tests let a tracker take: at rest, awake, and parked.
REST, AWAKE, PARKED = 100, 900, 1


@pytest.fixture(scope="module")
def fitted():
    """Return the snapshot of a sensor with a model, and the readings after it."""
    log = entries(daily(350))
    world = World(plan=PLAN).follow(log)
    snapshot = world.snapshots[-1]
    assert msgspec.json.decode(snapshot.summary)["fitted"]
    return snapshot, [each for each in log if each.seq > snapshot.point.seq]


class Used:
    """Sensors that are used in turn, as a worker does, while their memory is limited."""

    def __init__(self, snapshot, limit):
        self._snapshot, self.limit = snapshot, limit
        self.cache = TrackerCache(lambda: self.limit, lambda: self.held)
        self.loads = self.wakes = 0

    def awake(self):
        return [each for each in self.cache._trackers.values() if each.is_awake]

    @property
    def held(self):
        cache = self.cache
        awake = sum(each.is_awake for each in cache._trackers.values())
        return REST * len(cache._trackers) + AWAKE * awake + PARKED * len(cache._parked)

    def use(self, sensor, reading):
        """Let a sensor process a reading; count whether it had to be loaded or woken."""
        if self.cache.get(sensor) is None:
            self.loads += 1
            row = SensorRow(sensor, f"sensor-{sensor}", START)
            self.cache.put(Tracker.resumed(row, PLAN, self._snapshot))
            self.cache[sensor].release_memory()
        self.wakes += not self.cache[sensor].is_awake
        self.cache[sensor].process(reading)
        self.cache.use(sensor)

    def round(self, reading, sensors=range(1, COUNT + 1)):
        """Use all sensors in turn; return how many had to be loaded, and how many woken."""
        self.loads = self.wakes = 0
        for sensor in sensors:
            self.use(sensor, msgspec.structs.replace(reading, sensor=sensor))
        return self.loads, self.wakes


def test_within_its_limit_everything_stays_in_memory(fitted):
    snapshot, log = fitted
    used = Used(snapshot, COUNT * (REST + AWAKE))

    rounds = [used.round(reading) for reading in log[:3]]

    assert rounds == [(COUNT, COUNT), (0, 0), (0, 0)]


def test_above_it_rows_are_released_first_and_some_sensors_stay_awake(fitted):
    """Sensors in turn are the worst case of releasing the longest unused: all were woken."""
    snapshot, log = fitted
    room = COUNT // 3
    used = Used(snapshot, COUNT * REST + room * AWAKE)

    rounds = [used.round(reading) for reading in log[:ROUNDS]]

    loads, wakes = zip(*rounds[1:], strict=True)
    assert set(loads) == {0}
    assert max(wakes) <= COUNT - room + 2 * MEASURE_EVERY
    assert used.held <= used.limit + MEASURE_EVERY * AWAKE


def test_far_above_it_some_sensors_stay_and_others_are_loaded_once_a_step(fitted):
    snapshot, log = fitted
    room = COUNT // 2
    used = Used(snapshot, room * REST + COUNT * PARKED)

    rounds = [used.round(reading) for reading in log[:ROUNDS]]

    loads, _ = zip(*rounds[2:], strict=True)
    assert max(loads) <= COUNT - room + 2 * MEASURE_EVERY
    assert max(loads) - min(loads) <= MEASURE_EVERY, "as many in each step"
    assert used.held <= used.limit + MEASURE_EVERY * (REST + AWAKE)


def test_without_any_room_each_sensor_is_loaded_once_a_step(fitted):
    snapshot, log = fitted
    used = Used(snapshot, 0)

    rounds = [used.round(reading) for reading in log[:ROUNDS]]

    assert {loads for loads, _ in rounds} == {COUNT}
    assert not used.awake()


def test_sensors_out_of_use_leave_before_others(fitted):
    snapshot, log = fitted
    half = COUNT // 2
    used = Used(snapshot, half * (REST + AWAKE) + COUNT * PARKED)
    used.round(log[0], range(1, half + 1))  # they are used once, and never again

    rounds = [used.round(reading, range(half + 1, COUNT + 1)) for reading in log[:8]]

    loads, wakes = rounds[-1]
    assert loads == 0
    assert wakes <= 2 * MEASURE_EVERY


@pytest.mark.parametrize("rule", ["mean", pytest.param(None, marks=pytest.mark.slow)])
def test_a_sensor_that_is_parked_between_readings_continues_bit_for_bit(rule):
    plan = msgspec.structs.replace(PLAN, rule=rule)
    log = entries(daily(450))
    stays, leaves, pending = World(plan=plan), World(plan=plan), []

    for reading in log:
        stays.take(reading)
        leaves.take(reading)
        if reading.seq % 5 == 0 or reading.seq > 420:
            parked = leaves.tracker.parked()
            snapshot = leaves.snapshots[-1] if parked.summary.fitted else None
            if snapshot is not None and parked.pending is not None:
                pending.append(len(parked.pending.state) / len(snapshot.state))
            leaves.tracker = Tracker.unparked(SENSOR, plan, parked, snapshot)

    assert leaves.tracker.summary.fitted
    assert 0 < max(pending) < 0.7, "a pending refit is parked without its snapshot, too"
    assert leaves.digest == stays.digest
    assert leaves.issued == stays.issued
