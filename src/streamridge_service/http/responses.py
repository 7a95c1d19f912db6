"""Responses: JSON, tables as CSV or Parquet, and one form for every problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal

import msgspec
import structlog
from litestar import Request, Response
from litestar.datastructures.headers import Accept
from litestar.exceptions import HTTPException
from msgspec import UNSET, UnsetType

from streamridge_service.ledger.errors import StorageError
from streamridge_service.problems import CATALOGUE, RETRY_AFTER, Problem
from streamridge_service.rows import Refusal
from streamridge_service.service.answers import Answer
from streamridge_service.service.writer import storage_code

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
NDJSON, PLAIN, HTML = "application/x-ndjson", "text/plain", "text/html"
PROBLEM = "application/problem+json"
# Headers of every response: scripts, styles and data come from this service only, and no other page
# may embed this one, guess another type for a response, or see the address it came from.
HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
# Codes of the framework's own errors; its other errors mean that a request cannot be read.
FRAMEWORK_CODES = {404: "sr-not-found", 405: "sr-method", 413: "sr-too-large"}
FRAMEWORK_DETAILS = {
    "sr-not-found": "There is nothing at this path.",
    "sr-method": "Use another method.",
}
Format = Literal["json", "csv", "parquet"]
MEDIA: dict[str, str] = {"json": JSON, "csv": CSV, "parquet": PARQUET}
# A spreadsheet reads a cell that starts with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

# Types of columns by name, as Parquet names them.
Columns = Mapping[str, Literal["string", "int64", "double"]]
Rows = Iterable[Mapping[str, Any]]

log = structlog.get_logger("streamridge_service.http")


class ProblemAnswer(Answer, frozen=True, rename={"type_": "type"}):
    """A problem in the form of RFC 9457; its code is in the catalogue at /problems."""

    type_: str
    code: str
    title: str
    status: int
    detail: str
    remedy: str
    retry: bool
    accepted: int | UnsetType = UNSET
    duplicate: int | UnsetType = UNSET
    late: int | UnsetType = UNSET
    held: int | UnsetType = UNSET
    replaced: int | UnsetType = UNSET
    implausible: int | UnsetType = UNSET
    refused: int | UnsetType = UNSET
    skipped: int | UnsetType = UNSET
    refusals: list[Refusal] | UnsetType = UNSET
    offered: list[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET  # the detail in the words of InfluxDB 1
    request: str | UnsetType = UNSET


def problem_answer(problem: Problem) -> ProblemAnswer:
    """Return the answer that describes a problem."""
    entry = CATALOGUE[problem.code]
    return ProblemAnswer(
        type_=f"/problems#{problem.code}",
        code=problem.code,
        title=entry.title,
        status=entry.status,
        detail=problem.detail,
        remedy=entry.remedy,
        retry=entry.status in RETRY_AFTER,
        **problem.more,
    )


def json_response(
    value: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """Return a value as JSON."""
    return Response(
        msgspec.json.encode(value), status_code=status, media_type=JSON, headers=headers
    )


def problem_response(problem: Problem, **headers: str) -> Response[bytes]:
    """Return a problem in the form of RFC 9457."""
    if problem.status in RETRY_AFTER:
        headers["Retry-After"] = str(RETRY_AFTER[problem.status])
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status == 408:
        headers["Connection"] = "close"  # a slow client gets no second try on this connection
    body = msgspec.json.encode(problem_answer(problem))
    return Response(body, status_code=problem.status, media_type=PROBLEM, headers=headers)


def error_response(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the response to an error of a handler or of the framework."""
    if isinstance(error, Problem):
        return problem_response(error)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _framework_response(error)
    if isinstance(error, StorageError):
        code = storage_code(error)
        log.error("the storage cannot be read", code=code, reason=str(error))
        return problem_response(
            Problem(code or "sr-storage-away", "The storage cannot be read now.")
        )
    return problem_response(internal_problem(request.scope["state"].get("request_id", ""), error))


def internal_problem(request_id: str, error: Exception) -> Problem:
    """Log an unexpected error; return a problem that names only the request's id.

    A request that finds too little memory may succeed later.
    """
    log.error("a request failed", request_id=request_id, exc_info=error)
    if isinstance(error, MemoryError):
        return Problem("sr-busy", "The service has too little memory for this request at present.")
    detail = "An unexpected error occurred; the log of the service has the details."
    return Problem("sr-internal", detail, request=request_id)


def _framework_response(error: HTTPException) -> Response[bytes]:
    code = FRAMEWORK_CODES.get(error.status_code, "sr-unreadable")
    problem = Problem(code, FRAMEWORK_DETAILS.get(code, "The request cannot be read."))
    methods = [each for each in (error.headers or {}).get("allow", "").split(", ") if each]
    allowed = ", ".join(each for each in methods if each != "OPTIONS")
    return problem_response(problem, **({"Allow": allowed} if methods else {}))


def format_of(
    request: Request[Any, Any, Any],
    parameter: str | UnsetType,
    offered: Sequence[str] = tuple(MEDIA),
) -> str:
    """Return the requested format: of the parameter, or else of the header Accept."""
    if isinstance(parameter, str):
        return parameter
    accepted = request.headers.get("accept") or "*/*"
    media = {MEDIA.get(name, name): name for name in offered}
    best = None
    with suppress(OverflowError):  # raised by an infinite quality value
        best = Accept(accepted).best_match(list(media))
    if best is None:
        raise Problem(
            "sr-not-acceptable",
            f"Accept must allow one of {', '.join(media)}, got {accepted[:100]!r}.",
            offered=list(media),
        )
    return media[best]


def table_response(
    rows: Rows, columns: Columns, format_name: str, cursor: str | None = None
) -> Response[bytes]:
    """Return rows as a CSV or Parquet file; a header carries the cursor of the next page."""
    content = to_csv(rows, columns) if format_name == "csv" else to_parquet(rows, columns)
    headers = {"Streamridge-Cursor": cursor} if cursor else None
    return Response(content, media_type=MEDIA[format_name], headers=headers)


def to_csv(rows: Rows, columns: Columns) -> bytes:
    """Return rows as CSV with a header line."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return file.getvalue().encode()


def to_parquet(rows: Rows, columns: Columns) -> bytes:
    """Return rows as a Parquet file."""
    # This import takes half a second, and the service starts without it.
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
    """Return a cell that no spreadsheet reads as a formula; numbers do not change.

    Examples
    --------
    >>> _cell("=1+1"), _cell(-5.0), _cell("A2"), _cell(None)
    ("'=1+1", -5.0, 'A2', None)
    """
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
