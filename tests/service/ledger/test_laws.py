"""Laws that the ledgers of both databases obey."""

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

import msgspec
import pytest

from streamridge.errors import InvalidInputError
from streamridge_service.ledger import layout, pruning, schema
from streamridge_service.ledger.errors import DamagedError, FormatError, InUseError, StorageError
from streamridge_service.ledger.opening import open_ledger, restore
from streamridge_service.ledger.records import (
    EVERYONE,
    GroupMember,
    GroupResult,
    GroupStep,
    Kind,
)
from tests.support.ledger.samples import (
    NOON,
    STEP,
    action,
    contents,
    digest,
    entries,
    entry,
    event,
    filled,
    forecast,
    sensor,
    snapshot,
    token,
)
from tests.support.tiers import tiered


def four_sensors():
    return [sensor(number) for number in range(1, 5)]


def run(ledger, sql):
    """Change a storage behind the ledger's back."""
    with ledger._storage.writing() as session:
        session.run(sql)


class TestReadings:
    def test_a_new_ledger_is_empty_and_intact(self, ledger):
        assert ledger.last_seq() == ledger.done_seq() == 0
        assert ledger.sensors() == ledger.readings(1) == list(ledger.readings_after(0)) == []
        assert ledger.snapshot(1) is None
        assert list(ledger.forecasts()) == ledger.events() == ledger.tokens() == []
        assert list(ledger.check()) == []
        assert ledger.facts()["format"] == "2"

    def test_appended_rows_are_read_unchanged(self, ledger):
        values = [0.1 + 0.2, 5e-324, 1e308, -1.5, 7.0, None]
        given = [entry(seq, value=value) for seq, value in enumerate(values, 1)]
        given[-1] = msgspec.structs.replace(given[-1], value=None, kind=Kind.HELD)

        ledger.append(four_sensors(), given, [action(7)])

        assert ledger.last_seq() == 7
        assert ledger.sensors() == four_sensors()
        assert sorted(ledger.readings_after(0), key=lambda one: one.seq) == given
        assert ledger.actions(1) == [action(7)]
        assert ledger.actions(2) == ledger.actions(1, after=7) == []

    def test_a_negative_zero_is_a_zero(self, ledger):
        ledger.append(four_sensors(), [entry(1, value=-0.0), entry(2, value=5)])

        zero, five = ledger.readings(1)[0].value, ledger.readings(2)[0].value

        assert math.copysign(1, zero) == 1
        assert type(five) is float
        assert list(ledger.check()) == []

    def test_readings_and_actions_share_one_numbering(self, ledger):
        ledger.append(four_sensors(), [entry(1), entry(3)], [action(2), action(4)])

        assert ledger.last_seq() == 4
        assert [one.seq for one in ledger.actions(1)] == [2, 4]
        assert list(ledger.check()) == []

    @pytest.mark.parametrize(
        "seqs",
        [[6, 7], [4, 6], [4, 4], [0], [-1], [1, 2, 3, 5]],
        ids=["ahead", "hole", "twice", "zero", "negative", "hole after what is there"],
    )
    def test_a_gap_is_refused_and_nothing_is_written(self, ledger, seqs):
        ledger.append(four_sensors(), entries(1, 3))
        before = digest(ledger)

        with pytest.raises(InvalidInputError, match="must continue from 4 without a gap"):
            ledger.append([sensor(5)], [entry(seq) for seq in seqs])

        assert digest(ledger) == before

    def test_appending_stored_rows_again_changes_nothing(self, ledger):
        ledger.append(four_sensors(), entries(1, 30), [action(31)])
        before = digest(ledger)

        ledger.append(four_sensors(), entries(1, 30), [action(31)])
        ledger.append(readings=entries(11, 20))

        assert digest(ledger) == before
        assert list(ledger.check()) == []

    def test_appending_again_with_more_rows_adds_the_rest(self, ledger):
        ledger.append(four_sensors(), entries(1, 30))

        ledger.append(readings=entries(21, 40))

        assert sorted(ledger.readings_after(0), key=lambda one: one.seq) == entries(1, 40)
        assert list(ledger.check()) == []

    @pytest.mark.parametrize(
        "other",
        [{"value": 1.0}, {"time": NOON - STEP}, {"sensor": 4}, {"received": 1}, {"kind": 1}],
        ids=lambda other: next(iter(other)),
    )
    def test_an_arrival_number_is_not_used_twice(self, ledger, other):
        ledger.append(four_sensors(), entries(1, 30))
        before = digest(ledger)

        with pytest.raises(InvalidInputError, match="must be used once, got 30 to 30 again"):
            ledger.append(readings=[msgspec.structs.replace(entry(30), **other), entry(31)])

        assert digest(ledger) == before

    def test_a_known_sensor_gets_its_new_declaration(self, ledger):
        ledger.append(four_sensors())
        changed = msgspec.structs.replace(sensor(2), declared=b'{"unit":"veh"}', archived=NOON)

        ledger.append([sensor(2), changed])

        assert ledger.sensors() == [sensor(1), changed, sensor(3), sensor(4)]

    def test_two_sensors_cannot_have_one_name(self, ledger):
        ledger.append(four_sensors())
        before = digest(ledger)

        with pytest.raises(InvalidInputError, match="name"):
            ledger.append([msgspec.structs.replace(sensor(5), name="road-1")], [entry(1)])

        assert digest(ledger) == before

    @pytest.mark.parametrize(
        ("after", "up_to", "limits"),
        tiered(
            [0, 17, 199],
            [None, 150],
            [(None, None), (NOON + 5 * STEP, None), (None, NOON + 30 * STEP)],
            quick=lambda after, up_to, limits: after == 17 and (up_to, limits[0]) != (None, None),
        ),
    )
    def test_limits_choose_readings(self, ledger, small_buckets, after, up_to, limits):
        start, end = limits
        ledger.append(four_sensors(), entries(1, 240))

        found = ledger.readings(2, after=after, up_to=up_to, start=start, end=end)

        assert found == [
            one
            for one in entries(1, 240)
            if one.sensor == 2
            and after < one.seq <= (up_to or 240)
            and (start or 0) <= one.time < (end or NOON * 2)
        ]

    def test_late_readings_are_found_by_their_times(self, ledger, small_buckets):
        late = [entry(seq, time=NOON + 3 * STEP + seq) for seq in range(201, 211)]
        ledger.append(four_sensors(), [*entries(1, 200), *late])

        found = ledger.readings(1, start=NOON + 3 * STEP, end=NOON + 4 * STEP)

        assert [one.seq for one in found] == [13, 201, 205, 209]

    def test_readings_after_a_number_are_found(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 240))

        for after in (0, 49, 50, 120, 240):
            found = sorted(ledger.readings_after(after), key=lambda one: one.seq)
            assert found == entries(after + 1, 240)

    def test_the_newest_readings_are_found_in_the_buckets_of_the_latest_times(
        self, ledger, small_buckets
    ):
        live = entries(1, layout.BUCKET - 1)
        older = [entry(layout.BUCKET + i, 1, time=NOON - (i + 1) * STEP) for i in range(40)]
        ahead = msgspec.structs.replace(live[2], time=NOON + 999 * STEP, kind=Kind.HELD)
        live[2] = ahead
        ledger.append(four_sensors(), [*live, *older])

        newest, unread_until = ledger.newest_times(up_to=ledger.last_seq(), buckets=1)
        before, _ = ledger.newest_times(up_to=5, buckets=1)

        times = [(each.sensor, each.time) for each in live if each.kind != Kind.HELD]
        assert (newest, unread_until) == (dict(sorted(times, key=itemgetter(1))), NOON - STEP)
        assert before == {1: NOON + STEP, 2: NOON, 4: NOON}
        assert ledger.newest_times(up_to=layout.BUCKET, buckets=99)[1] < NOON - 99_999 * STEP

    def test_a_large_batch_equals_small_batches(self, address, tmp_path):
        with open_ledger(address) as ledger, open_ledger(tmp_path / "other.db") as other:
            ledger.append(four_sensors(), entries(1, 1000))
            other.append(four_sensors())
            for first in range(1, 1001, 8):
                other.append(readings=entries(first, first + 7))

            assert contents(ledger) == contents(other)
            assert list(ledger.check()) == list(other.check()) == []


