"""Sensors of one group correct each other's forecasts; the log stays the truth."""

import shutil
import sqlite3
import struct
from contextlib import closing
from threading import Event, Thread

import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs

import streamridge as sr
from streamridge_service.groups import open_steps
from streamridge_service.groups.corrections import Listening
from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.errors import DamagedPageError, StorageAwayError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import GroupResult, GroupStep
from streamridge_service.plan import HOUR, Declaration
from streamridge_service.rows import Batch, Row
from streamridge_service.service import groups as service_groups
from streamridge_service.service.writer import PendingWrites, Writer
from streamridge_service.verification.groups import check_groups
from streamridge_service.workers.messages import ReadingsTaken
from tests.support.service.in_process import serving, settled, small
from tests.support.waiting import LIMIT, wait_until

START = 1_700_000_000_000_000 // HOUR * HOUR
NAMES = ("first", "second", "third", "apart")
# The first three are of one group: waves of traffic pass them one after the other.
GROUP = NAMES[:3]
HOURS, PART = 160, 90
HOURLY = {"step": "1h", "train_size": 48, "horizon": 2, "learn": False}


@pytest.fixture(autouse=True, scope="module")
def patience():
    """Let steps wait for six minutes, so that a busy machine changes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_steps, "MOST_SECONDS", 1000.0)
        yield


@pytest.fixture(scope="module")
def counts():
    """Return hourly counts, (hours, sensors), of which a fifth is a wave that travels."""
    rng = np.random.default_rng(3)
    wave = rng.normal(size=HOURS + len(NAMES))
    hours = np.arange(HOURS)
    usual = 100 + 40 * np.sin(2 * np.pi * hours / 24)
    waves = [wave[hours + len(NAMES) - delay] for delay in range(len(NAMES))]
    return np.round(np.stack([usual + 20 * each for each in waves], axis=1), 3)


def feeding(counts, first, last, groups=GROUP):
    """Return the work that feeds some hours; the third sensor has gaps and a silent day."""

    async def work(service):
        for name in groups if first == 0 else ():
            await service.operators.declare(name, Declaration(group="A2"))
        for hour in range(first, last):
            pairs = zip(NAMES, counts[hour].tolist(), strict=True)
            is_silent = hour % 50 == 7 or 60 <= hour < 70
            await send(service, hour, *(p for p in pairs if p[0] != "third" or not is_silent))
        return {
            name: service.forecasts.groups.listening(number) for number, name in enumerate(NAMES, 1)
        }

    return work


@pytest.fixture(scope="module")
def served(counts, tmp_path_factory):
    """Return the database of a service, and whom its sensors listen to at the end."""
    database = tmp_path_factory.mktemp("groups") / "whole.db"
    return database, serving(feeding(counts, 0, HOURS), database, **HOURLY)


@pytest.fixture
def copied(served, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(served[0], copy)
    return copy


def forecasts_of(database, *, corrected):
    with open_ledger(str(database), read_only=True) as ledger:
        numbers = {each.name: each.id for each in ledger.sensors()}
        return {
            name: {each.seq: each for each in ledger.forecasts(number, corrected=corrected)}
            for name, number in numbers.items()
        }


def stacked(forecasts):
    """Return values (n, 2) and ends of intervals (n, 2, 1); NaN for a missing forecast."""
    rows = [
        ((np.nan,) * 2,) * 3 if each is None else (each.values, each.lower, each.upper)
        for each in forecasts
    ]
    values, lower, upper = np.moveaxis(np.array(rows, dtype=np.float64), 1, 0)
    return values, lower[..., None], upper[..., None]


class TestCorrections:
    def test_they_are_those_of_the_neighbours_of_the_library(self, served, counts):
        own = forecasts_of(served[0], corrected=False)
        stored = forecasts_of(served[0], corrected=True)
        by_time = {name: {each.time: each for each in own[name].values()} for name in GROUP}
        layer = sr.Neighbours(2, 24, 0.9)
        layer.resize([-1, -1, -1])
        expected = {name: dict(own[name]) for name in GROUP}
        for hour in range(HOURS):
            time = START + hour * HOUR
            before, after = ([by_time[n].get(t) for n in GROUP] for t in (time, time + HOUR))
            read = [np.nan if a is None else counts[hour, i] for i, a in enumerate(after)]
            layer.observe(np.array(read), *stacked(before))
            layer.choose()
            numbers = layer.corrected(*stacked(after))
            for place, each in enumerate(after):
                if each is not None:
                    values, lower, upper = (tuple(n[place].ravel().tolist()) for n in numbers)
                    new = msgspec.structs.replace(each, values=values, lower=lower, upper=upper)
                    expected[GROUP[place]][each.seq] = new

        assert {name: stored[name] for name in GROUP} == expected

    def test_they_make_forecasts_of_travelling_waves_better(self, served, counts):
        errors = {}
        for corrected in (False, True):
            made = forecasts_of(served[0], corrected=corrected)["second"].values()
            hours = [(each.time - START) // HOUR for each in made]
            errors[corrected] = np.std(
                [
                    each.values[0] - counts[hour, 1]
                    for each, hour in zip(made, hours, strict=True)
                    if PART < hour < HOURS
                ]
            )

        assert errors[True] < 0.9 * errors[False]

    def test_a_sensor_without_a_group_has_none(self, served):
        own, stored = (forecasts_of(served[0], corrected=each)["apart"] for each in (False, True))

        assert own == stored
        assert served[1]["apart"] is None

    def test_a_sensor_listens_to_the_one_before_it(self, served):
        heard = served[1]["second"]

        assert heard.neighbours[0][0] == 1
        assert heard.neighbours[0][1] > 0.1
        assert heard.error_ratio < 0.95

    def test_a_restart_changes_none(self, served, counts, tmp_path):
        database = tmp_path / "two lives.db"
        serving(feeding(counts, 0, PART), database, **HOURLY)
        listening = serving(feeding(counts, PART, HOURS), database, **HOURLY)

        assert forecasts_of(database, corrected=True) == forecasts_of(served[0], corrected=True)
        assert listening == served[1]

    def test_without_neighbours_there_are_none(self, counts, tmp_path):
        database = tmp_path / "none.db"
        listening = serving(feeding(counts, 0, 60), database, neighbours="none", **HOURLY)

        assert set(listening.values()) == {None}
        own, stored = (forecasts_of(database, corrected=each) for each in (False, True))
        assert own == stored

    def test_a_damaged_state_begins_again(self, copied, counts):
        change(copied, "UPDATE group_states SET state = zeroblob(100)")

        serving(feeding(counts, HOURS - 1, HOURS), copied, **HOURLY)

        with open_ledger(str(copied), read_only=True) as ledger:
            assert [each.fault for each in check_groups(ledger)] == [None]

    def test_steps_that_a_crash_has_lost_are_made_up_for(self, copied, served, counts):
        with open_ledger(str(copied), read_only=True) as ledger:
            steps = ledger.group_steps("A2", HOUR)
            saved, _ = ledger.group_state("A2", HOUR)
        lost = [step for step in steps if step.time > saved][1:]
        named = [each.following for step in lost for each in step.members]
        change(copied, "DELETE FROM group_steps WHERE time >= ?", lost[0].time)
        change(copied, "DELETE FROM corrections WHERE seq >= ?", min(filter(None, named)))

        serving(settled, copied, **HOURLY)

        with open_ledger(str(copied), read_only=True) as ledger:
            # The lost steps are a gap; only the last one has forecasts that can be corrected.
            assert [step.time for step in ledger.group_steps("A2", HOUR)] == [
                step.time for step in steps if step not in lost[:-1]
            ]
            assert [each.fault for each in check_groups(ledger)] == [None]
        before, after = (forecasts_of(each, corrected=True) for each in (served[0], copied))
        for name in GROUP:
            known = {seq for seq in before[name] if seq < min(filter(None, named))}
            assert {seq: before[name][seq] for seq in known} == {
                seq: after[name][seq] for seq in known
            }

    def test_other_settings_begin_again_and_are_verified(self, copied):
        async def one_more(service):
            await send(service, HOURS, *((name, 100.0) for name in NAMES))

        serving(one_more, copied, **{**HOURLY, "horizon": 3})

        with open_ledger(str(copied), read_only=True) as ledger:
            steps = ledger.group_steps("A2", HOUR)
            assert [each.begins for each in steps if each.begins] == [(2, 24, 0.9), (3, 24, 0.9)]
            assert [each.fault for each in check_groups(ledger)] == [None]


async def send(service, hour, *pairs):
    """Send the readings of an hour, and wait until they are processed."""
    rows = [Row(i + 1, n, START + int(hour * HOUR), value) for i, (n, value) in enumerate(pairs)]
    await service.ingest.store(Batch(rows, []), IngestOptions())
    await settled(service)


def group_steps(database):
    with open_ledger(str(database), read_only=True) as ledger:
        (found,) = check_groups(ledger)
        assert (found.fault, found.is_exact) == (None, True)
        return {(each.time - START) // HOUR: each for each in ledger.group_steps("A2", HOUR)}


async def declared(service, *names, **more):
    for name in names:
        await service.operators.declare(name, Declaration(group="A2", **more))


class TestOddOrders:
    def test_readings_out_of_order_keep_their_steps(self, tmp_path):
        async def work(service):
            await declared(service, "a", "b")
            for hour in range(4):
                await send(service, hour, ("a", 1.0 + hour), ("b", 10.0 + hour))
            for hour, value in ((5, 66.0), (4, 55.0)):
                await send(service, hour, ("b", value))
            for hour in (4, 5):
                await send(service, hour, ("a", 1.0 + hour))

        serving(work, tmp_path / "a.db", grace="2h", **HOURLY)

        steps = group_steps(tmp_path / "a.db")
        # A reading that comes after a later one is learned, but the group does not hear of it.
        assert [each.value for each in steps[4].members] == [5.0, None]
        assert [each.value for each in steps[5].members] == [6.0, 66.0]

    def test_a_name_that_is_used_again_for_earlier_times(self, tmp_path):
        async def work(service):
            await declared(service, "a", "b")
            for hour in range(6):
                await send(service, hour, ("a", 1.0), ("b", 2.0 + hour))
            for name in ("a", "b"):
                await service.operators.declare(name, Declaration())
            await declared(service, "c", "d")
            for hour in range(3, 8):
                await send(service, hour, ("c", 3.0), ("d", 4.0 + hour))

        serving(work, tmp_path / "a.db", **HOURLY)

        steps = group_steps(tmp_path / "a.db")
        assert {hour: [m.sensor for m in step.members] for hour, step in steps.items()} == {
            **{hour: [1, 2] for hour in range(6)},
            **{hour: [3, 4] for hour in (6, 7)},
        }

    def test_a_rule_that_is_taken_back_is_no_fault(self, tmp_path):
        async def work(service):
            await declared(service, "a", "b", rule="sum")
            for hour in range(4):
                await send(service, hour, ("a", 1.0), ("b", 2.0))
                await send(service, hour + 0.5, ("a", 3.0), ("b", 4.0))
            await declared(service, "a", "b")
            for hour in (4, 5):
                await send(service, hour, ("a", 1.0), ("b", 2.0))

        serving(work, tmp_path / "a.db", **HOURLY)

        assert [each.value for each in group_steps(tmp_path / "a.db")[1].members] == [4.0, 6.0]

    def test_a_step_that_is_not_stored_costs_its_group_alone(self, tmp_path, monkeypatch):
        fails = []
        add = Ledger.add_group_steps

        def sometimes(ledger, results):
            if any((each.step.time - START) // HOUR == 3 for each in results) and results:
                fails.append(len(results))
                raise ValueError("it does not fit")
            add(ledger, results)

        monkeypatch.setattr(Ledger, "add_group_steps", sometimes)

        async def work(service):
            await declared(service, "a", "b")
            for hour in range(8):
                await send(service, hour, ("a", 1.0), ("b", 2.0 + hour))

        serving(work, tmp_path / "a.db", **HOURLY)

        assert fails == [1]
        steps = group_steps(tmp_path / "a.db")
        assert sorted(steps) == [0, 1, 2, *range(4, 8)]
        assert [hour for hour, step in steps.items() if step.begins] == [0, 4]
        assert all(
            len(each) == 8 for each in forecasts_of(tmp_path / "a.db", corrected=False).values()
        )


def test_steps_that_follow_a_lost_one_are_left_out_until_the_group_begins_again(tmp_path):
    stored, lost = [], []
    steps = [
        GroupResult(
            GroupStep("A2", HOUR, hour * HOUR, (1, 24, 0.9) if hour in (0, 3) else None, ()), ()
        )
        for hour in range(5)
    ]

    class Picky:
        last_seq = staticmethod(lambda: 0)

        def add_group_steps(self, results):
            if steps[1] in results:
                raise ValueError("it does not fit")
            stored.extend(results)

    writer = Writer(Picky(), None)
    writer._on_lost_step = lost.append
    for some in (steps[:2], steps[2:]):
        writer._write_run(PendingWrites([*some]))

    assert stored == [steps[0], *steps[3:]]
    assert lost == [("A2", HOUR)]


class TestMembers:
    def test_a_sensor_that_leaves_its_group_is_corrected_no_more(self, copied, counts):
        async def leave(service):
            await service.operators.declare("second", Declaration())
            for hour in range(HOURS, HOURS + 3):
                await send(service, hour, *zip(NAMES, counts[hour - 24].tolist(), strict=True))
            return service.forecasts.groups.listening(2)

        assert serving(leave, copied, **HOURLY) is None

        with open_ledger(str(copied), read_only=True) as ledger:
            last = ledger.group_steps("A2", HOUR)[-1]
            assert [each.sensor for each in last.members] == [1, 3]
            assert [each.fault for each in check_groups(ledger)] == [None]
        own, stored = (forecasts_of(copied, corrected=each)["second"] for each in (False, True))
        after = START + (HOURS + 1) * HOUR
        assert [e for e in own.values() if e.time > after] == [
            e for e in stored.values() if e.time > after
        ]


def change(database, sql, *values):
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(sql, values).rowcount > 0


class Watched:
    """A ledger that calls a function with the name of each query before it answers."""

    def __init__(self, ledger, before):
        self._ledger, self._before = ledger, before

    def __getattr__(self, name):
        self._before(name)
        return getattr(self._ledger, name)


class Loading:
    """Groups that load from a ledger; `before` is called with the name of each query."""

    def __init__(self, ledger, before=lambda name: None, on_store=lambda: None):
        self.ledger, self.before, self.on_store = ledger, before, on_store
        self.asked, self.stored = [], []
        self.sensors = ledger.sensors()
        self.groups = service_groups.Groups(
            small("", **HOURLY).plan, is_on=True, store=self._store, show=lambda some: None
        )

    def start(self):
        self.groups.start(Watched(self.ledger, self._ask), self.sensors)

    def _ask(self, name):
        self.asked.append(name)
        self.before(name)

    def _store(self, result):
        self.stored.append(result.step)
        self.on_store()

    def listening(self):
        return {each.name: self.groups.listening(each.id) for each in self.sensors}

    def forecasts(self, hour):
        """Return forecasts of the group after an hour, as if they followed the stored ones."""
        last = self.ledger.last_seq()
        return [
            msgspec.structs.replace(
                list(self.ledger.forecasts(sensor))[-1],
                seq=last + 3 * (hour - HOURS) + sensor,
                time=START + (hour + 1) * HOUR,
            )
            for sensor in (1, 2, 3)
        ]

    def take(self, *forecasts):
        values = [10.0 * each.sensor for each in forecasts]
        self.groups.take(ReadingsTaken(0, list(forecasts), [], [], values))

    def finish(self):
        wait_until(lambda: not self.groups.waiting, "an end of the work of groups")

    def stop(self):
        """Stop the groups; fail if that does not end."""
        thread = Thread(target=self.groups.stop, daemon=True)
        thread.start()
        thread.join(LIMIT)
        assert not thread.is_alive()


@pytest.fixture
def loading(copied):
    with open_ledger(str(copied)) as ledger:
        yield Loading(ledger)


def failing(error, query, times):
    """Return a function that raises an error at the first `times` calls with a query."""
    left = [error] * times

    def before(name):
        if name == query and left:
            raise left.pop()

    return before


AWAY = StorageAwayError("the storage cannot be reached.")


class TestLoading:
    # The last one is the first query for the newest forecasts.
    @pytest.mark.parametrize("query", ["group_state", "group_steps", "forecasts", "newest"])
    def test_a_stop_ends_it(self, loading, monkeypatch, query):
        monkeypatch.setattr(service_groups, "MOST_FORECASTS", 3)  # one step at a time
        whole, reached = Loading(loading.ledger), Event()
        whole.start()
        whole.finish()
        whole.stop()
        assert whole.asked.count("group_steps") > 2
        place = len(whole.asked) - 3 if query == "newest" else whole.asked.index(query)

        def before(name):
            if len(loading.asked) == place + 1:
                reached.set()
                assert loading.groups._stopping.wait(LIMIT)

        loading.before = before
        loading.start()
        assert reached.wait(LIMIT)
        loading.take(*loading.forecasts(HOURS))
        loading.stop()

        first_step = whole.asked.index("group_steps") + 1 + len(GROUP)
        assert loading.asked == whole.asked[: max(first_step, place + 1)]
        assert loading.stored == []

    def test_a_stop_leaves_further_groups_out(self, loading):
        declared = msgspec.json.encode(Declaration(group="B1"))
        loading.sensors[3] = msgspec.structs.replace(loading.sensors[3], declared=declared)
        reached = Event()

        def before(name):
            if name == "group_state":
                reached.set()
                assert loading.groups._stopping.wait(LIMIT)

        loading.before = before
        loading.start()
        assert reached.wait(LIMIT)
        loading.stop()

        assert loading.asked.count("last_group_step") == 2
        assert loading.asked.count("group_state") == 1

    @pytest.mark.parametrize("query", ["group_state", "group_steps", "forecasts"])
    def test_it_waits_for_a_storage_that_is_away(self, loading, monkeypatch, query):
        monkeypatch.setattr(service_groups, "RETRY_EVERY", 0.0)
        loading.before = failing(AWAY, query, times=2)

        with capture_logs() as lines:
            loading.start()
            loading.finish()
        loading.take(*loading.forecasts(HOURS))
        loading.finish()
        loading.stop()

        assert [(each["event"], each["reason"]) for each in lines] == [
            ("groups wait for the storage", str(AWAY))
        ] * 2
        assert [(each.time, each.begins) for each in loading.stored] == [
            (START + HOURS * HOUR, None)
        ]

    def test_a_stop_does_not_wait_for_a_storage_that_is_away(self, loading, monkeypatch):
        monkeypatch.setattr(service_groups, "RETRY_EVERY", 100 * LIMIT)
        loading.before = failing(AWAY, "group_state", times=1)

        with capture_logs() as lines:
            loading.start()
            wait_until(lambda: lines, "a line of the log")
            loading.take(*loading.forecasts(HOURS))
            loading.stop()

        assert [each["event"] for each in lines] == ["groups wait for the storage"]
        assert loading.stored == []  # the next start loads the group

    @pytest.mark.parametrize("query", ["group_state", "group_steps", "forecasts"])
    def test_a_group_that_cannot_be_loaded_begins_again(self, loading, query):
        error = DamagedPageError("a page is damaged.")
        loading.before = failing(error, query, times=1)

        with capture_logs() as lines:
            loading.start()
            loading.finish()
        heard = loading.listening()
        # A stop still finishes what is queued.
        loading.on_store = lambda: loading.groups._stopping.wait(LIMIT)
        for hour in (HOURS, HOURS + 1):
            loading.take(*loading.forecasts(hour))
        loading.stop()

        assert [(each["event"], each["group"], each["reason"]) for each in lines] == [
            ("a group begins again", "A2", str(error))
        ]
        assert heard == {**dict.fromkeys(GROUP, Listening()), "apart": None}
        first, second = loading.stored
        assert (first.time, first.begins) == (START + HOURS * HOUR, (2, 24, 0.9))
        assert (second.time, second.begins) == (START + (HOURS + 1) * HOUR, None)

    @pytest.mark.parametrize("is_after_a_crash", [False, True])
    def test_it_leaves_out_forecasts_that_are_queued(self, loading, is_after_a_crash):
        forecasts = loading.forecasts(HOURS)
        if is_after_a_crash:  # their readings were stored, but not noted as processed
            loading.ledger.put_facts({"last": str(forecasts[-1].seq)})
            loading.ledger.add_forecasts(forecasts)
        else:
            loading.before = lambda name: (
                name == "group_state" and loading.ledger.add_forecasts(forecasts)
            )
        loading.start()
        loading.take(*forecasts[:2])
        loading.take(forecasts[2])
        loading.finish()
        loading.stop()

        (step,) = loading.stored
        assert [each.value for each in step.members] == [10.0, 20.0, 30.0]
        assert [each.following for each in step.members] == [each.seq for each in forecasts]

    def test_it_knows_forecasts_of_complete_steps_that_are_not_noted_as_processed(self, loading):
        loading.ledger.put_facts({"done": "0"})

        loading.start()
        loading.take(*loading.forecasts(HOURS))
        loading.finish()
        loading.stop()

        (step,) = loading.stored
        assert all(each.own for each in step.members)

    def test_a_sensor_stays_in_its_group_until_the_storage_is_back(self, loading, monkeypatch):
        monkeypatch.setattr(service_groups, "RETRY_EVERY", 0.0)
        loading.start()
        loading.finish()
        before, is_back, reached = loading.listening(), Event(), Event()

        def away(name):
            if not is_back.is_set():
                reached.set()
                raise AWAY

        loading.before = away
        declared = msgspec.json.encode(Declaration(group="B1"))
        loading.groups.put(msgspec.structs.replace(loading.sensors[2], declared=declared))
        assert reached.wait(LIMIT)
        assert loading.listening() == before
        is_back.set()
        loading.finish()

        loading.take(*loading.forecasts(HOURS))
        loading.finish()
        loading.stop()
        (step,) = loading.stored
        assert [each.sensor for each in step.members] == [1, 2]


class TestVerify:
    def test_all_are_replayed_bit_for_bit(self, served):
        with open_ledger(str(served[0]), read_only=True) as ledger:
            (found,) = check_groups(ledger)

        assert (found.group, found.fault, found.is_exact) == ("A2", None, True)
        assert found.corrections > 100

    @pytest.mark.parametrize(
        ("sql", "words"),
        [
            ("DELETE FROM corrections WHERE seq = (SELECT max(seq) FROM corrections)", "differs"),
            ("UPDATE corrections SET numbers = ?", "differs from the replayed one"),
            ("UPDATE group_steps SET body = x'c1'", "a step of group A2 is damaged"),
        ],
    )
    def test_a_change_is_found(self, copied, sql, words):
        values = [struct.pack("<6d", *range(6))] if "?" in sql else []
        change(copied, sql, *values)

        with open_ledger(str(copied), read_only=True) as ledger:
            (found,) = check_groups(ledger)
        assert words in found.fault

    def test_a_value_that_is_not_in_the_log_is_found(self, copied):
        with open_ledger(str(copied), read_only=True) as ledger:
            step = ledger.group_steps("A2", HOUR)[50]
        first, *others = step.members
        members = [msgspec.structs.replace(first, value=1.5), *others]
        change(
            copied,
            "UPDATE group_steps SET body = ? WHERE time = ?",
            msgspec.msgpack.encode((step.begins, members)),
            step.time,
        )

        with open_ledger(str(copied), read_only=True) as ledger:
            (found,) = check_groups(ledger)
        assert found.fault == f"its step at {step.time} has a value that is not in the log."

    def test_a_group_whose_first_steps_were_pruned_is_not_replayed(self, copied):
        change(copied, "DELETE FROM group_steps WHERE time < ?", START + 5 * HOUR)

        with open_ledger(str(copied), read_only=True) as ledger:
            (found,) = check_groups(ledger)
        assert found.fault is None
        assert "pruned" in found.remark
        assert found.corrections == 0
