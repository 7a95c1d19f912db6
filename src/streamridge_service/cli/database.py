"""The database that a command works on, the exit codes of commands, and times in flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from time import time_ns
from typing import TYPE_CHECKING, Annotated

import typer

from streamridge import parse_length
from streamridge.errors import InvalidInputError, MissingExtraError, shown

if TYPE_CHECKING:
    from streamridge_service.ledger.ledger import Ledger

# Exit codes, as sysexits.h names them. Errors of the ledger carry their own exit codes.
USAGE, DATA, STORAGE, IN_USE, CONFIGURATION = 64, 65, 74, 75, 78
DEFAULT = "streamridge.db"
EPOCH, US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

Database = Annotated[
    str,
    typer.Option(
        metavar="FILE|URL",
        envvar="STREAMRIDGE_DATABASE",
        help="The service's database: an SQLite file, or postgresql://...",
    ),
]


def require_service() -> None:
    """Raise unless the packages of the extra `service` are installed."""
    for module in ("litestar", "msgspec", "apsw", "pydantic_settings", "structlog", "uvicorn"):
        if find_spec(module) is None:
            raise MissingExtraError(
                f"{module} must be installed for this command. "
                "Install it with: pip install 'streamridge[service]'"
            )


@contextmanager
def open_database(
    database: str, *, read_only: bool = True, create: bool = False
) -> Iterator[Ledger]:
    """Open the ledger of a service; `create` creates a file that does not exist."""
    require_service()
    from streamridge_service.ledger.opening import is_postgres, open_ledger, sqlite_path

    if not create and not is_postgres(database) and not sqlite_path(database).is_file():
        raise InvalidInputError(
            f"database must be an existing file, got {shown(database)}. Pass another with "
            "--database."
        )
    with open_ledger(database, read_only=read_only) as ledger:
        yield ledger


def without_password(database: str) -> str:
    """Return an address that may be printed.

    Examples
    --------
    >>> without_password("postgresql://road:secret@host/roads"), without_password("roads.db")
    ('postgresql://road:***@host/roads', 'roads.db')
    """
    return re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:***@", database)


def now() -> int:
    """Return the current time in microseconds since 1970."""
    return time_ns() // 1000


def parse_moment(name: str, text: str, *, ahead: bool = False) -> int:
    """Return the microseconds since 1970 of a flag: a date or time in UTC, or a time span.

    A time span such as "90d" counts back from now, or forward with `ahead`.

    Examples
    --------
    >>> parse_moment("before", "1970-01-02")
    86400000000
    """
    try:
        length = parse_length(name, text)
    except InvalidInputError:
        length = 0
    if isinstance(length, timedelta):
        return now() + (1 if ahead else -1) * (length // US)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInputError(
            f"{name} must be an ISO 8601 time such as 2021-06-13T08:15, or a time span such as "
            f"90d, got {shown(text)}."
        ) from None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH) // US


def utc_text(time: int) -> str:
    """Return a time as text, to the minute in UTC."""
    return (EPOCH + time * US).strftime("%Y-%m-%d %H:%M UTC")