class TestForecasts:
    def test_forecasts_are_read_as_they_were_issued(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 240))
        issued = [forecast(seq, fit=seq // 2) for seq in range(1, 241)]

        ledger.add_forecasts(issued[::-1], done=240)

        assert list(ledger.forecasts()) == issued
        assert list(ledger.forecasts(3)) == [one for one in issued if one.sensor == 3]
        assert list(ledger.forecasts(after=100)) == issued[100:]
        assert list(ledger.forecasts(2, after=101)) == issued[101::4]
        assert ledger.done_seq() == 240

    def test_times_choose_forecasts(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 240))
        issued = [forecast(seq) for seq in range(1, 241)]
        ledger.add_forecasts(issued)
        start, end = NOON + 20 * STEP, NOON + 22 * STEP

        chosen = [one for one in issued if start <= one.time < end]

        assert list(ledger.forecasts(start=start, end=end)) == chosen
        assert list(ledger.forecasts(4, start=start, end=end)) == chosen[3::4]

    def test_a_forecast_is_never_changed(self, ledger):
        ledger.append(four_sensors(), entries(1, 4))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 4)])

        ledger.add_forecasts([forecast(seq, horizon=5) for seq in range(1, 5)])

        assert list(ledger.forecasts()) == [*map(forecast, range(1, 4)), forecast(4, horizon=5)]

    def test_the_processed_number_stays_unless_it_is_given(self, ledger):
        ledger.append(four_sensors(), entries(1, 4))
        ledger.add_forecasts([], done=3)

        ledger.add_forecasts([forecast(4)])

        assert ledger.done_seq() == 3


