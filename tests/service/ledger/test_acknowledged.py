"""A database that lacks acknowledged readings is refused (A6)."""

import os
import shutil
import stat

import pytest

from streamridge_service.ledger import acknowledged
from streamridge_service.ledger.acknowledged import AcknowledgedFile, Acknowledgement
from streamridge_service.ledger.errors import LostReadingsError
from streamridge_service.ledger.opening import accept_loss, open_ledger, restore
from tests.support.ledger.samples import NOON, entries, event, forecast, sensor

SENSORS = [sensor(number) for number in range(1, 5)]
BATCHES, SIZE = 10, 8
LAST = BATCHES * SIZE


def written(ledger):
    """Write some batches of readings, and a forecast of the last."""
    ledger.append(SENSORS)
    for first in range(1, LAST, SIZE):
        ledger.append(readings=entries(first, first + SIZE - 1))
    ledger.add_forecasts([forecast(LAST)])


def killed(path):
    """Leave the files of a process that was killed after it has acknowledged all readings."""
    with open_ledger(path.with_name("running.db")) as ledger:
        written(ledger)
        for suffix in ("", "-wal", "-acked"):
            shutil.copy(path.with_name(f"running.db{suffix}"), f"{path}{suffix}")
    return path


@pytest.fixture
def path(folder):
    return killed(folder / "roads.db")


def refused(path, words):
    """Assert that a database is refused, whoever opens it."""
    for read_only in (True, False):
        with pytest.raises(LostReadingsError, match=words):
            open_ledger(path, read_only=read_only)


class TestLoss:
    def test_an_undamaged_log_is_accepted(self, path, counted):
        for read_only in (True, False):
            with open_ledger(path, read_only=read_only) as ledger:
                assert ledger.last_seq() == LAST
        counted("A6", 2)

    def test_a_log_that_was_cut_is_noticed(self, path, counted):
        log = path.with_name("roads.db-wal")
        whole = log.read_bytes()
        ends = range(0, len(whole) * 2 // 3, len(whole) // 7)

        for end in ends:
            log.write_bytes(whole[:end])
            refused(path, r"acknowledged\. .* run `streamridge accept-loss`")

        counted("A6", len(ends))

    def test_the_message_says_how_many_readings_are_missing(self, path):
        log = path.with_name("roads.db-wal")
        log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3])

        with pytest.raises(LostReadingsError, match=r"lacks the last (\d+) readings") as caught:
            open_ledger(path)
        accept_loss(path, NOON)

        with open_ledger(path) as ledger:
            missing = LAST - ledger.last_seq()
        assert f"lacks the last {missing} readings" in str(caught.value)
        assert 0 < missing < LAST

    def test_a_changed_bit_of_the_log_is_noticed(self, path, counted):
        log = path.with_name("roads.db-wal")
        whole = log.read_bytes()
        places = range(100, len(whole) // 2, len(whole) // 20)

        for place in places:
            log.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            refused(path, r"were acknowledged\. .*write-ahead log was damaged")

        counted("A6", len(places))

    def test_without_the_file_the_loss_goes_unnoticed(self, path, counted):
        path.with_name("roads.db-acked").unlink()
        log = path.with_name("roads.db-wal")
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])

        with open_ledger(path) as ledger:
            assert ledger.last_seq() < LAST
            assert list(ledger.check()) == []
        counted("A6 broken", 1)

    def test_an_older_copy_is_noticed(self, folder):
        path = folder / "roads.db"
        with open_ledger(path) as ledger:
            ledger.append(SENSORS, entries(1, 4))
            ledger.copy_to(str(folder / "old.db"))
            ledger.append(readings=entries(5, 12))
        shutil.copy(folder / "old.db", path)

        refused(path, r"lacks the last 8 readings .* an older copy was put in its place")

    def test_another_database_is_noticed(self, path, folder):
        with open_ledger(folder / "other.db") as ledger:
            ledger.append(SENSORS, entries(1, 2 * LAST))
        path.with_name("roads.db-wal").unlink()
        shutil.copy(folder / "other.db", path)

        refused(path, rf"is not the database in which {LAST} readings were acknowledged")

    @pytest.mark.parametrize("leave_empty", [False, True])
    def test_a_deleted_database_is_not_created_anew(self, path, leave_empty):
        path.with_name("roads.db-wal").unlink()
        path.unlink()
        if leave_empty:
            path.touch()

        with pytest.raises(LostReadingsError, match=rf"but {LAST} readings in it were acknowl"):
            open_ledger(path)

        assert path.exists() == leave_empty

    def test_nothing_is_missing_before_the_first_reading(self, folder):
        open_ledger(folder / "roads.db").close()
        (folder / "roads.db").unlink()

        open_ledger(folder / "roads.db").close()


