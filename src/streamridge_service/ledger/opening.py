"""Opening a ledger by its address, and restoring a backup to a new address."""

from __future__ import annotations

from contextlib import closing, nullcontext
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge_service.ledger.acknowledged import AcknowledgedFile, Acknowledgement
from streamridge_service.ledger.errors import LostReadingsError
from streamridge_service.ledger.integrity import find_faults
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Event
from streamridge_service.ledger.schema import Storage, copy_tables
from streamridge_service.ledger.sqlite import SqliteStorage

POSTGRES = ("postgresql://", "postgres://")
SQLITE = "sqlite:///"


def open_ledger(address: str | Path, read_only: bool = False) -> Ledger:
    """Open the ledger at an address.

    Parameters
    ----------
    address
        The path of an SQLite file, also as "sqlite:///path", which is created if needed; or the
        address of a PostgreSQL database, "postgresql://...".
    read_only
        Whether to read only, while another process may write.

    Raises
    ------
    InUseError
        If another process writes there.
    FormatError
        If it was written by a newer version.
    LostReadingsError
        If a file lacks acknowledged readings.
    """
    return Ledger(open_storage(address, read_only))


def open_storage(address: str | Path, read_only: bool) -> Storage:
    """Open the database at an address."""
    if is_postgres(address):
        return _postgres_storage(str(address), read_only)
    return SqliteStorage(sqlite_path(address), read_only=read_only)


def is_postgres(address: str | Path) -> bool:
    """Return whether an address belongs to PostgreSQL."""
    return str(address).startswith(POSTGRES)


def sqlite_path(address: str | Path) -> Path:
    """Return the path of an SQLite file.

    Examples
    --------
    >>> sqlite_path("sqlite:////var/lib/roads.db").as_posix(), sqlite_path("roads.db").as_posix()
    ('/var/lib/roads.db', 'roads.db')
    """
    text = str(address)
    return Path(unquote(text.removeprefix(SQLITE)) if text.startswith(SQLITE) else text)


def restore(backup: str | Path, address: str | Path) -> None:
    """Create a new storage from a backup; nothing is overwritten.

    Parameters
    ----------
    backup
        A file that `Ledger.copy_to` wrote.
    address
        Address of the storage: a file that does not exist yet, or an empty database.
    """
    with closing(SqliteStorage(Path(backup), read_only=True)) as source:
        fault = next(find_faults(source), None)
        if fault is not None:
            raise InvalidInputError(f"{backup} must be an intact backup, got: {fault}")
        if is_postgres(address):
            _restore_tables(source, str(address))
        else:
            _restore_file(source, sqlite_path(address))


def _restore_file(source: SqliteStorage, path: Path) -> None:
    """Copy a backup to a new file, and note that it has all that was acknowledged there."""
    acknowledged = AcknowledgedFile.of(path)
    acknowledged.remove()  # of a database that was there before
    source.copy_to(str(path))
    facts = Ledger(source).facts()
    if "identity" in facts:  # an older version wrote none; the next start will
        acknowledged.write(Acknowledgement(facts["identity"], int(facts["last"])))


def accept_loss(database: str | Path, now: int) -> str | None:
    """Let a database go on without acknowledged readings, and record this as an event.

    Returns what was lost; None if nothing was.
    """
    path = sqlite_path(database)
    try:
        SqliteStorage(path).close()
    except LostReadingsError as error:
        reason = error.loss
    else:
        return None
    with closing(SqliteStorage(path, accept_loss=True)) as storage:
        ledger = Ledger(storage)
        number = max((event.id for event in ledger.events(limit=1)), default=0) + 1
        ledger.add_events([Event(number, now, "data_loss", None, reason)])
        storage.acknowledge(ledger.last_seq())
    return reason


def _restore_tables(source: SqliteStorage, url: str) -> None:
    """Copy a backup into an empty database in one transaction."""
    with (
        closing(open_storage(url, read_only=False)) as target,
        source.reading() as session,
        target.writing() as written,
    ):
        if written.rows("SELECT id FROM sensors LIMIT 1"):
            raise InvalidInputError(f"{target.name} must be empty, got one with sensors.")
        copy_tables(session, lambda: nullcontext(written))


def _postgres_storage(url: str, read_only: bool) -> Storage:
    try:
        postgres = import_module("streamridge_service.ledger.postgres")
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise MissingExtraError(
            "PostgreSQL needs psycopg. Install it with: pip install 'streamridge[postgres]'"
        ) from None
    storage: Storage = postgres.PostgresStorage(url, read_only=read_only)
    return storage