class TestSnapshots:
    def test_the_last_snapshot_and_all_refit_points_are_stored(self, ledger):
        ledger.append(four_sensors(), entries(1, 200))
        kept = [snapshot(seq, number) for seq in (50, 150) for number in (1, 2)]
        unused = snapshot(190, 1, kind="failed", unused=(7, 189))

        ledger.add_snapshots(kept)
        ledger.add_snapshots([unused])

        assert ledger.snapshot(1) == unused
        assert ledger.snapshot(2) == kept[3]
        assert ledger.snapshot(3) is None
        assert ledger.refit_points(1) == [kept[0].point, kept[2].point, unused.point]
        assert ledger.tunings(1) == [(one.point, one.tuning) for one in (*kept[::2], unused)]
        assert ledger.tunings(1, start=unused.point.until) == [(unused.point, unused.tuning)]
        assert list(ledger.summaries()) == [(1, 190, unused.summary), (2, 150, kept[3].summary)]
        assert list(ledger.check()) == []

    def test_refit_points_at_one_arrival_number_stay_in_order(self, ledger):
        ledger.append(four_sensors(), entries(1, 100))
        kinds = ["start", "kept", "refit", "failed"]

        ledger.add_snapshots([snapshot(100, kind=kind) for kind in kinds[:3]])
        ledger.add_snapshots([snapshot(100, kind=kinds[3])])

        assert [point.kind for point in ledger.refit_points(1)] == kinds

    def test_adding_snapshots_again_changes_nothing(self, ledger):
        ledger.append(four_sensors(), entries(1, 200))
        kept = [snapshot(seq, number) for seq in (50, 150) for number in (1, 2)]
        ledger.add_snapshots(kept)
        before = digest(ledger)

        ledger.add_snapshots(kept)
        ledger.add_snapshots(kept[:2])

        assert digest(ledger) == before

    def test_an_older_snapshot_is_skipped(self, ledger):
        ledger.append(four_sensors(), entries(1, 200))
        ledger.add_snapshots([snapshot(150)])

        ledger.add_snapshots([snapshot(100), snapshot(100, 2)])

        assert ledger.snapshot(1) == snapshot(150)
        assert ledger.refit_points(1) == [snapshot(150).point]
        assert ledger.snapshot(2) == snapshot(100, 2)

    def test_more_summaries_than_are_read_at_once(self, ledger, monkeypatch):
        monkeypatch.setattr("streamridge_service.ledger.reading.SUMMARIES", 7)
        ledger.append([sensor(number) for number in range(1, 31)], entries(1, 30, 30))
        ledger.add_snapshots([snapshot(30, number) for number in range(30, 0, -1)])

        assert [number for number, _, _ in ledger.summaries()] == list(range(1, 31))

    def test_a_damaged_snapshot_is_noticed_and_others_are_read(self, ledger):
        filled(ledger)

        run(ledger, "UPDATE snapshots SET digest = (SELECT state FROM states WHERE sensor = 1)")
        ledger.add_snapshots([snapshot(190, 2)])

        with pytest.raises(DamagedError, match="the snapshot of sensor 1 is damaged"):
            ledger.snapshot(1)
        assert ledger.snapshot(2) == snapshot(190, 2)


