"""Errors of the databases become errors of the ledger."""

import errno

import apsw
import psycopg
import pytest
from psycopg import errors

from streamridge.errors import InvalidInputError
from streamridge_service.ledger import postgres_connection, sqlite_connection
from streamridge_service.ledger.errors import (
    DamagedPageError,
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)
from streamridge_service.ledger.opening import open_ledger


@pytest.mark.parametrize(
    ("code", "system_error", "meant"),
    [
        (apsw.SQLITE_FULL, 0, DiskFullError),
        (apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, DiskFullError),
        (apsw.SQLITE_IOERR_SHMSIZE, errno.ENOSPC, DiskFullError),
        (apsw.SQLITE_IOERR_WRITE, errno.EDQUOT, DiskFullError),
        (apsw.SQLITE_IOERR_FSYNC, errno.ENOSPC, StorageFailedError),
        (apsw.SQLITE_IOERR_WRITE, errno.EIO, StorageFailedError),
        (apsw.SQLITE_CORRUPT_INDEX, 0, DamagedPageError),
        (apsw.SQLITE_NOTADB, 0, DamagedPageError),
        (apsw.SQLITE_READONLY, 0, StorageFailedError),
        (apsw.SQLITE_BUSY, 0, StorageAwayError),
        (apsw.SQLITE_CONSTRAINT_UNIQUE, 0, InvalidInputError),
    ],
)
def test_errors_of_sqlite(code, system_error, meant):
    error = sqlite_connection.translated(apsw.exception_for(code), "roads.db", system_error)

    assert type(error) is meant
    assert "roads.db" in str(error)


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (errors.DiskFull, DiskFullError),
        (errors.AdminShutdown, StorageAwayError),
        (errors.CannotConnectNow, StorageAwayError),
        (errors.TooManyConnections, StorageAwayError),
        (errors.ReadOnlySqlTransaction, StorageAwayError),
        (errors.LockNotAvailable, StorageAwayError),
        (psycopg.OperationalError, StorageAwayError),
        (errors.DataCorrupted, StorageFailedError),
        (errors.IoError, StorageFailedError),
        (errors.UndefinedTable, StorageFailedError),
        (errors.UniqueViolation, InvalidInputError),
    ],
)
def test_errors_of_postgresql(error, meant):
    translated = postgres_connection.translated(error("of a test"), "postgresql://host/roads")

    assert type(translated) is meant
    assert "postgresql://host/roads" in str(translated)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("path", ["no/such/folder/roads.db", "folder.db"])
def test_the_error_names_a_database_that_cannot_be_opened(tmp_path, path, read_only):
    (tmp_path / "folder.db").mkdir()

    with pytest.raises(StorageError, match=r"\.db (must be|cannot be opened)"):
        open_ledger(tmp_path / path, read_only)


def test_a_server_that_cannot_be_reached_is_named_without_a_password():
    with pytest.raises(StorageAwayError, match="postgresql://localhost/roads cannot be") as error:
        open_ledger("postgresql://me:secret@localhost:1/roads")

    assert "secret" not in str(error.value)
