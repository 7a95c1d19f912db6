"""`streamridge restore`: a storage made of a backup; nothing is ever overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamridge.cli.exits import DATA, require_service
from streamridge.cli.storage import DEFAULT, Database, named, opened
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.texts import counted

# What SQLite keeps beside a file; of another file, it would be folded into this one.
BESIDE = ("", "-wal", "-shm", "-journal")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `backup` wrote.")],
    database: Database = DEFAULT,
) -> None:
    """Make a storage of a backup, after a check that it is sound.

    The storage must not be there yet, or be an empty database of PostgreSQL: nothing is ever
    overwritten. A storage in use is put aside by renaming it and what lies beside it.

    Example: streamridge restore roads-monday.db --database roads-again.db
    """
    require_service()
    from streamridge.service.ledger.opening import is_postgres, sqlite_path
    from streamridge.service.ledger.restoring import restore as made

    console = Messages()
    if not file.is_file():
        raise InvalidInputError(f"FILE must be a backup, got {str(file)!r}, which is no file.")
    if not is_postgres(database):
        _require_free(sqlite_path(database))
    try:
        made(file, database)
    except InvalidInputError as error:  # all that was given is fine, so it is the backup
        console.print(f"error: {error}")
        raise typer.Exit(DATA) from None
    with opened(database) as ledger:
        sensors, last = len(ledger.sensors()), ledger.last()
    console.print(
        f"{named(database)}: {counted(sensors, 'sensor')}, {counted(last, 'arrival')}. "
        f"Serve it with: streamridge serve --database {named(database)}"
    )


def _require_free(path: Path) -> None:
    for suffix in BESIDE:
        there = Path(f"{path}{suffix}")
        if there.exists():
            raise InvalidInputError(
                f"database must not be there yet, got '{there}'. Rename it, or choose another."
            )