class TestTheRest:
    def test_events_are_the_newest_in_order(self, ledger):
        ledger.add_events([event(number) for number in range(1, 10)])
        ledger.add_events([event(9), event(10)])

        assert ledger.events() == [event(number) for number in range(1, 11)]
        assert ledger.events(after=8) == [event(9), event(10)]
        assert ledger.events(limit=3) == [event(8), event(9), event(10)]

    def test_tokens_are_replaced(self, ledger):
        ledger.put_tokens([token(1), token(2)])
        ledger.put_tokens([token(2), token(2, revoked=NOON, scopes=())])

        assert ledger.tokens() == [token(1), token(2, revoked=NOON, scopes=())]

    def test_facts_are_replaced(self, ledger):
        ledger.put_facts({"step": "900", "zone": "UTC"})
        ledger.put_facts({"step": "300"})

        assert ledger.facts()["step"] == "300"
        assert ledger.facts()["zone"] == "UTC"

    def test_sizes_are_returned(self, ledger):
        filled(ledger)

        size = ledger.size()

        assert size["data"] > 0
        assert set(size) - {"free"} == {"data", "log", "reusable"}

    def test_all_data_are_there_after_a_restart(self, address):
        with open_ledger(address) as ledger:
            filled(ledger)
            before = contents(ledger)

        with open_ledger(address) as again:
            assert contents(again) == before
            assert list(again.check()) == []


class TestProcesses:
    def test_a_reader_sees_what_is_written_and_cannot_write(self, address, ledger):
        with open_ledger(address, read_only=True) as reader:
            ledger.append(four_sensors(), entries(1, 5))

            assert reader.last_seq() == 5
            assert len(reader.readings(1)) == 2
            with pytest.raises(StorageError, match="must be open to write, got one that is not"):
                reader.append(readings=[entry(6)])

        assert ledger.last_seq() == 5

    def test_the_error_of_a_second_writer_names_the_first(self, address, ledger):
        with pytest.raises(InUseError, match=rf"served by process {os.getpid()} since 20\d\d-"):
            open_ledger(address)

        ledger.close()
        open_ledger(address).close()

    def test_a_ledger_made_in_one_thread_is_used_in_others(self, address):
        stop = threading.Event()

        def reading():
            seen = 0
            while not stop.is_set():
                last = ledger.last_seq()
                assert last >= seen
                assert len(list(ledger.readings_after(0))) >= last
                seen = last
            return seen

        with open_ledger(address) as ledger, ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(reading) for _ in range(3)]
            ledger.append(four_sensors())
            writer = pool.submit(
                lambda: [ledger.append(readings=entries(i, i + 9)) for i in range(1, 400, 10)]
            )
            writer.result()
            stop.set()

            assert all(reader.result() <= 400 for reader in readers)
            assert list(ledger.check()) == []


