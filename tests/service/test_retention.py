"""Retention: old rows are deleted while the service runs, but nothing that forecasters need."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest

from streamridge_service.ledger import layout, pruning
from streamridge_service.ledger.errors import DiskFullError
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.plan import DAY, NEVER, Plan
from streamridge_service.problems import Problem
from streamridge_service.service import retention as module
from streamridge_service.service import service as service_module
from streamridge_service.service.retention import Retention
from streamridge_service.workers.snapshots import history_span
from tests.support.ledger.samples import NOON, STEP, entries, forecast, sensor, snapshot
from tests.support.service.in_process import NAMES, fed, serving
from tests.support.waiting import LIMIT, wait_until_async

# A year of four sensors, one reading a day.
DAYS = 365
PLAN = Plan(step=STEP, train_size=96)
LAST_DAY = NOON + DAYS * DAY


class Bench:
    """Retention of a ledger without a service."""

    def __init__(self, ledger):
        self.ledger, self.events = ledger, []
        self.health, self.longest = SimpleNamespace(notes={}), 0
        self.fault = None

    async def run(self, task):
        if self.fault is not None:
            raise self.fault
        before = self.ledger._storage._writer.total_changes()
        result = task(self.ledger)
        self.longest = max(self.longest, self.ledger._storage._writer.total_changes() - before)
        return result

    async def read(self, query):
        return query(self.ledger)

    def retention(self, keep_days):
        record = lambda kind, sensor, reason: self.events.append((kind, reason))  # noqa: E731
        return Retention(
            keep_days,
            PLAN,
            read=self.read,
            writer=self,
            events=SimpleNamespace(record=record),
            health=self.health,
        )

    def prune(self, keep_days, now=LAST_DAY, newest=LAST_DAY, step=STEP):
        """Delete what is too old; return the oldest day that is left."""
        retention = self.retention(keep_days)
        asyncio.run(retention.run(now, newest, step))
        left = min(entry.time for entry in self.ledger.readings_after(0))
        return (left - NOON) // DAY, retention


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "BUCKET", 40)
    monkeypatch.setattr(pruning, "MOST_ROWS", 15)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    with open_ledger(tmp_path / "roads.db") as ledger:
        readings = [
            msgspec.structs.replace(entry, time=NOON + (entry.seq - 1) // 4 * DAY)
            for entry in entries(1, 4 * DAYS)
        ]
        ledger.append([sensor(number) for number in range(1, 5)], readings)
        ledger.add_snapshots([snapshot(4 * DAYS - 8, number) for number in range(1, 5)])
        yield Bench(ledger)


class TestAge:
    def test_old_rows_are_deleted_in_small_transactions(self, bench):
        bench.ledger.add_forecasts([forecast(seq) for seq in range(1, 200)])

        oldest, retention = bench.prune(keep_days=100)

        assert DAYS - 100 - 11 <= oldest <= DAYS - 100
        assert retention.deleted > 1000
        assert bench.longest <= 15
        assert [kind for kind, _ in bench.events] == ["pruned"]
        assert list(bench.ledger.check()) == []

    def test_nothing_is_deleted_without_the_setting(self, bench):
        assert bench.prune(keep_days=None)[0] == 0
        assert bench.events == []

    def test_a_second_run_deletes_nothing_more(self, bench):
        oldest, _ = bench.prune(keep_days=100)

        again, retention = bench.prune(keep_days=100)

        assert (again, retention.deleted, len(bench.events)) == (oldest, 0, 1)

    @pytest.mark.parametrize("step", [STEP, 4 * STEP, DAY])
    def test_the_history_that_a_forecaster_is_rebuilt_from_stays(self, bench, step):
        oldest, _ = bench.prune(keep_days=1, step=step)

        needed = history_span(msgspec.structs.replace(PLAN, step=step)) // DAY
        assert needed > 30
        assert 0 < oldest <= DAYS - needed

    def test_readings_after_the_last_snapshot_stay(self, bench):
        bench.ledger.append([sensor(5)])
        newer = [
            msgspec.structs.replace(entry, sensor=5, time=LAST_DAY)
            for entry in entries(4 * DAYS + 1, 4 * DAYS + 80)
        ]
        bench.ledger.append(readings=newer)
        with bench.ledger._storage.writing() as session:
            session.run("UPDATE snapshots SET seq = 100 WHERE sensor = 2")

        bench.prune(keep_days=100)

        assert min(entry.seq for entry in bench.ledger.readings(2) if entry.seq > 100) == 102

    @pytest.mark.parametrize(
        ("now", "newest"),
        [(LAST_DAY + 1000 * DAY, LAST_DAY), (LAST_DAY, LAST_DAY + 170_000 * DAY)],
        ids=["a wrong clock", "a wrong reading"],
    )
    def test_a_time_far_ahead_deletes_no_recent_data(self, bench, now, newest):
        oldest, _ = bench.prune(100, now, newest)

        assert oldest <= DAYS - 100

    def test_nothing_is_deleted_before_the_first_reading(self, bench):
        assert bench.prune(100, LAST_DAY, NEVER)[0] == 0


class TestFailures:
    @pytest.mark.parametrize(
        "fault", [Problem("sr-disk-full", "There is no room."), DiskFullError("There is no room.")]
    )
    def test_a_failure_is_told_once_and_tried_again(self, bench, fault):
        retention = bench.retention(100)
        bench.fault = fault

        for _ in range(3):
            asyncio.run(retention.run(LAST_DAY, LAST_DAY, STEP))
        failed = retention.failed, list(bench.events), dict(bench.health.notes)
        bench.fault = None
        asyncio.run(retention.run(LAST_DAY, LAST_DAY, STEP))

        told = "old rows were not deleted: There is no room."
        assert failed == (
            3,
            [("prune_failed", told)],
            {"retention": "old readings could not be deleted"},
        )
        assert retention.deleted > 0
        assert bench.health.notes == {}


def test_a_running_service_deletes_old_rows_between_readings(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "BUCKET", 40)
    database = tmp_path / "a.db"
    archived = [msgspec.structs.replace(sensor(number), archived=NOON) for number in range(1, 5)]
    with open_ledger(database) as ledger:
        ledger.append(archived, entries(1, 200))
        ledger.put_facts({"done": "200"})

    monkeypatch.setattr(service_module, "PRUNE_EVERY", 0.05)
    monkeypatch.setattr(module, "DAY", 0)
    monkeypatch.setattr(module, "history_span", lambda plan: 0)

    async def run(service):
        await fed(service, 0, 2)
        kinds = lambda: {event.kind for event in service.ledger.events()}  # noqa: E731
        await wait_until_async(lambda: "pruned" in kinds(), "deleted rows", LIMIT)
        return service.ingest.counts["accepted"]

    assert serving(run, database, keep_days=1) == 2 * len(NAMES)
    with open_ledger(database, read_only=True) as ledger:
        assert list(ledger.check()) == []
        assert int(ledger.facts()["first"]) > 100
