"""How large the state of a sensor is, and that it does not go on growing."""

import numpy as np
import pytest

from streamridge import Workspace, state_content
from streamridge_service.ledger.records import StoredReading
from streamridge_service.plan import HOUR, Plan
from streamridge_service.workers.snapshots import StartHistory, started
from streamridge_service.workers.tracker import Tracker
from tests.support.workers.logs import DAY, SENSOR, START, STEP, World, daily, entries

FULL = Plan(step=STEP)
TWO_HOURS = 2 * HOUR
# Its readings of six weeks and its last 32 refits are what a forecaster remembers at most.
ENOUGH = 3500


def test_a_state_of_full_size_takes_less_than_100_kb(record_property):
    record_property("row", "C5")
    log, before = entries(daily(45 * DAY)), Tracker(SENSOR, FULL)
    history = StartHistory.of(log, FULL)
    point = history.point(SENSOR.id, len(log), "start")

    snapshot = started(point, before.settings, history, before.saved_state(), Workspace())

    tracker = Tracker.resumed(SENSOR, FULL, snapshot)
    assert (tracker.summary.fitted, FULL.train_size) == (True, 5760)
    assert len(snapshot.state) + len(snapshot.summary) + len(snapshot.tuning) < 100_000


def test_a_state_before_the_first_fit_takes_less_than_10_kb(record_property):
    record_property("row", "C5")
    world = World(plan=FULL).follow(entries(daily(3 * DAY - 1)))

    assert not world.tracker.forecaster.tuning.has_model
    assert max(len(each.state) for each in world.snapshots) < 10_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_full_state_does_not_grow(seed, record_property):
    record_property("row", "C5")
    world = World(plan=Plan(step=TWO_HOURS, train_size=48))
    rng, sizes = np.random.default_rng(seed), []
    for i in range(2 * ENOUGH):
        value = float(100 + 50 * np.sin(2 * np.pi * i / 12) + 5 * rng.standard_normal())
        world.take(
            StoredReading(i + 1, 1, START // TWO_HOURS * TWO_HOURS + i * TWO_HOURS, value, 0)
        )
        if i % 10 == 0:
            # How well arrays can be packed changes with their content.
            _, arrays = state_content(world.tracker.to_bytes())
            sizes.append(sum(each.nbytes for each in arrays.values()))
            # These data are stored in the ledger; they are not part of the state.
            world.log, world.issued = world.log[-200:], []
            world.snapshots = world.snapshots[-1:]

    half = len(sizes) // 2
    assert max(sizes[half:]) <= 1.01 * max(sizes[:half])
