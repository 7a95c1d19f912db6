"""`streamridge export`: readings, forecasts or sensors as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamridge.cli.checks import require_table
from streamridge.cli.options import Force, From
from streamridge.cli.overwriting import Output, is_standard, require_free
from streamridge.cli.storage import DEFAULT, Database, moment, opened
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.texts import counted

What = Literal["readings", "forecasts", "sensors"]
STANDARD_OUTPUT = Path("/dev/stdout")


def export(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File: .csv, .csv.gz or .parquet; - writes CSV to standard output."
        ),
    ],
    what: Annotated[What, typer.Option(help="What to write.")] = "readings",
    format: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option(help="Kind of file. By default as its name says."),
    ] = None,
    sensor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Sensor to write; repeat the flag for several."),
    ] = None,
    from_: From = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="First time to leave out.")
    ] = None,
    database: Database = DEFAULT,
    force: Force = False,
) -> None:
    """Write readings as they arrived, forecasts as they were issued, or what sensors are.

    The service may run meanwhile. Times are in UTC. Rows are written as they are read, so that the
    table may be larger than memory. In CSV, a label that a spreadsheet would take for a formula
    begins with an apostrophe.

    Example: streamridge export forecasts.parquet --what forecasts --database roads.db
    """
    path = _target(file, format)
    require_free([Output("FILE", path, lambda _: False)], [database], force=force)
    require_table("FILE", path)
    with opened(database) as ledger:
        from streamridge.service.export import (
            Wanted,
            export_forecasts,
            export_readings,
            export_sensors,
        )

        ends = (None if text is None else moment(f, text) for f, text in _ends(from_, to))
        write = {
            "readings": export_readings,
            "forecasts": export_forecasts,
            "sensors": export_sensors,
        }
        count = write[what](ledger, path, Wanted(tuple(sensor or ()), *ends))
    Messages().print(f"{counted(count, what.removesuffix('s'))}: {file}")


def _ends(from_: str | None, to: str | None) -> tuple[tuple[str, str | None], ...]:
    return ("from", from_), ("to", to)


def _target(file: Path, kind: str | None) -> Path:
    """Return the file to write; its name must go with the kind, if that is said."""
    if is_standard(file):
        if kind == "parquet":
            raise InvalidInputError("FILE must have a name for parquet, got standard output.")
        return STANDARD_OUTPUT
    if kind is not None and not file.name.lower().endswith((f".{kind}", f".{kind}.gz")):
        raise InvalidInputError(f"FILE must end in .{kind} with --format {kind}, got '{file}'.")
    return file
