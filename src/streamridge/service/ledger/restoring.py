"""Making a storage of a backup."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.checking import findings
from streamridge.service.ledger.copying import copy_tables
from streamridge.service.ledger.opening import is_postgres, open_storage, sqlite_path
from streamridge.service.ledger.sqlite import SqliteStorage


def restore(backup: str | Path, address: str | Path) -> None:
    """Make a new storage of a backup; nothing is ever overwritten.

    Parameters
    ----------
    backup
        A file that `Ledger.copy_to` wrote.
    address
        Where the storage shall be: a file that is not there yet, or an empty database.
    """
    with closing(SqliteStorage(Path(backup), read_only=True)) as source:
        wrong = next(findings(source), None)
        if wrong is not None:
            raise InvalidInputError(f"{backup} must be a sound backup, got: {wrong}")
        if is_postgres(address):
            _restore_tables(source, str(address))
        else:
            source.copy_to(str(sqlite_path(address)))


def _restore_tables(source: SqliteStorage, url: str) -> None:
    """Copy a backup into an empty database, all of it or nothing."""
    with (
        closing(open_storage(url, read_only=False)) as target,
        source.reading() as session,
        target.writing() as written,
    ):
        if written.rows("SELECT id FROM sensors LIMIT 1"):
            raise InvalidInputError(f"{target.name} must be empty, got one with sensors.")
        copy_tables(session, lambda: nullcontext(written))
