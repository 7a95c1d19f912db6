"""Received rows are accepted, recognized, held or refused."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge_service.intake import AHEAD, HOLD, IngestOptions, Intake, NewRows
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import Kind, SensorRow
from streamridge_service.plan import MINUTE, Declaration, Plan
from streamridge_service.rows import Batch, Refusal, Row

STEP = 15 * MINUTE
NOW = 1_700_000_100_000_000 // STEP * STEP
PLAN = Plan(step=STEP)


class Desk:
    """An intake with a ledger, and a clock that can be set."""

    def __init__(self, path, most=50_000, plan=PLAN):
        self.ledger, self.now = open_ledger(path), NOW
        self.intake = Intake(self.ledger, plan, [], max_sensors=most, now=lambda: self.now)
        self.last = 0

    def take(self, *rows, **wish):
        return self.take_batch(Batch([Row(i + 1, *row) for i, row in enumerate(rows)], []), **wish)

    def take_batch(self, batch, **wish):
        group = NewRows(self.last)
        receipt = self.intake.classify(batch, IngestOptions(**wish), group, self.now)
        self.commit(group)
        return receipt

    def commit(self, group):
        self.ledger.append(list(group.sensors.values()), group.readings)
        self.intake.committed(group)
        self.last = group.last_seq

    def declare(self, name, **declared):
        row = SensorRow(
            len(self.intake.sensors) + 1, name, NOW, msgspec.json.encode(Declaration(**declared))
        )
        self.ledger.append([row])
        self.intake.update_sensor(row)
        return row


@pytest.fixture
def desk(tmp_path):
    desk = Desk(str(tmp_path / "a.db"))
    yield desk
    desk.ledger.close()


def codes(receipt):
    return [each.code for each in receipt.refusals]


def test_a_new_reading_is_accepted_and_creates_its_sensor(desk):
    receipt = desk.take(("a", NOW, 1.0), ("b", NOW, None))

    assert (receipt.accepted, receipt.written, receipt.refused) == (2, 2, 0)
    assert [each.name for each in desk.ledger.sensors()] == ["a", "b"]
    assert [each.value for each in desk.ledger.readings(1)] == [1.0]


def test_an_equal_reading_is_a_duplicate(desk, record_property):
    record_property("row", "B2")
    record_property("cases", 5)
    rows = [("a", NOW - k * STEP, float(k)) for k in range(3)]
    desk.take(*rows)

    for _ in range(5):
        assert desk.take(*rows).duplicate == 3
    assert desk.take(rows[0], rows[0]).duplicate == 2
    assert len(desk.ledger.readings(1)) == 3


def test_an_equal_reading_in_one_batch_is_a_duplicate(desk):
    receipt = desk.take(("a", NOW, 1.0), ("a", NOW, 1.0))

    assert (receipt.accepted, receipt.duplicate) == (1, 1)


def test_another_value_is_a_conflict_and_the_first_stays(desk, record_property):
    record_property("row", "B3")
    record_property("cases", 1000)
    for k in range(10):
        desk.take(*((f"s{i}", NOW - k * STEP, 1.0) for i in range(100)))

    for k in range(10):
        receipt = desk.take(*((f"s{i}", NOW - k * STEP, 2.0) for i in range(100)))
        assert receipt.refused == 100
        assert set(codes(receipt)) == {"sr-conflict"}
    assert {each.value for each in desk.ledger.readings(1)} == {1.0}


def test_a_revision_and_the_replaced_reading_are_stored(desk):
    desk.take(("a", NOW, 1.0))

    receipt = desk.take(("a", NOW, 2.0), on_conflict="replace")

    assert receipt.replaced == 1
    kept = desk.ledger.readings(1)
    assert [(each.value, each.kind) for each in kept] == [(1.0, Kind.LIVE), (2.0, Kind.REVISION)]
    assert desk.take(("a", NOW, 2.0)).duplicate == 1


def test_readings_ahead_of_the_clock_are_accepted_held_or_refused(desk, record_property):
    record_property("row", "B4")
    near, far = NOW + AHEAD - 1, NOW + HOLD
    desk.intake._plan = msgspec.structs.replace(PLAN, rule="last")

    receipt = desk.take(("a", near, 1.0), ("a", far, 2.0), ("a", far + STEP, 3.0))

    assert (receipt.accepted, receipt.held, codes(receipt)) == (1, 1, ["sr-future"])
    assert desk.take(("a", far, 2.0)).duplicate == 1


def test_a_held_reading_arrives_when_its_time_has_come(desk):
    time = NOW + 10 * STEP
    desk.take(("a", time, 1.0))
    group = NewRows(desk.last)
    desk.intake.release_held(NOW, group, NOW)
    assert not group.readings

    desk.now = time
    desk.intake.release_held(time, group, time)
    desk.commit(group)

    assert [each.kind for each in desk.ledger.readings(1)] == [Kind.HELD, Kind.LIVE]
    assert not desk.intake.held
    assert not desk.ledger.held()
    assert desk.take(("a", time, 1.0)).duplicate == 1


def test_a_revision_of_a_held_reading_is_held_too(desk):
    ahead = NOW + 20 * STEP
    desk.take(("a", NOW, 1.0), ("a", ahead, 1.0))

    receipt = desk.take(("a", ahead, 2.0), on_conflict="replace")

    assert (receipt.held, receipt.replaced) == (1, 0)
    assert desk.take(("a", NOW + STEP, 1.0)).accepted + desk.take(("a", NOW - STEP, 1.0)).accepted


def test_no_time_is_refused_while_the_clock_is_suspect(desk, record_property):
    record_property("row", "B5")
    record_property("cases", 100)
    desk.take(("a", NOW, 1.0))
    for k in range(100):
        desk.intake.clock_jumped = True
        desk.now = NOW + (-12 if k % 2 else 12) * 4 * STEP - HOLD
        receipt = desk.take(("a", NOW + (k + 1) * STEP, float(k)))
        assert receipt.refused == 0
    desk.now, desk.intake.clock_jumped = NOW + 200 * STEP, False
    group = NewRows(desk.last)
    desk.intake.release_held(desk.now, group, desk.now)
    desk.commit(group)

    live = {each.time for each in desk.ledger.readings(1) if each.kind == Kind.LIVE}
    assert live == {NOW + k * STEP for k in range(101)}


def test_a_reading_between_steps_needs_a_rule(desk, record_property):
    record_property("row", "B13")
    desk.declare("fine", rule="sum")

    receipt = desk.take(("a", NOW + 5 * MINUTE, 1.0), ("fine", NOW - 5 * MINUTE, 1.0))

    assert codes(receipt) == ["sr-off-grid"]
    assert receipt.accepted == 1
    assert "a" not in desk.intake.sensors


def test_a_value_outside_its_bounds_is_stored_as_implausible(desk, record_property):
    record_property("row", "B9")
    desk.declare("a", bounds=(0.0, None))

    receipt = desk.take(("a", NOW, -1.0), ("a", NOW - STEP, 1e6))

    assert (receipt.implausible, receipt.accepted) == (1, 1)


def test_old_readings_are_late(desk):
    desk.take(("a", NOW, 1.0))

    receipt = desk.take(("a", NOW - STEP, 1.0), ("a", NOW - 2 * STEP, 1.0))

    assert (receipt.accepted, receipt.late) == (1, 1)


def test_too_many_sensors_are_refused(tmp_path, record_property):
    record_property("row", "B11")
    record_property("cases", 1000)
    desk = Desk(str(tmp_path / "a.db"), most=10)

    receipt = desk.take(*((f"s{i}", NOW, 1.0) for i in range(1000)))

    assert (receipt.accepted, receipt.refused) == (10, 990)
    assert set(codes(receipt)) == {"sr-too-many-sensors"}
    desk.ledger.close()


def test_readings_of_an_archived_sensor_are_refused(desk):
    row = desk.declare("a")
    desk.intake.update_sensor(msgspec.structs.replace(row, archived=NOW))

    assert codes(desk.take(("a", NOW, 1.0))) == ["sr-archived"]


def test_an_atomic_batch_is_stored_whole_or_not_at_all(desk):
    bad = Batch([Row(1, "a", NOW, 1.0)], [Refusal(2, "sr-bad-time", "x")])

    receipt = desk.take_batch(bad, atomic=True)

    assert (receipt.written, receipt.refused) == (0, 1)
    assert desk.ledger.last_seq() == 0
    assert not desk.intake.sensors
    assert desk.take_batch(bad).written == 1


def test_a_backfill_is_marked(desk):
    desk.take(("a", NOW, 1.0), mode="backfill")

    assert desk.ledger.readings(1)[0].kind == Kind.BACKFILL


def test_one_row_far_ahead_among_many_changes_no_other(desk, tmp_path, record_property):
    record_property("row", "B4")
    record_property("cases", 10_000)
    rows = [(f"s{i}", NOW, float(i)) for i in range(10_000)]
    other = Desk(str(tmp_path / "b.db"))
    desk.take(*rows)
    other.take(*rows[:5000], ("s0", NOW + 20 * STEP, 1.0), *rows[5000:])

    def known(desk):
        return [
            [(e.time, e.value) for e in desk.ledger.readings(i) if e.kind != Kind.HELD]
            for i in range(1, 200)
        ]

    assert known(desk) == known(other)
    other.ledger.close()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(-5, 5), st.sampled_from([1.0, 2.0, None])),
            max_size=6,
        ),
        max_size=5,
    )
)
def test_the_first_value_of_a_time_counts(tmp_path_factory, batches):
    desk = Desk(str(tmp_path_factory.mktemp("intake") / "a.db"))
    first = {}
    for batch in batches:
        rows = [(name, NOW - (5 + step) * STEP, value) for name, step, value in batch]
        receipt = desk.take(*rows)
        for name, time, value in rows:
            first.setdefault((name, time), value)
        assert receipt.written + receipt.duplicate + receipt.refused == len(rows)

    stored = {
        (sensor.name, entry.time): entry.value
        for sensor in desk.ledger.sensors()
        for entry in desk.ledger.readings(sensor.id)
    }
    assert stored == first
    desk.ledger.close()
