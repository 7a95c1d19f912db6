"""Damage to pages of an SQLite file, as a bad disk causes it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

PAGE = 4096


def pages_of(database, table, *kinds):
    """Return the pages of a table, in the order of its keys; such as "leaf" and "overflow"."""
    query = "SELECT pageno, pagetype FROM dbstat WHERE name = ? ORDER BY path"
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        found = connection.execute(query, (table,)).fetchall()
    return [page for page, kind in found if kind in kinds]


def damage(database, page):
    """Overwrite the beginning of a page; return the bytes that were there."""
    with open(database, "r+b") as file:
        file.seek((page - 1) * PAGE)
        before = file.read(8)
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * 8)
    return before


def repair(database, page, before):
    """Write the old bytes of a page."""
    with open(database, "r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(before)


def states_of(database):
    """Return the state of each sensor by number; None if it cannot be read."""
    connection = apsw.Connection(str(Path(database)), flags=apsw.SQLITE_OPEN_READONLY)
    with closing(connection):
        sensors = [sensor for (sensor,) in connection.execute("SELECT id FROM sensors").fetchall()]
        return {sensor: _state(connection, sensor) for sensor in sensors}


def _state(connection, sensor):
    try:
        return connection.execute("SELECT state FROM states WHERE sensor = ?", (sensor,)).get
    except apsw.CorruptError:
        return None