class TestAcceptedLoss:
    def test_a_database_goes_on_after_its_loss_was_accepted(self, path):
        log = path.with_name("roads.db-wal")
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])

        reason = accept_loss(path, NOON)

        with open_ledger(path) as ledger:
            (recorded,) = ledger.events()
            last = ledger.last_seq()
            ledger.append(readings=entries(last + 1, last + 4))
        assert (recorded.kind, recorded.reason) == ("data_loss", reason)
        assert "readings that were acknowledged" in reason
        open_ledger(path, read_only=True).close()

    def test_a_missing_database_is_created_after_its_loss_was_accepted(self, path):
        path.with_name("roads.db-wal").unlink()
        path.unlink()

        assert f"{LAST} readings" in accept_loss(path, NOON)

        with open_ledger(path) as ledger:
            assert ledger.last_seq() == 0
            assert [each.kind for each in ledger.events()] == ["data_loss"]

    def test_the_event_follows_the_events_before(self, folder):
        path = folder / "roads.db"
        with open_ledger(path) as ledger:
            ledger.append(SENSORS, entries(1, 4))
            ledger.add_events([event(1), event(2)])
            ledger.copy_to(str(folder / "old.db"))
            ledger.append(readings=entries(5, 8))
        shutil.copy(folder / "old.db", path)

        accept_loss(path, NOON)

        with open_ledger(path, read_only=True) as ledger:
            assert [each.id for each in ledger.events()] == [1, 2, 3]

    def test_nothing_changes_if_nothing_is_missing(self, path):
        assert accept_loss(path, NOON) is None

        with open_ledger(path, read_only=True) as ledger:
            assert ledger.events() == []


class TestFile:
    @pytest.mark.parametrize("content", [b"", b"\0" * 62, b"half a l", b"a b c\n", b"\xff" * 500])
    def test_an_unreadable_file_is_ignored_and_written_anew(self, path, content):
        file = path.with_name("roads.db-acked")
        file.write_bytes(content)

        with open_ledger(path) as ledger:
            ledger.append(readings=entries(LAST + 1, LAST + 4))

        assert AcknowledgedFile(file).read().last == LAST + 4

    def test_every_changed_bit_makes_the_file_unreadable(self, tmp_path):
        file = AcknowledgedFile(tmp_path / "acked")
        file.write(Acknowledgement("6c0f", 123_456))
        line = file.path.read_bytes()

        for place in range(len(line)):
            for bit in range(8):
                changed = bytearray(line)
                changed[place] ^= 1 << bit
                file.path.write_bytes(changed)
                assert file.read() is None

    def test_only_the_owner_may_read_it(self, folder):
        before = os.umask(0)
        try:
            open_ledger(folder / "roads.db").close()
        finally:
            os.umask(before)

        assert stat.S_IMODE((folder / "roads.db-acked").stat().st_mode) == 0o600

    def test_a_file_that_cannot_be_written_does_not_disturb(self, folder, monkeypatch):
        def full(*arguments):
            raise OSError(28, "No space left on device")

        with open_ledger(folder / "roads.db") as ledger:
            monkeypatch.setattr(acknowledged.os, "open", full)
            ledger.append(SENSORS, entries(1, 4))
            assert ledger.last_seq() == 4

    def test_each_database_of_a_folder_has_its_own(self, folder):
        for name, last in (("a.db", 4), ("b.db", 8)):
            with open_ledger(folder / name) as ledger:
                ledger.append(SENSORS, entries(1, last))

        found = [AcknowledgedFile.of(folder / name).read().last for name in ("a.db", "b.db")]
        assert found == [4, 8]

    def test_it_is_next_to_the_file_and_not_next_to_a_link(self, folder):
        (folder / "data").mkdir()
        (folder / "link.db").symlink_to(folder / "data" / "roads.db")

        with open_ledger(folder / "link.db") as ledger:
            ledger.append(SENSORS, entries(1, 4))

        assert AcknowledgedFile.of(folder / "data" / "roads.db").read().last == 4
        assert [each.name for each in folder.iterdir() if each.name != "data"] == ["link.db"]

    def test_pruning_loses_nothing_acknowledged(self, folder, small_buckets):
        with open_ledger(folder / "roads.db") as ledger:
            ledger.append(SENSORS, entries(1, 240))
            assert ledger.prune(2 * NOON)["readings"] > 0

        open_ledger(folder / "roads.db").close()

    def test_a_restored_database_has_its_own(self, path, folder):
        with open_ledger(path) as ledger:
            ledger.copy_to(str(folder / "backup.db"))
            ledger.append(readings=entries(LAST + 1, LAST + 4))
        path.unlink()

        restore(folder / "backup.db", path)

        assert AcknowledgedFile.of(path).read().last == LAST
        open_ledger(path, read_only=True).close()
        open_ledger(path).close()
