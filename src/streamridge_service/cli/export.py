"""`streamridge export`: readings, forecasts or sensors as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamridge.errors import InvalidInputError, counted
from streamridge_service.cli.console import Messages
from streamridge_service.cli.database import DEFAULT, Database, open_database, parse_moment

What = Literal["readings", "forecasts", "sensors"]
STANDARD_OUTPUT = Path("/dev/stdout")


def export(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File: .csv, .csv.gz or .parquet; - writes CSV to standard output."
        ),
    ],
    what: Annotated[What, typer.Option(help="Content of the table.")] = "readings",
    format: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option(help="File format. By default from the ending of its name."),
    ] = None,
    sensor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Sensor to write; repeat the flag for several."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="First time, such as 2021-06-13 or 2021-06-13T08:00."
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End of the span, not included.")
    ] = None,
    database: Database = DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the stored readings, the issued forecasts, or the declared sensors as a table.

    The service may run meanwhile. Times are in UTC. The table may be larger than memory. In CSV, a
    label that a spreadsheet would read as a formula begins with an apostrophe.

    Example: streamridge export forecasts.parquet --what forecasts --database roads.db
    """
    path = _target(file, format)
    _require_writable(path, database, force=force)
    with open_database(database) as ledger:
        from streamridge_service.admin.export import (
            Selection,
            export_forecasts,
            export_readings,
            export_sensors,
        )

        start = None if from_ is None else parse_moment("from", from_)
        end = None if to is None else parse_moment("to", to)
        write = {
            "readings": export_readings,
            "forecasts": export_forecasts,
            "sensors": export_sensors,
        }
        count = write[what](ledger, path, Selection(tuple(sensor or ()), start, end))
    Messages().print(f"{counted(count, what.removesuffix('s'))}: {file}")


def _target(file: Path, kind: str | None) -> Path:
    """Return the file to write; raise if its ending contradicts --format."""
    if str(file) in ("-", "/dev/stdout"):
        if kind == "parquet":
            raise InvalidInputError("FILE must have a name for parquet, got standard output.")
        return STANDARD_OUTPUT
    if kind is not None and not file.name.lower().endswith((f".{kind}", f".{kind}.gz")):
        raise InvalidInputError(f"FILE must end in .{kind} with --format {kind}, got '{file}'.")
    return file


def _require_writable(path: Path, database: str, *, force: bool) -> None:
    """Raise if the file would replace the database, or any file without --force."""
    if path == STANDARD_OUTPUT or (path.exists() and not (path.is_file() or path.is_dir())):
        return
    if path.is_dir():
        raise InvalidInputError(f"FILE must be a file, got the folder '{path}'.")
    if path.exists() and Path(database).exists() and path.samefile(database):
        raise InvalidInputError(f"FILE must not replace the database, got '{path}'.")
    if path.exists() and not force:
        raise InvalidInputError(f"FILE must be new, got '{path}'. Pass --force to replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
