"""A process that fills a small disk, makes room, and goes on."""

import json
import sys
from pathlib import Path

from streamridge_service.ledger import sqlite
from streamridge_service.ledger.errors import DiskFullError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.samples import entries, sensor

SIZE = 50


def main(folder, times):
    """Fill the disk of a folder several times, and print what became of each."""
    sqlite.CHECKPOINT_AT, sqlite.RESTART_AT = 50, 100
    for number in range(int(times)):
        found = fill(Path(folder), number)
        sys.stdout.write(json.dumps(found) + "\n")
        for path in Path(folder).iterdir():
            path.unlink()


def fill(folder, number):
    """Fill the disk, then free some of it, and fill it again; return what is there."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(300_000 + 10_000 * number))
    with open_ledger(folder / "ledger.db") as ledger:
        ledger.append([sensor(number) for number in range(1, 5)])
        acknowledged = append_until_full(ledger, 0)
        ballast.unlink()
        more = append_until_full(ledger, acknowledged)
        last = ledger.last_seq()
    with open_ledger(folder / "ledger.db", read_only=True) as ledger:
        wrong = list(ledger.check())
        same = sorted(ledger.readings_after(0), key=lambda one: one.seq) == entries(1, last)
    return {
        "acknowledged": more,
        "went on": more - acknowledged,
        "last": last,
        "wrong": wrong if same else [*wrong, "readings differ"],
    }


def append_until_full(ledger, last):
    """Append until there is no room; return the last arrival number that was acknowledged."""
    while True:
        try:
            ledger.append(readings=entries(last + 1, last + SIZE))
        except DiskFullError:
            return last
        last += SIZE
