"""Damaged states and pages are noticed (A6)."""

import random
from collections import Counter

import pytest

from streamridge_service.ledger import layout
from streamridge_service.ledger.errors import DamagedError, DamagedPageError, StorageError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.damaged_pages import damage, pages_of
from tests.support.ledger.samples import contents, entries, filled, sensor, snapshot

FLIPS = 500
COLUMNS = {
    "states": ["state"],
    "snapshots": ["kind", "leftover", "summary", "tuning", "fingerprint", "digest"],
}


def flip(content, at, bit):
    """Return bytes of which one has changed."""
    changed = bytearray(content)
    changed[at] ^= 1 << bit
    return bytes(changed)


def unnoticed_flips(ledger, times):
    """Change single bytes of a snapshot, and return how many changes were not noticed."""
    ledger.append([sensor(1), sensor(2)], entries(1, 10, 2))
    ledger.add_snapshots([snapshot(10, 1, unused=(7, 9)), snapshot(10, 2)])
    storage, chance = ledger._storage, random.Random(6)
    unnoticed = 0
    for _ in range(times):
        table = chance.choice(list(COLUMNS))
        column = chance.choice(COLUMNS[table])
        statement = f"UPDATE {table} SET {column} = :content WHERE sensor = 1"
        with storage.writing() as session:
            before = session.rows(f"SELECT {column} FROM {table} WHERE sensor = 1")[0][0]
            damaged = flip(before, chance.randrange(len(before)), chance.randrange(8))
            session.run(statement, content=damaged)
        try:
            ledger.snapshot(1)
            unnoticed += 1
        except DamagedError:
            pass
        assert ledger.snapshot(2) == snapshot(10, 2)
        with storage.writing() as session:
            session.run(statement, content=before)
    assert ledger.snapshot(1) == snapshot(10, 1, unused=(7, 9))
    return unnoticed


def test_every_changed_byte_of_a_snapshot_is_noticed(ledger, counted):
    assert unnoticed_flips(ledger, FLIPS) == 0
    counted("A6", FLIPS)


def test_a_state_without_a_digest_is_noticed(ledger, counted, monkeypatch):
    monkeypatch.setattr(layout, "digest_of", lambda snapshot: b"none")

    assert unnoticed_flips(ledger, 20) > 0
    counted("A6 broken", 20)


def damage_of(path):
    """Return what a file with a changed byte leads to."""
    try:
        with open_ledger(path) as ledger:
            found = list(ledger.check())
            return ("found", None) if found else ("sound", contents(ledger))
    except StorageError:
        return "refused", None


@pytest.mark.parametrize("flips", [80, pytest.param(2000, marks=pytest.mark.slow)])
def test_changed_bytes_of_a_file_are_noticed_or_harmless(folder, counted, flips):
    whole, damaged = folder / "whole.db", folder / "damaged.db"
    with open_ledger(whole) as ledger:
        filled(ledger)
        before = contents(ledger)
    chance = random.Random(60)
    outcomes = Counter()

    for _ in range(flips):
        content = whole.read_bytes()
        damaged.write_bytes(flip(content, chance.randrange(len(content)), chance.randrange(8)))
        outcome, after = damage_of(damaged)
        outcomes[outcome] += 1
        if outcome == "sound":
            # Nothing guards what is not learned from: names, events and numbers of old forecasts.
            for part in ("last", "entries", "actions", "snapshots"):
                assert after[part] == before[part]

    assert outcomes["found"] > flips / 20
    counted("A6", flips)


def test_a_file_that_is_not_a_database_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"no database at all, but long enough to be read as one" * 100)
    before = path.read_bytes()

    with pytest.raises(
        StorageError, match=r"is damaged .* restore a backup with `streamridge restore`"
    ):
        open_ledger(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("size", [40_000, 40_001])
def test_a_state_is_not_written_over_a_damaged_page(tmp_path, size):
    """SQLite reports a full disk if it writes over pages of the same size; the disk is not full."""
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        ledger.append([sensor(1), sensor(2)], entries(1, 10, 2))
        ledger.add_snapshots([snapshot(10, each, size=40_000) for each in (1, 2)])
    damage(path, pages_of(path, "states", "overflow")[1])

    with open_ledger(path) as ledger:
        with pytest.raises(DamagedPageError, match="restore a backup"):
            ledger.add_snapshots([snapshot(11, 1, size=size)])
        ledger.add_snapshots([snapshot(11, 2, size=size)])

        assert ledger.snapshot(2) == snapshot(11, 2, size=size)


def test_a_damaged_page_names_the_remedy(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        filled(ledger, last=2000)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(bytes([255]) * (path.stat().st_size - 4096))

    with pytest.raises(
        StorageError, match=r"is damaged .* restore a backup with `streamridge restore`"
    ):
        open_ledger(path)
