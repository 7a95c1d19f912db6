"""Requests: query parameters, of which each must be known and valid, and limited bodies.

A body is limited in size and time, and decompressed while it comes in.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

import msgspec
from litestar import Request
from msgspec import UNSET, Meta, UnsetType

from streamridge.errors import listed, shown
from streamridge_service.bodies.decoding import Decompressor
from streamridge_service.bodies.fields import FieldError, brief, parse_iso_time
from streamridge_service.http.pagination import CURSOR
from streamridge_service.http.responses import JSON
from streamridge_service.limits import MOST_BYTES, SENSOR_NAME
from streamridge_service.problems import Problem
from streamridge_service.service.answers import Time
from streamridge_service.service.sensor_status import StateName

MAX_PARAMETERS = 50
MAX_ITEMS, MAX_NAMES = 10_000, 100
INTEGER = re.compile(r"-?[0-9]{1,18}")
BOOLEANS = {"true": True, "false": False}
# A body must bring at least this many bytes in this many seconds, or end.
MIN_BYTES, TIMEOUT = 15_000, 30.0
# The most bytes of a body that is one JSON value.
MAX_JSON = 1_000_000
# Bodies above this size are large; at most this many are in memory at the same time.
LARGE, MAX_LARGE = 262_144, 16

ONE_NAME = SENSOR_NAME.removeprefix("^").removesuffix("$")
Limit = Annotated[int, Meta(ge=1, le=MAX_ITEMS, description="The most items of one response.")]
Cursor = Annotated[
    str, Meta(pattern=CURSOR, description="The cursor that the previous page returned.")
]
Search = Annotated[
    str, Meta(max_length=100, description="A part of the name or label, in upper or lower case.")
]
StateFilter = Annotated[
    StateName | Literal["archived"], Meta(description="Only sensors in this state.")
]
Names = Annotated[
    str,
    Meta(
        pattern=f"^{ONE_NAME}(,{ONE_NAME}){{0,{MAX_NAMES - 1}}}$",
        description="Names of sensors, separated by commas.",
    ),
]
From = Annotated[Time, Meta(description="The first time, with its offset from UTC.")]
To = Annotated[Time, Meta(description="The last time, with its offset from UTC.")]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query parameters of a route; unknown parameters are refused."""


Q = TypeVar("Q", bound=Query)
T = TypeVar("T")


class TimeRange(Query, frozen=True):
    """A range of time."""

    from_: From | UnsetType = msgspec.field(name="from", default=UNSET)
    to: To | UnsetType = UNSET

    def resolve(self, now: int, default_length: int) -> tuple[int, int]:
        """Return the first and last time of the range, in microseconds.

        Without an end it ends at `now`; without a start it has the default length.
        """
        end = now if self.to is UNSET else time_of(self.to, "to")
        start = end - default_length if self.from_ is UNSET else time_of(self.from_, "from")
        if start > end:
            raise Problem("sr-bad-parameter", "from must not be later than to.")
        return start, end


def parse_query(query_string: bytes, kind: type[Q]) -> Q:
    """Return the parameters in the query string of a request."""
    known = properties_of(kind)
    values: dict[str, Any] = {}
    for name, text in _pairs(query_string):
        if name in values:
            raise Problem("sr-bad-parameter", f"{brief(name)} must be given only once.")
        if name not in known:
            raise Problem(
                "sr-bad-parameter",
                f"There is no parameter {brief(name)} here, only {listed(list(known)) or 'none'}.",
            )
        values[name] = _parsed(text, known[name].get("type"))
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        reason, _, name = str(error).partition(" - at `$.")
        raise Problem(
            "sr-bad-parameter", f"{name.rstrip('`')}: {reason}." if name else f"{reason}."
        ) from None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:  # not text, or too many parameters
        raise Problem("sr-bad-parameter", "The parameters cannot be read.") from None