class TestCopies:
    def test_a_copy_holds_the_same(self, ledger, tmp_path):
        filled(ledger)

        ledger.copy_to(str(tmp_path / "backup.db"))

        assert [path.name for path in tmp_path.glob("backup*")] == ["backup.db"]
        with open_ledger(tmp_path / "backup.db", read_only=True) as copy:
            assert contents(copy) == contents(ledger)
            assert list(copy.check()) == []

    def test_a_copy_replaces_no_file(self, ledger, tmp_path):
        taken = tmp_path / "taken.db"
        taken.write_text("mine")

        with pytest.raises(InvalidInputError, match=r"taken.db must be a new file, got one that"):
            ledger.copy_to(str(taken))

        assert taken.read_text() == "mine"
        assert [path.name for path in tmp_path.glob("taken*")] == ["taken.db"]

    def test_a_backup_is_restored_to_either_database(self, address, tmp_path):
        with open_ledger(tmp_path / "first.db") as ledger:
            filled(ledger)
            before = contents(ledger)
            ledger.copy_to(str(tmp_path / "backup.db"))

        restore(tmp_path / "backup.db", address)

        with open_ledger(address) as restored:
            assert contents(restored) == before
            assert list(restored.check()) == []
            restored.append(readings=[entry(203)])
        with pytest.raises(InvalidInputError, match=r"must be (a new file|empty), got one"):
            restore(tmp_path / "backup.db", address)

    def test_a_damaged_backup_is_not_restored(self, address, tmp_path):
        with open_ledger(tmp_path / "first.db") as ledger:
            filled(ledger)
            run(ledger, "DELETE FROM readings WHERE seq = 5")
            ledger.copy_to(str(tmp_path / "backup.db"))

        with pytest.raises(
            InvalidInputError, match="must be an intact backup, got: arrival number"
        ):
            restore(tmp_path / "backup.db", address)


FAULTS = {
    "a reading is gone": (
        "DELETE FROM readings WHERE seq = 17",
        "arrival numbers 17 are missing",
    ),
    "readings are gone": (
        "DELETE FROM readings WHERE seq IN (17, 18, 19, 30)",
        "arrival numbers 17 to 19, 30 are missing",
    ),
    "the last is not there": ("UPDATE meta SET value = '210' WHERE key = 'last'", "203 to 210 are"),
    "more than the last": (
        "UPDATE meta SET value = '190' WHERE key = 'last'",
        "arrival numbers 191 to 199 are in the wrong bucket",
    ),
    "an action is gone": ("DELETE FROM actions WHERE seq = 201", "201 are missing"),
    "a number is given twice": (
        "INSERT INTO readings SELECT bucket, 3, seq, time, value, received, kind "
        "FROM readings WHERE seq = 17",
        "arrival numbers 17 are stored twice",
    ),
    "a reading lies elsewhere": (
        "UPDATE readings SET bucket = 3 WHERE seq = 17",
        "arrival numbers 17 are in the wrong bucket",
    ),
    "a value is changed": (
        "UPDATE readings SET value = value + 1 WHERE seq = 17",
        "bucket 0 of readings is damaged",
    ),
    "an action is changed": (
        "UPDATE actions SET kind = 'reset' WHERE seq = 201",
        "bucket 4 of readings is damaged",
    ),
    "a time is changed": (
        "UPDATE readings SET time = time - 900000000000 WHERE seq = 17",
        "bucket 0 of readings is listed for times",
    ),
    "a span is too narrow": (
        "UPDATE buckets SET last_time = first_time",
        "bucket 3 of readings is listed for times",
    ),
    "a bucket is not listed": (
        "DELETE FROM buckets WHERE bucket = 2",
        "bucket 2 of readings is not listed",
    ),
    "a sensor is not known": (
        "DELETE FROM sensors WHERE id = 4",
        "bucket 1 has forecasts of sensor 4, which is unknown",
    ),
    "forecasts are not listed": (
        "DELETE FROM forecast_buckets WHERE bucket = 2",
        "bucket 2 of forecasts is listed for times None to None",
    ),
    "numbers of a forecast are gone": (
        "UPDATE forecasts SET numbers = substr(numbers, 9) WHERE seq = 17",
        "bucket 0 has 1 forecast with impossible numbers; the first is at arrival number 17",
    ),
    "a forecast of the future": (
        "UPDATE forecasts SET fit = 400 WHERE seq > 190",
        "bucket 3 has 9 forecasts with impossible numbers",
    ),
    "a state is changed": (
        "UPDATE states SET state = (SELECT state FROM states WHERE sensor = 2) WHERE sensor = 1",
        "the snapshot of sensor 1 is damaged",
    ),
    "a state is gone": ("DELETE FROM states WHERE sensor = 1", "snapshot of sensor 1 is damaged"),
    "a summary is changed": (
        "UPDATE snapshots SET summary = tuning WHERE sensor = 3",
        "the snapshot of sensor 3 is damaged",
    ),
    "a cut is gone": (
        "DELETE FROM cuts WHERE sensor = 1 AND seq = 190",
        "sensor 1 has a snapshot at arrival number 190 without a refit point",
    ),
    "cuts go back": (
        "UPDATE cuts SET seq = 191 WHERE sensor = 1 AND seq = 90",
        "sensor 1 has a refit point at arrival number 190 after one at 191",
    ),
}


