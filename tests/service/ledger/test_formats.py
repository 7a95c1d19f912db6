"""A file of a newer format is left alone, one of an older migrated whole or not at all (A7)."""

import hashlib
import random
import shutil

import pytest

from streamridge_service.ledger import schema
from streamridge_service.ledger.errors import FormatError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.faulty_files import Journal, disk_after, noted
from tests.support.ledger.samples import contents, filled

NEXT = """
ALTER TABLE sensors ADD COLUMN lanes {small};
UPDATE sensors SET lanes = 2;
CREATE TABLE again (seq {whole} PRIMARY KEY, value {real}) {by_key};
INSERT INTO again SELECT seq, value FROM readings;
CREATE INDEX readings_by_time ON readings (time)
"""


def digests(folder):
    """Return a digest of each file that holds something of a database."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix in (".db", ".db-wal") and path.stat().st_size
    }


@pytest.mark.parametrize("folded", [True, False], ids=["closed", "killed"])
def test_a_file_of_a_newer_format_is_not_changed(folder, counted, folded):
    left = folder / "left"
    left.mkdir()
    with open_ledger(folder / "ledger.db") as ledger:
        filled(ledger)
        ledger.put_facts({"format": str(schema.current_format() + 1), "version": "2.0.0"})
        if not folded:
            for name in ("ledger.db", "ledger.db-wal"):
                shutil.copy(folder / name, left / name)
    if folded:
        shutil.copy(folder / "ledger.db", left)
    before = digests(left)

    for read_only in (False, True, False):
        with pytest.raises(FormatError, match=r"by streamridge 2.0.0, this is .*nothing was chan"):
            open_ledger(left / "ledger.db", read_only)

    assert digests(left) == before
    assert ("ledger.db-wal" in before) != folded
    counted("A7", 3)


def older(folder):
    """Make a file of the present format, which is about to be older; return what it holds."""
    with open_ledger(folder / "ledger.db") as ledger:
        filled(ledger)
        return held(ledger)


def held(ledger):
    return contents(ledger) | {"facts": None}


def test_a_copy_is_kept_before_a_migration(folder, monkeypatch):
    before, present = older(folder), schema.MIGRATIONS
    kept = f"ledger.db.format-{len(present)}"
    monkeypatch.setattr(schema, "MIGRATIONS", [*present, NEXT])

    open_ledger(folder / "ledger.db").close()

    assert {path.name for path in folder.iterdir()} == {
        "ledger.db",
        "ledger.db-acked",
        "ledger.db.lock",
        kept,
    }
    monkeypatch.setattr(schema, "MIGRATIONS", present)
    with open_ledger(folder / kept, read_only=True) as copy:
        assert held(copy) == before
        assert list(copy.check()) == []


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_power_failure_during_a_migration_leaves_the_old_or_the_new_format(
    folder, monkeypatch, counted, every
):
    before = older(folder)
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, NEXT])
    journal = Journal()
    journal.calls = [
        ("write", "ledger.db", 0, (folder / "ledger.db").read_bytes()),
        ("sync", "ledger.db"),
    ]
    with noted(journal):
        open_ledger(folder / "ledger.db").close()

    ends = range(2, len(journal.calls) + 1, every)
    for end in ends:
        for keep in (None, random.Random(end)):
            left = folder / f"{end}-{keep is None}"
            left.mkdir()
            disk_after(journal.calls[:end], left, keep)
            with open_ledger(left / "ledger.db") as again:
                assert again.facts()["format"] == str(schema.current_format())
                assert held(again) == before
                assert list(again.check()) == []

    counted("A7", 2 * len(ends))
