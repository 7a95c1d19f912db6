"""Readings that come in another order, or again: none is lost, and no byte of a state changes."""

import tempfile
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamridge_service import intake
from streamridge_service.intake import IngestOptions, Intake, NewRows
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import SensorRow
from streamridge_service.rows import Batch, Row
from streamridge_service.stream_clock import StreamClock
from streamridge_service.workers.tracker import Tracker
from tests.support.workers.logs import DAY, PLAN, START, STEP, World, daily, numbered
from tests.support.workers.recording_forecaster import record_readings

NAMES = ("north", "south", "east")
COURSES = {name: daily(2 * DAY, seed=i) for i, name in enumerate(NAMES)}
# Two days of three sensors, in the order of their times.
ROWS = [(name, START + i * STEP, COURSES[name][i]) for i in range(2 * DAY) for name in NAMES]
AT_MOST = 5  # times that a batch is sent


@pytest.fixture
def diaries(monkeypatch):
    record_readings(monkeypatch)


def stored(batches):
    """Return the logs of sensors, after batches of rows went through an intake into a ledger."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(str(Path(folder) / "a.db")) as ledger,
    ):
        desk, last = Intake(ledger, PLAN, [], max_sensors=3, clock=StreamClock()), 0
        for rows in batches:
            group = NewRows(last)
            batch = Batch([Row(i + 1, *row) for i, row in enumerate(rows)], [])
            assert desk.classify(batch, IngestOptions(), group, START).refused == 0
            ledger.append(list(group.sensors.values()), group.readings)
            desk.committed(group)
            last = group.last_seq
        return {sensor.name: ledger.readings(sensor.id) for sensor in ledger.sensors()}


def followed(logs):
    """Return sensors that were followed through their logs."""
    return {
        name: World(SensorRow(1, name, START)).follow(numbered(log)) for name, log in logs.items()
    }


def require_the_same(batches, right):
    """Send batches, and require that each row is stored once, and each state is as it should be."""
    logs = stored(batches)
    found = [(name, entry.time, entry.value) for name, log in logs.items() for entry in log]
    worlds = followed(logs)

    assert sorted(found) == sorted(ROWS)
    assert {name: world.digest for name, world in worlds.items()} == right
    return sum(world.rebuilt for world in worlds.values())


def in_time():
    """Return the states of the sensors if each reading comes in time, and once."""
    worlds = followed(stored([ROWS]))
    assert all(world.snapshots for world in worlds.values())
    return {name: world.digest for name, world in worlds.items()}


def shuffled(rng, share):
    """Return the rows in another order within the grace: a share of them is late."""
    late = [rng.uniform(0, PLAN.open_for) if rng.random() < share else 0 for _ in ROWS]
    order = sorted(range(len(ROWS)), key=lambda i: ROWS[i][1] + late[i])
    return [ROWS[i] for i in order]


def parted(rng, rows):
    """Return rows in about twenty batches."""
    borders = sorted({0, len(rows), *(rng.randrange(len(rows)) for _ in range(20))})
    return [rows[first:last] for first, last in pairwise(borders)]


def try_shuffles(cases):
    """Send the rows in as many orders; return how often a sensor was read again for that."""
    right, rebuilt = in_time(), []

    # A smaller seed is no simpler order.
    @settings(max_examples=cases, database=None, phases=[Phase.generate])
    @given(st.integers(0, 2**32 - 1))
    def is_the_same(seed):
        rng = Random(seed)
        batches = parted(rng, shuffled(rng, share=rng.uniform(0, 0.15)))
        rebuilt.append(require_the_same(batches, right))

    is_the_same()
    return rebuilt


def try_resending(cases):
    """Send each batch once to five times, as many times over; return how many were sent again."""
    right, again = in_time(), 0
    for seed in range(cases):
        rng = Random(seed)
        batches = [[batch] * rng.randint(1, AT_MOST) for batch in parted(rng, ROWS)]
        require_the_same([batch for copies in batches for batch in copies], right)
        again += sum(len(copies) - 1 for copies in batches)
    return again


class TestAnotherOrder:
    @pytest.mark.parametrize("cases", [8, pytest.param(5000, marks=pytest.mark.slow)])
    @pytest.mark.usefixtures("diaries")
    def test_a_forecaster_gets_the_same_readings_in_the_same_order(self, cases, record_property):
        rebuilt = try_shuffles(cases)

        record_property("row", "B1")
        record_property("cases", len(rebuilt))
        assert len(rebuilt) >= cases
        assert sum(rebuilt) > cases

    @pytest.mark.parametrize("cases", [1, pytest.param(100, marks=pytest.mark.slow)])
    def test_shuffled_readings_give_the_same_state(self, cases, record_property):
        rebuilt = try_shuffles(cases)

        record_property("row", "B1")
        record_property("cases", len(rebuilt))
        assert sum(rebuilt) > 0

    @pytest.mark.usefixtures("diaries")
    def test_a_tracker_without_reordering_fails_these_tests(self, monkeypatch, record_property):
        record_property("row", "B1 broken")
        monkeypatch.setattr(Tracker, "process", lambda self, item: self._process(item, set()))

        with pytest.raises(AssertionError):
            try_shuffles(10)


class TestAgain:
    @pytest.mark.parametrize("cases", [4, pytest.param(10, marks=pytest.mark.slow)])
    @pytest.mark.usefixtures("diaries")
    def test_batches_that_are_sent_again_change_nothing(self, cases, record_property):
        record_property("row", "B2")
        record_property("cases", try_resending(cases))

    @pytest.mark.usefixtures("diaries")
    def test_an_intake_without_duplicate_detection_fails_these_tests(
        self, monkeypatch, record_property
    ):
        record_property("row", "B2 broken")
        monkeypatch.setattr(intake, "_status", lambda *args: "new")

        with pytest.raises(AssertionError):
            try_resending(1)
