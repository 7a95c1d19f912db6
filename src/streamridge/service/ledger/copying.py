"""Copying a storage into one of the other database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from streamridge.service.ledger.schema import REPLACE_FACT, TABLES
from streamridge.service.ledger.sessions import Session

# Rows that are in memory at once, and of those that are large.
MANY, LARGE = 20_000, 200


def copy_tables(source: Session, writing: Callable[[], AbstractContextManager[Session]]) -> None:
    """Copy all rows that a session sees into the tables of a new storage.

    Parameters
    ----------
    source
        Sees one moment of a storage.
    writing
        Opens a transaction of the new storage, for some rows each.
    """
    for table in TABLES:
        for rows in source.chunks(f"SELECT * FROM {table}", LARGE if table == "states" else MANY):
            with writing() as session:
                session.add(table, rows, REPLACE_FACT if table == "meta" else "DO NOTHING")
