"""The storage that a command works on: its flag, its name for people, and how it is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from streamridge.cli.exits import require_service
from streamridge.errors import InvalidInputError, shown
from streamridge.series.clock import parse_length
from streamridge.series.readings import A_TIME
from streamridge.series.spans import moment_of

if TYPE_CHECKING:
    from streamridge.service.ledger.base import Ledger

DEFAULT = "streamridge.db"
US = timedelta(microseconds=1)

Database = Annotated[
    str,
    typer.Option(
        metavar="FILE|URL",
        envvar="STREAMRIDGE_DATABASE",
        help="The storage of the service: a file of SQLite, or postgresql://...",
    ),
]


@contextmanager
def opened(database: str, *, read_only: bool = True, make: bool = False) -> Iterator[Ledger]:
    """Open the storage of a service.

    Parameters
    ----------
    database
        Its address.
    read_only
        Whether only to read, beside a service that runs.
    make
        Whether to make one that is not there yet.
    """
    require_service()
    from streamridge.service.ledger.opening import is_postgres, open_ledger, sqlite_path

    if not make and not is_postgres(database) and not sqlite_path(database).is_file():
        raise InvalidInputError(
            f"database must be a storage of streamridge, got {shown(database)}, which is no file. "
            "Pass another with --database."
        )
    with open_ledger(database, read_only=read_only) as ledger:
        yield ledger


def named(database: str) -> str:
    """Return an address as people may see it: without its password.

    Examples
    --------
    >>> named("postgresql://road:secret@host/roads"), named("roads.db")
    ('postgresql://road:***@host/roads', 'roads.db')
    """
    return re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:***@", database)


def now() -> int:
    """Return the time in microseconds since 1970."""
    return time_ns() // 1000


def moment(name: str, text: str, *, ahead: bool = False) -> int:
    """Return a time that a flag says: a date or a time in UTC, or how long ago, or ahead, it is.

    Examples
    --------
    >>> moment("before", "1970-01-02")
    86400000000
    """
    try:
        length = parse_length(name, text)
    except InvalidInputError:
        length = 0
    if isinstance(length, timedelta):
        return now() + (1 if ahead else -1) * (length // US)
    try:
        return int(moment_of(text, None).astype(np.int64))
    except InvalidInputError:
        raise InvalidInputError(
            f"{name} must be {A_TIME}, or a length of time such as 90d, got {shown(text)}."
        ) from None


def day_text(time: int) -> str:
    """Return a time as people read it, in UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + time * US).strftime("%Y-%m-%d %H:%M UTC")
