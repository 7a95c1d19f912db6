"""Received rows are accepted, recognized, held or refused."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge_service.intake import AHEAD, HOLD, IngestOptions, Intake, NewRows
from streamridge_service.ledger import revisions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import Kind, SensorRow
from streamridge_service.ledger.revisions import counting_readings
from streamridge_service.plan import DAY, MINUTE, SECOND, Declaration, Plan
from streamridge_service.rows import Batch, Refusal, Row
from streamridge_service.stream_clock import StreamClock

STEP = 15 * MINUTE
NOW = 1_700_000_100_000_000 // STEP * STEP
PLAN = Plan(step=STEP)


class Desk:
    """An intake with a ledger, and a clock that can be set."""

    def __init__(self, path, most=50_000, plan=PLAN, clock=None):
        self.ledger, self.now = open_ledger(path), NOW
        clock = clock or (lambda: self.now)
        self.intake = Intake(self.ledger, plan, [], max_sensors=most, clock=clock)
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


@pytest.fixture
def asked(desk, monkeypatch):
    """Return the spans of time for which the ledger is asked, in steps before `NOW`."""
    asked, readings = [], desk.ledger.readings

    def counting(sensor, *, start, end):
        asked.append(((NOW - end) // STEP, (NOW - start) // STEP))
        return readings(sensor, start=start, end=end)

    monkeypatch.setattr(desk.ledger, "readings", counting)
    return asked


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


class TestNull:
    """Null says that there is no measurement; a value may follow."""

    @pytest.mark.parametrize("on_conflict", ["keep", "replace"])
    def test_a_value_fills_in_for_null(self, desk, on_conflict):
        desk.take(("a", NOW, None))

        receipt = desk.take(("a", NOW, 5.0), on_conflict=on_conflict)

        assert (receipt.accepted, receipt.replaced, receipt.refused) == (1, 0, 0)
        kinds = [(each.value, each.kind) for each in desk.ledger.readings(1)]
        assert kinds == [(None, Kind.LIVE), (5.0, Kind.FILL)]
        assert codes(desk.take(("a", NOW, 6.0))) == ["sr-conflict"]

    def test_a_value_fills_in_for_null_of_the_same_batch(self, desk):
        assert desk.take(("a", NOW, None), ("a", NOW, 5.0)).accepted == 2
        assert desk.take(("a", NOW, 5.0)).duplicate == 1

    def test_an_old_null_is_filled_late(self, desk):
        desk.take(("a", NOW - 9 * STEP, None), ("a", NOW, 1.0))

        receipt = desk.take(("a", NOW - 9 * STEP, 5.0))

        assert (receipt.late, receipt.refused) == (1, 0)

    def test_null_after_a_value_changes_nothing(self, desk):
        rows = [("a", NOW, None), ("b", NOW, 1.0)]
        desk.take(*rows)
        desk.take(("a", NOW, 5.0), ("b", NOW, None))

        # The first request is sent again.
        assert desk.take(*rows).duplicate == 2
        assert [each.value for each in desk.ledger.readings(2)] == [1.0]

    def test_null_replaces_a_value_on_request_and_can_be_filled_again(self, desk):
        desk.take(("a", NOW, 5.0))

        assert desk.take(("a", NOW, None), on_conflict="replace").replaced == 1
        assert desk.take(("a", NOW, 6.0)).accepted == 1
        kinds = [each.kind for each in desk.ledger.readings(1)]
        assert kinds == [Kind.LIVE, Kind.REVISION, Kind.FILL]

    def test_a_backfill_may_fill_null(self, desk):
        desk.take(("a", NOW - STEP, None), ("a", NOW, 1.0))

        desk.take(("a", NOW - STEP, 5.0), mode="backfill")

        assert [each.kind for each in desk.ledger.readings(1)][-1] == Kind.BACKFILL


class TestSteps:
    """Without a rule, all times about a step are times of that step."""

    def test_times_of_one_step_are_duplicates_or_conflicts(self, desk, record_property):
        record_property("row", "B3")
        near = NOW + 80 * SECOND
        desk.take(("a", NOW, 1.0))

        assert desk.take(("a", near, 1.0)).duplicate == 1
        assert codes(desk.take(("a", near, 2.0))) == ["sr-conflict"]
        assert desk.take(("a", near, 2.0), on_conflict="replace").replaced == 1
        assert desk.take(("a", NOW, 2.0)).duplicate == 1
        # A correction has the time of the reading that it replaces.
        assert [each.time for each in desk.ledger.readings(1)] == [NOW, NOW]

    def test_an_older_step_is_compared_with_the_ledger(self, desk):
        desk.take(("a", NOW - 5 * STEP - 80 * SECOND, 1.0), ("a", NOW, 1.0))

        receipt = desk.take(("a", NOW - 5 * STEP + 80 * SECOND, 2.0), ("a", NOW - 5 * STEP, 1.0))

        assert (codes(receipt), receipt.duplicate) == (["sr-conflict"], 1)

    def test_rows_of_one_batch_are_compared_by_step(self, desk):
        receipt = desk.take(("a", NOW, 1.0), ("a", NOW + SECOND, 1.0), ("a", NOW - SECOND, 2.0))

        assert (receipt.accepted, receipt.duplicate, codes(receipt)) == (1, 1, ["sr-conflict"])

    def test_with_a_rule_the_times_of_a_step_stay_distinct(self, desk):
        desk.declare("fine", rule="sum")

        receipt = desk.take(("fine", NOW - 80 * SECOND, 1.0), ("fine", NOW - 70 * SECOND, 2.0))

        assert (receipt.accepted, receipt.refused) == (2, 0)

    def test_a_superseded_held_reading_is_not_released_after_a_restart(self, desk):
        ahead = NOW + 20 * STEP
        desk.take(("a", ahead, 1.0))
        desk.take(("a", ahead + 80 * SECOND, 2.0), on_conflict="replace")
        group = NewRows(desk.last)
        desk.intake.release_held(ahead, group, ahead)
        desk.commit(group)

        again = Intake(desk.ledger, PLAN, desk.ledger.sensors(), max_sensors=9, clock=lambda: ahead)
        again.restore([], desk.ledger.held(), {}, ahead)

        assert [each.value for each in group.readings] == [2.0]
        assert not again.held

    def test_sensors_may_have_steps_of_their_own(self, desk):
        desk.declare("minutes", step="1min")
        desk.declare("hours", step="1h")
        hour = NOW // (4 * STEP) * 4 * STEP

        receipt = desk.take(
            ("minutes", NOW - MINUTE, 1.0),
            ("minutes", NOW - 2 * MINUTE, 2.0),
            ("hours", hour, 1.0),
            ("hours", hour - STEP, 1.0),
            ("quarters", NOW - MINUTE, 1.0),
            ("quarters", NOW, 1.0),
        )

        assert (receipt.accepted, receipt.duplicate) == (4, 1)
        assert [each.line for each in receipt.refusals] == [4]
        assert "not a multiple of 3600 seconds" in receipt.refusals[0].detail


class TestOldRows:
    """Rows that are older than known ones are compared with the ledger by few queries."""

    @pytest.mark.parametrize("rule", [None, "last"])
    def test_the_ledger_is_asked_once_for_each_sensor(self, desk, asked, rule, counted):
        counted("D3", 300)
        for name in "abc":
            desk.declare(name, rule=rule)
        desk.take(*((name, NOW, 1.0) for name in "abc"))
        rows = [(name, NOW - k * STEP, float(k)) for k in range(1, 101) for name in "abc"]

        first = desk.take(*rows, mode="backfill")
        again = desk.take(*rows, mode="backfill")

        assert (first.accepted, again.duplicate) == (300, 300)
        assert len(asked) == 2 * 3

    def test_rows_that_are_newer_than_all_need_no_query(self, desk, asked):
        for k in range(5):
            desk.take(*((name, NOW + (k - 9) * STEP, 1.0) for name in "abc"))
            desk.take(*((name, NOW + (k - 9) * STEP, 1.0) for name in "abc"))

        assert asked == []

    def test_readings_between_times_far_apart_are_not_read(self, desk, asked):
        far = 2 * revisions.GAP
        desk.take(("a", NOW, 1.0))

        desk.take(("a", NOW - far * STEP, 1.0), ("a", NOW - STEP, 1.0), ("a", NOW - 3 * STEP, 1.0))

        assert sorted(asked) == [(0, 3), (far - 1, far)]

    def test_a_span_with_many_readings_is_read_in_parts(self, desk, asked, monkeypatch):
        monkeypatch.setattr(revisions, "SPAN", 10)
        rows = [("a", NOW - k * STEP, float(k)) for k in range(25)]
        desk.take(*rows)

        assert desk.take(*rows).duplicate == 25
        assert len(asked) == 3


class TestRestart:
    """After a restart, rows are recognized wherever the log holds them."""

    @pytest.fixture
    def restarted(self, desk):
        """Return a function that restarts the intake, with the last readings alone."""

        def restarted(recent, earlier, unread_until):
            desk.intake = Intake(
                desk.ledger, PLAN, desk.ledger.sensors(), max_sensors=9, clock=lambda: NOW + DAY
            )
            last = sorted(desk.ledger.readings_after(desk.last - recent), key=lambda one: one.seq)
            desk.intake.restore(last, [], earlier, unread_until)
            return desk

        return restarted

    @pytest.mark.parametrize(
        ("earlier", "unread_until"), [({1: NOW}, -DAY), ({}, NOW), ({1: NOW - DAY}, NOW)]
    )
    def test_the_newest_reading_is_a_duplicate(self, desk, restarted, earlier, unread_until):
        desk.take(("a", NOW, 1.0))
        desk.take(*(("a", NOW - k * STEP, 1.0) for k in range(50, 60)), mode="backfill")

        desk = restarted(5, earlier, unread_until)

        assert desk.take(("a", NOW, 1.0)).duplicate == 1
        assert codes(desk.take(("a", NOW, 2.0))) == ["sr-conflict"]
        assert desk.take(("a", NOW + STEP, 2.0)).accepted == 1
        assert desk.take(("a", NOW + STEP, 2.0)).duplicate == 1

    def test_new_readings_need_no_query(self, desk, restarted, asked):
        desk.take(("a", NOW, 1.0), ("b", NOW - STEP, 1.0))
        desk.take(*(("a", NOW - k * STEP, 1.0) for k in range(50, 60)), mode="backfill")
        asked.clear()

        desk = restarted(5, {1: NOW}, NOW - STEP)

        assert desk.take(("a", NOW + STEP, 1.0), ("b", NOW + STEP, 1.0)).accepted == 2
        assert asked == []

    def test_a_value_that_was_null_is_a_duplicate(self, desk, restarted):
        desk.take(("a", NOW + SECOND, None))
        desk.take(("a", NOW, 1.0))
        desk.take(("a", NOW - 50 * STEP, 1.0), mode="backfill")

        desk = restarted(1, {1: NOW + SECOND}, -DAY)

        assert desk.take(("a", NOW, 1.0)).duplicate == 1

    def test_a_row_older_than_the_newest_is_late(self, desk, restarted):
        desk.take(("a", NOW, 1.0))
        desk.take(("a", NOW - 50 * STEP, 1.0), mode="backfill")

        desk = restarted(1, {1: NOW}, -DAY)

        assert desk.take(("a", NOW - 9 * STEP, 1.0)).late == 1


class TestStream:
    """With the clock of the stream, no sensor moves the time alone."""

    @pytest.fixture
    def desk(self, tmp_path):
        desk = Desk(str(tmp_path / "a.db"), clock=StreamClock())
        yield desk
        desk.ledger.close()

    def test_one_reading_of_a_far_year_is_held(self, desk, record_property):
        record_property("row", "B4")
        names = [f"s{i}" for i in range(10)]
        desk.take(*((name, NOW, 1.0) for name in names))

        receipt = desk.take(("s3", NOW + 460 * 365 * DAY, 1.0))

        assert (receipt.held, desk.intake.now) == (1, NOW)
        assert desk.take(*((name, NOW + STEP, 1.0) for name in names)).accepted == 10

    def test_sensors_that_are_refused_do_not_move_the_time_and_are_not_remembered(self, tmp_path):
        clock = StreamClock(most=4)
        desk = Desk(str(tmp_path / "b.db"), most=4, clock=clock)
        names = [f"s{i}" for i in range(4)]
        desk.take(*((name, NOW, 1.0) for name in names))

        for day in range(3):
            receipt = desk.take(*((f"new-{day}-{i}", NOW + day * DAY, 1.0) for i in range(50)))
            assert receipt.refused == 50

        assert desk.intake.now == NOW
        assert len(clock._reached) == 4
        assert desk.take(*((name, NOW + STEP, 1.0) for name in names)).accepted == 4
        assert desk.intake.now == NOW + STEP
        desk.ledger.close()

    def test_readings_after_a_long_gap_are_accepted_if_sensors_agree(self, desk):
        names, later = [f"s{i}" for i in range(4)], NOW + 8 * DAY
        desk.take(*((name, NOW, 1.0) for name in names))

        assert desk.take(*((name, later, 1.0) for name in names)).accepted == 4

    def test_held_readings_are_released_once_sensors_agree(self, desk):
        names, later = [f"s{i}" for i in range(4)], NOW + 8 * DAY
        desk.take(*((name, NOW, 1.0) for name in names))

        held = [desk.take((name, later, 1.0)).held for name in names]
        group = NewRows(desk.last)
        desk.intake.release_held(desk.intake.now, group, later)

        assert held == [1, 1, 0, 0]
        assert len(group.readings) == 2

    def test_a_file_of_one_sensor_with_a_gap_is_accepted(self, desk):
        steps = [*range(50), *range(900, 950)]

        receipt = desk.take(*(("a", NOW + step * STEP, 1.0) for step in steps))

        assert (receipt.accepted, receipt.held) == (100, 0)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from("ab"),
                st.integers(-5, 5),
                st.sampled_from([0, 80 * SECOND, -80 * SECOND]),
                st.sampled_from([1.0, 2.0, None]),
            ),
            max_size=6,
        ),
        max_size=5,
    )
)
def test_the_first_value_of_a_step_counts(tmp_path_factory, batches):
    desk = Desk(str(tmp_path_factory.mktemp("intake") / "a.db"))
    first = {}
    for batch in batches:
        rows = [(name, NOW - (6 + step) * STEP + off, value) for name, step, off, value in batch]
        receipt = desk.take(*rows)
        for name, time, value in rows:
            key = name, PLAN.step_of(time)
            first[key] = value if first.get(key) is None else first[key]
        assert receipt.written + receipt.duplicate + receipt.refused == len(rows)

    stored = {
        (sensor.name, step): each.value
        for sensor in desk.ledger.sensors()
        for step, each in counting_readings(desk.ledger.readings(sensor.id), PLAN).items()
    }
    assert stored == first
    desk.ledger.close()
