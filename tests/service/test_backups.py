"""Scheduled backups: when they are due, what fails, and which files are removed."""

import asyncio
import stat
from types import SimpleNamespace

import pytest

from streamridge_service.ledger.opening import open_ledger
from streamridge_service.plan import DAY, HOUR, MINUTE, SECOND
from streamridge_service.service import backups as module
from streamridge_service.service import service as service_module
from streamridge_service.service.backups import BackupError, BackupFolder, Backups
from streamridge_service.settings import settings_of
from tests.support.service.in_process import NAMES, fed, serving
from tests.support.waiting import LIMIT, wait_until_async

NOON = 1_760_011_200 * SECOND  # 2025-10-09T12:00:00Z
IDENTITY = "0123456789abcdef"


class Clock:
    """The machine's clock and its steady clock, which go together."""

    def __init__(self):
        self.now = NOON

    def steady(self):
        return self.now / SECOND


class Bench:
    """Scheduled backups without a service; a backup is an empty file."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.clock = folder, Clock()
        self.events, self.fault = [], None
        self._disk = {"data": 1000}
        monkeypatch.setattr(module, "monotonic", self.clock.steady)
        monkeypatch.setattr(module, "_run", self._run)
        self.restart()

    def restart(self, **changes):
        given = {"backup_folder": str(self.folder), "backup_every": "6h", "backup_count": 3}
        settings = settings_of(database="roads.db", **{**given, **changes})
        record = lambda kind, sensor, reason: self.events.append((kind, reason))  # noqa: E731
        self.health = SimpleNamespace(notes={}, disk=self._disk)
        self.backups = Backups(
            settings,
            IDENTITY,
            events=SimpleNamespace(record=record),
            health=self.health,
            now=lambda: self.clock.now,
        )

    async def _run(self, path, database):
        path.touch()
        if self.fault is not None:
            raise BackupError(self.fault)

    def check(self, after=0):
        """Let time pass, and run a backup if one is due."""
        self.clock.now += after
        asyncio.run(self.backups.run_if_due())
        return self.names

    @property
    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backups").mkdir()
    return Bench(tmp_path / "backups", monkeypatch)


class TestSchedule:
    def test_the_first_backup_is_made_at_once_and_the_next_when_it_is_due(self, bench):
        first = bench.check()
        early = bench.check(after=6 * HOUR - 1)
        second = bench.check(after=1)

        assert first == early == ["roads-01234567-20251009T120000Z.db"]
        assert second == [*first, "roads-01234567-20251009T180000Z.db"]
        assert bench.backups.completed == 2
        assert [kind for kind, _ in bench.events] == ["backup", "backup"]

    def test_a_restart_does_not_change_the_schedule(self, bench):
        first = bench.check()
        bench.clock.now += 5 * HOUR
        bench.restart()

        assert bench.check() == first
        assert bench.backups.age == 5 * 3600
        assert len(bench.check(after=HOUR)) == 2

    def test_a_backup_of_the_future_does_not_delay_the_next(self, bench):
        bench.clock.now += 365 * DAY
        bench.check()
        bench.clock.now -= 365 * DAY
        bench.restart()

        assert len(bench.check()) == 2
        assert len(bench.check(after=HOUR)) == 2
        assert bench.backups.age == 3600

    def test_without_a_folder_there_are_no_backups(self, bench):
        bench.restart(backup_folder=None)

        assert bench.check() == []
        assert bench.backups.age is None


class TestFiles:
    def test_the_oldest_backups_are_removed(self, bench):
        for _ in range(5):
            names = bench.check(after=6 * HOUR)

        assert names == [
            f"roads-01234567-202510{time}0000Z.db" for time in ("10T06", "10T12", "10T18")
        ]

    def test_other_files_are_never_removed(self, bench):
        others = [
            "roads-01234567-20200101T000000Z.db.gz",
            "roads-01234567-20200101.db",
            "roads-76543210-20200101T000000Z.db",
            "mine.db",
            "streets-01234567-20200101T000000Z.db",
        ]
        for name in others:
            (bench.folder / name).touch()

        for _ in range(5):
            names = bench.check(after=6 * HOUR)

        assert set(others) < set(names)
        assert len(names) == len(others) + 3

    def test_an_unfinished_backup_is_removed(self, bench):
        (bench.folder / "roads-01234567-20200101T000000Z.db.part").touch()
        (bench.folder / "roads-01234567-20200101T000000Z.db.part-journal").touch()

        assert bench.check() == ["roads-01234567-20251009T120000Z.db"]

    def test_the_name_of_a_postgresql_database_is_used(self, tmp_path):
        folder = BackupFolder(tmp_path, "postgresql://me:secret@host/road_s?x=1", IDENTITY)

        assert folder.path_at(NOON).name == "road_s-01234567-20251009T120000Z.db"


class TestFailures:
    def test_a_failure_is_told_once_and_tried_again(self, bench):
        bench.fault = "the copy is damaged"

        for _ in range(3):
            assert bench.check(after=10 * MINUTE) == []  # a damaged copy is not kept

        assert bench.backups.failed == 3
        assert bench.events == [("backup_failed", "the backup failed: the copy is damaged")]
        assert bench.health.notes == {"backup": "the last backup failed"}

        bench.fault = None
        assert len(bench.check(after=10 * MINUTE)) == 1
        assert bench.health.notes == {}
        assert bench.backups.completed == 1

    def test_a_failure_keeps_the_earlier_backups(self, bench):
        for _ in range(4):
            before = bench.check(after=6 * HOUR)
        bench.fault = "the copy is damaged"

        for _ in range(4):
            assert bench.check(after=6 * HOUR) == before
        assert bench.backups.age == 24 * 3600

    def test_a_backup_does_not_fill_the_disk(self, bench):
        bench.health.disk["data"] = 10**18

        assert bench.check() == []
        assert "MB are free in its folder" in bench.events[0][1]

    def test_a_folder_that_vanished_is_told(self, bench):
        bench.folder.rmdir()
        bench.clock.now += 6 * HOUR

        asyncio.run(bench.backups.run_if_due())

        assert bench.events[0][0] == "backup_failed"
        assert bench.health.notes == {"backup": "the last backup failed"}


class TestService:
    @pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
    def test_a_running_service_makes_intact_backups(self, kind, request, tmp_path, monkeypatch):
        monkeypatch.setattr(service_module, "BACKUP_CHECK_EVERY", 0.05)
        (tmp_path / "backups").mkdir()
        database = tmp_path / "roads.db"
        if kind == "postgres":
            database = request.getfixturevalue("postgres").new_database()

        async def run(service):
            await wait_until_async(lambda: service.backups.completed, "a backup", LIMIT)
            assert service.health.is_ready
            assert service.backups.age < LIMIT

        serving(lambda service: fed(service, 0, 4), database)
        serving(run, database, backup_folder=str(tmp_path / "backups"))

        (path,) = (tmp_path / "backups").iterdir()
        with open_ledger(path, read_only=True) as copy:
            assert copy.last_seq() == 4 * len(NAMES)
            assert list(copy.check()) == []
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with open_ledger(database, read_only=True) as ledger:
            assert "backup" in {event.kind for event in ledger.events()}

    def test_a_failing_backup_does_not_stop_the_service(self, tmp_path, monkeypatch):
        monkeypatch.setattr(service_module, "BACKUP_CHECK_EVERY", 0.05)
        (tmp_path / "backups").mkdir()

        async def run(service):
            (tmp_path / "backups").rmdir()
            service.backups._due = 0.0
            await wait_until_async(lambda: service.backups.failed, "a failed backup", LIMIT)
            await fed(service, 0, 2)
            service.health.check(service.now, service.statuses.fresh_until)
            return service.health.is_ready, service.health.state, service.health.reasons

        found = serving(run, tmp_path / "a.db", backup_folder=str(tmp_path / "backups"))

        assert found == (True, "degraded", ["the last backup failed"])

    def test_a_stop_ends_a_running_backup(self, tmp_path, monkeypatch):
        """The service must not wait for a long backup, which leaves nothing behind."""
        (tmp_path / "backups").mkdir()
        started = []

        async def create(*arguments, **options):
            (tmp_path / "backups" / f"{arguments[-1]}.part").touch()
            process = await real("/bin/sleep", str(10 * LIMIT), stderr=options["stderr"])
            started.append(process)
            return process

        real = asyncio.create_subprocess_exec
        monkeypatch.setattr(module.asyncio, "create_subprocess_exec", create)

        async def run(service):
            await wait_until_async(lambda: started, "the start of a backup", LIMIT)

        serving(run, tmp_path / "a.db", backup_folder=str(tmp_path / "backups"))

        assert started[0].returncode is not None
        assert list((tmp_path / "backups").iterdir()) == []
