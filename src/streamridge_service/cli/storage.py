"""`streamridge backup`, `restore`, `accept-loss`, `prune` and `migrate`: maintenance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamridge.errors import InvalidInputError, counted
from streamridge_service.cli.console import Messages
from streamridge_service.cli.database import (
    DATA,
    DEFAULT,
    USAGE,
    Database,
    now,
    open_database,
    parse_moment,
    require_service,
    utc_text,
    without_password,
)

# Files that belong to an SQLite database. Files of another database would corrupt a new one.
SUFFIXES = ("", "-wal", "-shm", "-journal")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file; never replaced.")],
    database: Database = DEFAULT,
) -> None:
    """Copy a service's database into one file, in one transaction.

    The service may run meanwhile. The copy is read and checked completely before the command ends.
    The copy of a PostgreSQL database is an SQLite file, too; `restore` creates either from it.

    Example: streamridge backup roads-monday.db --database roads.db
    """
    if file.exists():
        raise InvalidInputError(f"FILE must be new, got {str(file)!r}. Choose another name.")
    messages = Messages()
    with open_database(database) as ledger:
        ledger.copy_to(str(file))
    with open_database(str(file)) as copy:
        faults, last, size = list(copy.check()), copy.last_seq(), copy.size()["data"]
    for fault in faults:
        messages.print(f"error: {fault}")
    if faults:
        raise typer.Exit(DATA)
    arrivals = counted(last, "arrival")
    name = without_password(database)
    messages.print(f"{name}: {arrivals}, {size / 1e6:.1f} MB, no faults: {file}")


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `backup`.")],
    database: Database = DEFAULT,
) -> None:
    """Create a database from a backup, after a complete check of the backup.

    The database must be a new file, or an empty PostgreSQL database: nothing is overwritten. To
    replace a database, first rename it and the files that belong to it.

    Example: streamridge restore roads-monday.db --database roads-again.db
    """
    require_service()
    from streamridge_service.ledger import opening

    messages = Messages()
    if not file.is_file():
        raise InvalidInputError(f"FILE must be an existing backup, got {str(file)!r}.")
    if not opening.is_postgres(database):
        _require_new(opening.sqlite_path(database))
    try:
        opening.restore(file, database)
    except InvalidInputError as error:  # the arguments are valid, so the backup is at fault
        messages.print(f"error: {error}")
        raise typer.Exit(DATA) from None
    with open_database(database) as ledger:
        sensors, last = len(ledger.sensors()), ledger.last_seq()
    name = without_password(database)
    messages.print(
        f"{name}: {counted(sensors, 'sensor')}, {counted(last, 'arrival')}. "
        f"Serve it with: streamridge serve --database {name}"
    )


def accept_loss(
    database: Database = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a database go on that has lost acknowledged readings.

    The service and all commands refuse such a database. Causes are a damaged write-ahead log, a
    deleted file, or an older copy in its place. Put the right files back if you can. This command
    records the loss as an event. Afterwards let the senders send their readings again.

    Example: streamridge accept-loss --yes --database roads.db
    """
    require_service()
    from streamridge_service.ledger import opening

    if opening.is_postgres(database):
        raise InvalidInputError("database must be an SQLite file for this command.")
    question = f"Go on without the lost readings of {database}?"
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(USAGE)
    loss = opening.accept_loss(database, now())
    Messages().print(
        f"{database} lacks no acknowledged reading." if loss is None else f"Accepted: {loss}"
    )


def _require_new(path: Path) -> None:
    for suffix in SUFFIXES:
        file = Path(f"{path}{suffix}")
        if file.exists():
            raise InvalidInputError(
                f"database must be new, got the existing file '{file}'. Rename it, or choose "
                "another."
            )


def prune(
    before: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Delete older data: a date or a time in UTC, or an age such as 400d.",
        ),
    ],
    database: Database = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete old readings and forecasts that no forecaster needs.

    Whole blocks of 131,072 arrivals are deleted, so that somewhat more data than requested stay.
    `export` them first. New data reuse the space; the file does not shrink. The service must not
    run meanwhile.

    Example: streamridge prune --before 2020-01-01 --yes --database roads.db
    """
    time = parse_moment("before", before)
    if time > now():
        raise InvalidInputError(f"before must be a time in the past, got {before!r}.")
    name = without_password(database)
    question = f"Delete all data before {utc_text(time)} from {name}?"
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(USAGE)
    with open_database(database, read_only=False) as ledger:
        deleted = ledger.prune(time)
    messages = Messages()
    messages.print(
        f"Deleted {counted(deleted['readings'], 'reading')} and "
        f"{counted(deleted['forecasts'], 'forecast')}."
    )
    if deleted.get("needed"):
        messages.print("Some older data were kept because forecasters still need them.")


def migrate(database: Database = DEFAULT) -> None:
    """Bring a service's database to the format of this version.

    `serve` does the same when it starts. A copy of an SQLite file is kept next to it first. A
    database that a newer version wrote is not changed.

    Example: streamridge migrate --database roads.db
    """
    with open_database(database, read_only=False) as ledger:
        facts = ledger.facts()
    messages = Messages()
    messages.print(
        f"{without_password(database)}: format {facts['format']}, the format of streamridge "
        f"{facts['version']}."
    )
    for copy in sorted(Path(database).parent.glob(f"{Path(database).name}.format-*")):
        messages.print(f"Copy of the earlier format: {copy}")
