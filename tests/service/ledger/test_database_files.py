"""The files of an SQLite database: deleted or replaced under a writer, linked, and private."""

import os
import shutil
import stat

import pytest

from streamridge_service.ledger.errors import InUseError, LinkedFileError, StorageGoneError
from streamridge_service.ledger.opening import open_ledger, restore
from tests.support.ledger.samples import contents, entries, filled, sensor

SENSORS = [sensor(number) for number in range(1, 5)]


@pytest.fixture
def path(folder):
    return folder / "roads.db"


def delete(path):
    path.unlink()


def replace(path):
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


class TestFilesInPlace:
    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
    @pytest.mark.parametrize("change", [delete, replace])
    def test_a_write_is_not_acknowledged_after_a_file_is_gone(self, path, suffix, change, counted):
        with open_ledger(path) as ledger:
            ledger.append(SENSORS, entries(1, 4))
            change(path.with_name(f"roads.db{suffix}"))

            for _ in range(2):
                with pytest.raises(StorageGoneError, match=rf"roads.db{suffix} was deleted or rep"):
                    ledger.append(readings=entries(5, 8))
            with pytest.raises(StorageGoneError, match="was deleted or replaced"):
                ledger.require_files()
        counted("A6", 3)

    def test_an_idle_writer_notices_it(self, path):
        with open_ledger(path) as ledger:
            ledger.require_files()
            path.unlink()

            with pytest.raises(StorageGoneError, match="was deleted or replaced"):
                ledger.require_files()

    def test_a_link_that_points_elsewhere_is_noticed(self, path, folder):
        link = folder / "link.db"
        link.symlink_to(path)
        with open_ledger(link) as ledger:
            link.unlink()
            link.symlink_to(folder / "elsewhere.db")

            with pytest.raises(StorageGoneError, match=r"link.db was deleted or replaced"):
                ledger.append(SENSORS)

    def test_nothing_is_lost_with_a_deleted_log(self, path):
        with open_ledger(path) as ledger:
            ledger.append(SENSORS, entries(1, 4))
            path.with_name("roads.db-wal").unlink()
            with pytest.raises(StorageGoneError, match="was deleted or replaced"):
                ledger.append(readings=entries(5, 8))

        with open_ledger(path) as again:
            assert again.last_seq() == 8
            assert list(again.check()) == []

    def test_a_change_of_the_working_folder_is_harmless(self, folder, monkeypatch, tmp_path):
        monkeypatch.chdir(folder)
        with open_ledger("roads.db") as ledger:
            monkeypatch.chdir(tmp_path)
            ledger.append(SENSORS, entries(1, 4))
            assert len(list(ledger.readings_after(0))) == 4


class TestLinks:
    def test_a_symbolic_link_shares_the_lock(self, path, folder):
        open_ledger(path).close()
        (folder / "links").mkdir()
        link = folder / "links" / "other.db"
        link.symlink_to(path)

        for first, second in ((path, link), (link, path)):
            with open_ledger(first), pytest.raises(InUseError, match="is served by process"):
                open_ledger(second)

    def test_a_hard_link_is_never_served(self, path, folder):
        with open_ledger(path) as ledger:
            ledger.append(SENSORS, entries(1, 4))
            os.link(path, folder / "other.db")

            for read_only in (False, True):
                with pytest.raises(LinkedFileError, match="must have one name"):
                    open_ledger(folder / "other.db", read_only=read_only)
            ledger.append(readings=entries(5, 8))
            with open_ledger(path, read_only=True) as reader:
                assert reader.last_seq() == 8
        with pytest.raises(LinkedFileError, match="Remove the other names, or use a copy"):
            open_ledger(path)

        (folder / "other.db").unlink()
        open_ledger(path).close()

    def test_a_backup_with_hard_links_is_read_and_restored(self, path, folder):
        with open_ledger(path) as ledger:
            filled(ledger)
            before = contents(ledger)
            ledger.copy_to(str(folder / "monday.db"))
        os.link(folder / "monday.db", folder / "tuesday.db")

        with open_ledger(folder / "tuesday.db", read_only=True) as copy:
            assert contents(copy) == before
        restore(folder / "tuesday.db", folder / "again.db")
        with open_ledger(folder / "again.db") as restored:
            assert contents(restored) == before


class TestPermissions:
    def test_copies_are_private_from_the_first_byte(self, ledger, tmp_path, monkeypatch):
        filled(ledger)
        seen, before = set(), os.umask(0)
        real = os.fsync

        def look(descriptor):
            seen.update(
                (each.name, stat.S_IMODE(each.stat().st_mode)) for each in tmp_path.iterdir()
            )
            real(descriptor)

        monkeypatch.setattr(os, "fsync", look)
        try:
            ledger.copy_to(str(tmp_path / "backup.db"))
            restore(tmp_path / "backup.db", tmp_path / "again.db")
        finally:
            os.umask(before)

        assert ("backup.db.part", 0o600) in seen
        assert {mode for _, mode in seen} == {0o600}
        copies = [path for name in ("backup", "again") for path in tmp_path.glob(f"{name}.db*")]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in copies}
        assert modes == dict.fromkeys(["backup.db", "again.db", "again.db-acked"], 0o600)

    def test_a_file_that_someone_put_there_is_not_written_to(self, ledger, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("mine")
        (tmp_path / "backup.db.part").symlink_to(victim)

        ledger.copy_to(str(tmp_path / "backup.db"))

        assert victim.read_text() == "mine"