class TestChecks:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_each_fault_is_found(self, ledger, small_buckets, fault):
        filled(ledger)
        assert list(ledger.check()) == []
        statement, words = FAULTS[fault]

        run(ledger, statement)

        found = list(ledger.check())
        assert any(words in finding for finding in found), found

    def test_an_action_on_all_sensors_is_no_fault(self, ledger):
        filled(ledger)

        ledger.append(actions=[action(ledger.last_seq() + 1, EVERYONE, kind="plan")])

        assert list(ledger.check()) == []

    @pytest.mark.parametrize(
        "wrong",
        [
            {"lower": (151.0, 0.0)},
            {"upper": (1.0, 400.0)},
            {"values": (math.nan, 5.0)},
            {"upper": (400.0, math.inf)},
        ],
    )
    def test_a_forecast_outside_its_band_is_found(self, ledger, wrong):
        filled(ledger)
        right = {"values": (150.0, 150.0), "lower": (0.0, 0.0), "upper": (400.0, 400.0)}
        ledger.append(readings=[entry(203)])

        ledger.add_forecasts([msgspec.structs.replace(forecast(203), **right | wrong)])

        assert list(ledger.check()) == [
            "bucket 0 has 1 forecast with impossible numbers; the first is at arrival "
            "number 203, of sensor 3."
        ]

    def test_a_check_is_right_while_others_write(self, address, ledger, small_buckets):
        ledger.append(four_sensors())
        stop = threading.Event()

        def writing():
            first = 1
            while not stop.is_set():
                ledger.append(readings=entries(first, first + 6))
                ledger.add_forecasts([forecast(seq) for seq in range(first, first + 7)])
                first += 7

        with open_ledger(address, read_only=True) as reader, ThreadPoolExecutor(1) as pool:
            writer = pool.submit(writing)
            found = [finding for _ in range(10) for finding in reader.check()]
            stop.set()
            writer.result()

        assert found == []


def group_result(step, *, corrects=(), state=None):
    """Return a step of a group of four sensors, after which some forecasts are corrected."""
    members = tuple(
        GroupMember(number, float(number), own=4 * step + number, following=4 * step + 4 + number)
        for number in range(1, 5)
    )
    time, begins = NOON + (step + 1) * STEP, (2, 96, 0.9) if step == 0 else None
    corrected = tuple(msgspec.structs.replace(forecast(n), lower=(-1.5, 0.0)) for n in corrects)
    return GroupResult(GroupStep("A2", STEP, time, begins, members), corrected, state)


