"""Rows as JSON, CSV or Parquet, whichever the client asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal

from litestar import Response
from litestar.datastructures.headers import Accept
from msgspec import UnsetType

from streamridge.service.problems import Problem
from streamridge.service.web.context import Asked
from streamridge.service.web.contracts import CSV, JSON, PARQUET

Format = Literal["json", "csv", "parquet"]
MEDIA: dict[str, str] = {"json": JSON, "csv": CSV, "parquet": PARQUET}
# A spreadsheet takes a cell that begins so for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

# Types of columns by name, as Parquet calls them.
Columns = Mapping[str, Literal["string", "int64", "double"]]
Rows = Iterable[Mapping[str, Any]]


def format_of(request: Asked, asked: str | UnsetType, offered: Sequence[str] = tuple(MEDIA)) -> str:
    """Return the format that a client asks for: by the parameter, or by the header Accept."""
    if isinstance(asked, str):
        return asked
    accepted = request.headers.get("accept") or "*/*"
    media = {MEDIA.get(name, name): name for name in offered}
    best = None
    with suppress(OverflowError):  # of a quality that is infinite
        best = Accept(accepted).best_match(list(media))
    if best is None:
        raise Problem(
            "sr-not-acceptable",
            f"Accept must allow one of {', '.join(media)}, got {accepted[:100]!r}.",
            offered=list(media),
        )
    return media[best]


def table_answer(
    rows: Rows, columns: Columns, kind: str, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """Return rows as a file of CSV or Parquet."""
    content = to_csv(rows, columns) if kind == "csv" else to_parquet(rows, columns)
    return Response(content, media_type=MEDIA[kind], headers=headers)


def to_csv(rows: Rows, columns: Columns) -> bytes:
    """Return rows as CSV, with a line of names before them."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return file.getvalue().encode()


def to_parquet(rows: Rows, columns: Columns) -> bytes:
    """Return rows as a file of Parquet."""
    # Its import takes half a second, which a start need not wait for.
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()]
    )
    table = pyarrow.Table.from_pylist(
        [{name: row[name] for name in columns} for row in rows], schema
    )
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula; numbers stay as they are.

    Examples
    --------
    >>> _cell("=1+1"), _cell(-5.0), _cell("A2"), _cell(None)
    ("'=1+1", -5.0, 'A2', None)
    """
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
