"""`streamridge backup`: a copy of a storage as of one moment, made while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamridge.cli.exits import DATA
from streamridge.cli.storage import DEFAULT, Database, named, opened
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.texts import counted


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file; never replaced.")],
    database: Database = DEFAULT,
) -> None:
    """Copy the storage of a service into one file, as of one moment.

    The service may run meanwhile. The copy is read through and checked before this ends. Of
    PostgreSQL as well it is a file of SQLite, from which `restore` makes either.

    Example: streamridge backup roads-monday.db --database roads.db
    """
    if file.exists():
        raise InvalidInputError(f"FILE must be new, got {str(file)!r}. Choose another name.")
    console = Messages()
    with opened(database) as ledger:
        ledger.copy_to(str(file))
    with opened(str(file)) as copy:
        faults, last, size = list(copy.check()), copy.last(), copy.size()["data"]
    for fault in faults:
        console.print(f"error: {fault}")
    if faults:
        raise typer.Exit(DATA)
    arrivals = counted(last, "arrival")
    console.print(f"{named(database)}: {arrivals}, {size / 1e6:.1f} MB, sound: {file}")