class TestGroups:
    def test_steps_states_and_corrections_are_read_as_they_were_stored(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 240))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 241)])
        results = [group_result(step, corrects=[4 * step + 6]) for step in range(50)]
        results[30] = msgspec.structs.replace(results[30], state=b"old")
        results[40] = msgspec.structs.replace(results[40], state=b"new")

        ledger.add_group_steps(results)

        steps = [each.step for each in results]
        assert ledger.groups() == [("A2", STEP)]
        assert ledger.last_group_step("A2", STEP) == steps[-1].time
        assert ledger.last_group_step("A2", 2 * STEP) is None
        assert ledger.group_steps("A2", STEP) == steps
        assert ledger.group_steps("A2", STEP, after=steps[9].time, most=5) == steps[10:15]
        assert ledger.group_state("A2", STEP) == (steps[40].time, b"new")
        corrected = {each.seq: each for result in results for each in result.corrected}
        expected = [corrected.get(seq, forecast(seq)) for seq in range(1, 241)]
        assert list(ledger.forecasts(corrected=True)) == expected
        assert list(ledger.forecasts(2, corrected=True)) == expected[1::4]
        assert list(ledger.forecasts()) == [forecast(seq) for seq in range(1, 241)]

    def test_numbers_of_a_damaged_correction_are_not_served(self, ledger):
        ledger.append(four_sensors(), entries(1, 8))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 9)])
        ledger.add_group_steps([group_result(0, corrects=[6])])

        with ledger._storage.writing() as session:
            session.run("UPDATE corrections SET numbers = :damaged", damaged=b"short")

        assert list(ledger.forecasts(corrected=True)) == list(ledger.forecasts())

    def test_a_stored_step_and_its_corrections_are_never_changed(self, ledger):
        ledger.append(four_sensors(), entries(1, 8))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 9)])
        first = group_result(0, corrects=[6])
        ledger.add_group_steps([first])

        other = msgspec.structs.replace(first.step, members=())
        ledger.add_group_steps([GroupResult(other, (forecast(6),))])

        assert ledger.group_steps("A2", STEP) == [first.step]
        assert list(ledger.forecasts(2, corrected=True))[1] == first.corrected[0]
        assert ledger.group_state("A2", STEP) is ledger.group_state("A3", STEP) is None

    def test_they_are_pruned_with_their_forecasts(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 400))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 401)])
        ledger.add_snapshots([snapshot(380, number) for number in range(1, 5)])
        ledger.add_group_steps([group_result(step, corrects=[4 * step + 6]) for step in range(98)])

        ledger.prune(NOON + 50 * STEP)

        first = ledger.group_steps("A2", STEP)[0]
        assert max(each.following for each in first.members) == 152
        with ledger._storage.reading() as session:
            assert session.rows("SELECT min(seq) FROM corrections") == [(150,)]


class TestPruning:
    def test_whole_buckets_are_deleted(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 400))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 401)])
        ledger.add_snapshots([snapshot(380, number) for number in range(1, 5)])
        ledger.append(actions=[action(401)])

        # Arrival numbers 1 to 200 are from 50 steps, of which forecasts are a step ahead.
        dropped = ledger.prune(NOON + 50 * STEP)

        assert dropped == {"readings": 149, "forecasts": 149, "buckets": 3, "needed": 0}
        assert min(one.seq for one in ledger.readings_after(0)) == 150
        assert min(one.seq for one in ledger.forecasts()) == 150
        assert ledger.facts()["first"] == "150"
        assert list(ledger.check()) == []
        ledger.append(readings=entries(402, 500))
        assert list(ledger.check()) == []
        assert ledger.prune(NOON + 50 * STEP)["buckets"] == 0

    def test_readings_that_a_forecaster_needs_stay(self, ledger, small_buckets):
        ledger.append(four_sensors(), entries(1, 400))
        ledger.add_snapshots([snapshot(380, number) for number in (1, 2, 3)])

        assert ledger.prune(NOON + 90 * STEP) == {
            "readings": 0,
            "forecasts": 0,
            "buckets": 0,
            "needed": 7,
        }
        ledger.add_snapshots([snapshot(180, 4)])
        assert ledger.prune(NOON + 90 * STEP)["buckets"] == 3
        ledger.add_snapshots([snapshot(380, 4, unused=(203,))])
        assert ledger.prune(NOON + 90 * STEP)["buckets"] == 1
        ledger.add_snapshots([snapshot(390, 4)])
        assert ledger.prune(NOON + 90 * STEP) == {
            "readings": 150,
            "forecasts": 0,
            "buckets": 3,
            "needed": 0,
        }
        assert list(ledger.check()) == []

    def test_archived_and_silent_sensors_need_nothing(self, ledger, small_buckets):
        once = [msgspec.structs.replace(entry(1), sensor=5)]
        others = [msgspec.structs.replace(entry(seq), sensor=1) for seq in range(2, 401)]
        ledger.append([*four_sensors(), sensor(5)], once + others)
        ledger.append([msgspec.structs.replace(sensor(1), archived=NOON)])

        assert ledger.prune(NOON + 50 * STEP)["buckets"] == 4

    def test_a_pruning_that_was_interrupted_goes_unseen_and_is_continued(
        self, ledger, small_buckets, monkeypatch
    ):
        monkeypatch.setattr(pruning, "MOST_ROWS", 20)
        ledger.append(four_sensors(), entries(1, 400))
        ledger.add_forecasts([forecast(seq) for seq in range(1, 401)])
        ledger.add_snapshots([snapshot(380, number) for number in range(1, 5)])

        assert ledger.prunable_bucket(NOON + 50 * STEP) == 0
        ledger.drop_bucket(0)
        for deleted in ({}, {"readings": 20}, {"readings": 20}, {"readings": 9}, {"forecasts": 20}):
            if deleted:
                assert ledger.delete_dropped() == deleted
            assert list(ledger.check()) == []
            assert min(one.seq for one in ledger.readings_after(0)) == 50
            assert min(one.seq for one in ledger.readings(1)) == 53
            assert min(one.seq for one in ledger.forecasts()) == 50

        dropped = ledger.prune(NOON + 50 * STEP)
        assert dropped == {"readings": 100, "forecasts": 129, "buckets": 2, "needed": 0}
        assert ledger.delete_dropped() == {}
        assert list(ledger.check()) == []

    def test_a_copy_of_an_interrupted_pruning_is_intact(self, ledger, small_buckets, tmp_path):
        ledger.append(four_sensors(), entries(1, 400))
        ledger.drop_bucket(0)

        ledger.copy_to(str(tmp_path / "backup.db"))

        restore(tmp_path / "backup.db", tmp_path / "again.db")
        with open_ledger(tmp_path / "again.db") as again:
            assert again.delete_dropped() == {"readings": 49}
            assert list(again.check()) == []

    def test_the_current_bucket_stays(self, ledger, small_buckets):
        ledger.append([], entries(1, 120))

        assert ledger.prune(NOON * 2)["buckets"] == 2
        assert ledger.last_seq() == 120
        assert list(ledger.readings_after(0)) != []