@cache
def properties_of(kind: type[Query]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each parameter, by name."""
    _, components = msgspec.json.schema_components([kind])
    properties: dict[str, dict[str, Any]] = components[kind.__name__]["properties"]
    return properties


def _parsed(text: str, kind: str | None) -> object:
    """Return the integer or boolean in a text; the text itself if it holds neither."""
    if kind == "integer" and INTEGER.fullmatch(text):
        return int(text)
    return BOOLEANS.get(text, text) if kind == "boolean" else text


def time_of(text: str, name: str, code: str = "sr-bad-parameter") -> int:
    """Return the time in a parameter or field, in microseconds; `code` is used if it has none."""
    try:
        return parse_iso_time(text)
    except FieldError as error:
        hint = " Write + as %2B." if " " in text else ""
        raise Problem(code, f"{name}: {error.detail}{hint}") from None


def require_at_most(count: int, limit: int, unit: str) -> None:
    """Refuse a range of time that is too long for one response."""
    if count > limit:
        raise Problem(
            "sr-bad-parameter",
            f"from and to must be at most {limit:,} {unit} apart, got {count:,}. "
            "Split the request.",
        )


def given(value: str | UnsetType) -> str | None:
    """Return a parameter; None if it was not given."""
    return None if value is UNSET else str(value)


def parts(value: str | UnsetType) -> frozenset[str]:
    """Return the parts of a comma-separated parameter; none if it was not given."""
    return frozenset((given(value) or "").split(",")) - {""}


class LargeBodies:
    """The number of large bodies in memory, which is limited."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def body(self) -> Iterator[BodySize]:
        """Give a request its entry, which counts once its body is large."""
        size = BodySize(self)
        try:
            yield size
        finally:
            self.count -= size.is_large


class BodySize:
    """The size of one body while it comes in."""

    def __init__(self, bodies: LargeBodies) -> None:
        self._bodies, self.is_large = bodies, False

    def grow(self, size: int, *, compressed: bool) -> None:
        """Set the size so far; a compressed body counts as large from its first byte."""
        if self.is_large or (size <= LARGE and not compressed):
            return
        if self._bodies.count >= MAX_LARGE:
            raise Problem("sr-busy", f"{MAX_LARGE} large bodies are being processed already.")
        self._bodies.count += 1
        self.is_large = True


async def body_of(
    request: Request[Any, Any, Any], size: BodySize, limit: int = MOST_BYTES
) -> bytes:
    """Return the body of a request, decompressed.

    Raises a `Problem` as soon as the body is too large, too slow, or ends early.
    """
    decompressor = Decompressor(request.headers.get("content-encoding"), limit)
    if (length := _content_length(request)) > limit:
        raise Problem("sr-too-large", f"a body must have at most {limit:,} bytes, got {length:,}.")
    try:
        async with asyncio.timeout(TIMEOUT) as timeout:
            await _receive(request, decompressor, size, timeout)
    except TimeoutError:
        raise Problem(
            "sr-slow-body", f"Fewer than {MIN_BYTES:,} bytes came within {TIMEOUT:g} seconds."
        ) from None
    return decompressor.body()


def _content_length(request: Request[Any, Any, Any]) -> int:
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


async def _receive(
    request: Request[Any, Any, Any],
    decompressor: Decompressor,
    size: BodySize,
    timeout: asyncio.Timeout,
) -> None:
    compressed = request.headers.get("content-encoding", "identity") != "identity"
    clock, mark, more = asyncio.get_running_loop().time, 0, True
    while more:
        message: Mapping[str, Any] = await request.receive()
        if message["type"] == "http.disconnect":
            raise Problem("sr-unreadable", "The body ended early.")
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size.grow(decompressor.received + len(chunk), compressed=compressed)
        if compressed:  # a few bytes may expand to many: other requests go on meanwhile
            await asyncio.to_thread(decompressor.add, chunk)
        else:
            decompressor.add(chunk)
        if decompressor.received - mark >= MIN_BYTES:
            mark = decompressor.received
            timeout.reschedule(clock() + TIMEOUT)


async def json_body(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """Return the JSON value of a small body; a value that is not a `kind` is refused."""
    content_type = request.headers.get("content-type")
    if (content_type or "").partition(";")[0].strip().lower() != JSON:
        raise Problem(
            "sr-unsupported-type", f"Content-Type must be {JSON}, got {shown(content_type)}."
        )
    with LargeBodies().body() as size:
        body = await body_of(request, size, MAX_JSON)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem("sr-bad-field", f"{error}.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem("sr-unreadable", f"The body is not JSON: {error}.") from None
