"""A request's body to rows, by its Content-Type."""

from __future__ import annotations

from collections.abc import Callable

from streamridge.errors import shown
from streamridge.service.bodies.csv_rows import decode_csv
from streamridge.service.bodies.json_document import decode_json
from streamridge.service.bodies.json_lines import decode_json_lines
from streamridge.service.bodies.parquet_rows import decode_parquet
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES, Batch

DECODERS: dict[str, Callable[[bytes], Batch]] = {
    "application/json": decode_json,
    "application/x-ndjson": decode_json_lines,
    "application/ndjson": decode_json_lines,
    "application/jsonl": decode_json_lines,
    "text/csv": decode_csv,
    "application/vnd.apache.parquet": decode_parquet,
}


def decode(body: bytes, content_type: str | None) -> Batch:
    r"""Return the rows of a body, those that could be read and those that could not.

    Whatever the bytes are, it returns, or raises `Problem`: sr-unsupported-type for another type
    or charset, sr-unreadable if the body as a whole cannot be read, sr-too-large above the limits.

    Parameters
    ----------
    body
        The body, unpacked.
    content_type
        The header Content-Type, None without one.

    Examples
    --------
    >>> decode(b"sensor,time,value\na,1970-01-01T00:00:00Z,\n", "text/csv; charset=utf-8").rows
    [Row(line=2, sensor='a', time=0, value=None)]
    """
    kind, parameters = _parts(content_type or "")
    if kind not in DECODERS:
        raise Problem(
            "sr-unsupported-type",
            f"Content-Type must be one of {', '.join(DECODERS)}, got {shown(content_type)}.",
        )
    if parameters.get("charset", "utf-8") not in ("utf-8", "utf8"):
        raise Problem("sr-unsupported-type", f"charset must be utf-8, got {shown(content_type)}.")
    if len(body) > MOST_BYTES:
        raise Problem("sr-too-large", f"a body must have at most {MOST_BYTES:,} bytes.")
    return DECODERS[kind](body)


def _parts(content_type: str) -> tuple[str, dict[str, str]]:
    """Return the type and its parameters, in small letters and without quotation marks."""
    kind, *written = content_type.lower().split(";")
    pairs = (each.partition("=") for each in written)
    return kind.strip(), {name.strip(): value.strip().strip('"') for name, _, value in pairs}