NEXT = """
ALTER TABLE sensors ADD COLUMN lanes {small};
UPDATE sensors SET lanes = 2
"""


class TestFormats:
    def test_a_newer_format_is_refused(self, address):
        with open_ledger(address) as ledger:
            ledger.put_facts({"format": "7", "version": "2.3.0"})

        for read_only in (False, True):
            with pytest.raises(
                FormatError,
                match=r"was written by streamridge 2.3.0, this is \S+; nothing was changed",
            ):
                open_ledger(address, read_only)

    def test_an_older_format_is_migrated(self, address, monkeypatch):
        with open_ledger(address) as ledger:
            filled(ledger)
            before = contents(ledger)
        present = len(schema.MIGRATIONS)
        monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, NEXT])

        words = f"must be of format {present + 1} to be read, got {present}"
        with pytest.raises(FormatError, match=words):
            open_ledger(address, read_only=True)
        with open_ledger(address) as migrated:
            assert migrated.facts()["format"] == str(present + 1)
            assert contents(migrated) | {"facts": 0} == before | {"facts": 0}
            with migrated._storage.reading() as session:
                assert session.rows("SELECT DISTINCT lanes FROM sensors") == [(2,)]
        with open_ledger(address, read_only=True) as reader:
            assert reader.last_seq() == before["last"]

    def test_a_migration_that_fails_changes_nothing(self, address, monkeypatch):
        with open_ledger(address) as ledger:
            filled(ledger)
            before = contents(ledger)
        present, fails = schema.MIGRATIONS, f"{NEXT}; DROP TABLE nothing"
        monkeypatch.setattr(schema, "MIGRATIONS", [*present, fails])

        with pytest.raises(StorageError, match="nothing"):
            open_ledger(address)

        monkeypatch.setattr(schema, "MIGRATIONS", present)
        with open_ledger(address) as again:
            assert contents(again) == before

    def test_a_foreign_database_is_not_changed(self, address):
        with open_ledger(address) as ledger:
            run(ledger, "DELETE FROM meta WHERE key = 'format'")

        with pytest.raises(FormatError, match="is not a storage of streamridge; nothing was"):
            open_ledger(address)
