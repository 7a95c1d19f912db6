"""Opening a ledger by its address."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

from streamridge.errors import MissingExtraError
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.sessions import Storage
from streamridge.service.ledger.sqlite import SqliteStorage
from streamridge.service.ledger.writing import SqlLedger

POSTGRES = ("postgresql://", "postgres://")
SQLITE = "sqlite:///"


def open_ledger(address: str | Path, read_only: bool = False) -> Ledger:
    """Open the ledger at an address.

    Parameters
    ----------
    address
        The path of a file of SQLite, also as "sqlite:///path", which is made if needed; or the
        address of a database of PostgreSQL, "postgresql://...".
    read_only
        Whether only to read, beside the one process that writes.

    Raises
    ------
    InUseError
        If another process writes there.
    FormatError
        If it was written by a newer version.
    """
    return SqlLedger(open_storage(address, read_only))


def open_storage(address: str | Path, read_only: bool) -> Storage:
    """Open the database at an address."""
    if is_postgres(address):
        return _postgres_storage(str(address), read_only)
    return SqliteStorage(sqlite_path(address), read_only=read_only)


def is_postgres(address: str | Path) -> bool:
    """Return whether an address is of PostgreSQL."""
    return str(address).startswith(POSTGRES)


def sqlite_path(address: str | Path) -> Path:
    """Return the path of a file of SQLite.

    Examples
    --------
    >>> sqlite_path("sqlite:////var/lib/roads.db").as_posix(), sqlite_path("roads.db").as_posix()
    ('/var/lib/roads.db', 'roads.db')
    """
    text = str(address)
    return Path(unquote(text.removeprefix(SQLITE)) if text.startswith(SQLITE) else text)


def _postgres_storage(url: str, read_only: bool) -> Storage:
    try:
        postgres = import_module("streamridge.service.ledger.postgres")
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise MissingExtraError(
            "PostgreSQL needs psycopg. Install it with: pip install 'streamridge[postgres]'"
        ) from None
    storage: Storage = postgres.PostgresStorage(url, read_only=read_only)
    return storage
