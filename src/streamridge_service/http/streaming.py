"""Responses that are sent in parts while they are made, so that none is in memory as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from litestar import Response
from litestar.types import Receive, Scope, Send

from streamridge_service.http.responses import (
    CSV,
    JSON,
    Columns,
    table_response,
    to_csv,
)
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.service.answers import Answer
from streamridge_service.service.queries import Queries

# Items of one part: a few milliseconds of work.
PART = 500

T = TypeVar("T", bound=msgspec.Struct)
Part = Callable[[Ledger], Sequence[T]]
Flat = Callable[[T], Mapping[str, Any]]


class StreamedResponse(Response[None]):
    """A response whose parts are sent until all are sent, or the client leaves.

    `on_close` is called at the end.
    """

    def __init__(
        self,
        parts: AsyncIterator[bytes],
        media_type: str,
        headers: dict[str, str] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(None, media_type=media_type, headers=headers)
        self._parts, self._on_close = parts, on_close

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Return the ASGI application that sends the response."""
        return self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._on_close()
            leaving.cancel()
            if not sending.done():
                sending.cancel()
            with suppress(asyncio.CancelledError):
                await leaving
            with suppress(asyncio.CancelledError):
                await sending  # raises what has gone wrong

    async def _send(self, send: Send) -> None:
        headers = {"content-type": str(self.media_type), **self.headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnect(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def stream_items(
    queries: Queries,
    parts: Iterable[Part[T]],
    answer: Answer,
    *,
    kind: str = "json",
    columns: Columns | None = None,
    flat: Flat[T] = msgspec.structs.asdict,
    cursor: str | None = None,
) -> Response[Any]:
    """Return the response to a request for a list, which is queried and sent in parts.

    Parameters
    ----------
    queries
        The threads that run the queries.
    parts
        Queries of the items, one part after the other.
    answer
        The answer without its items.
    kind
        The format: "json", "csv" or "parquet".
    columns
        The columns of a table.
    flat
        Converts an item to a row of a table.
    cursor
        The cursor of the next page of a table.
    """
    if kind == "parquet" and columns is not None:
        rows: list[Mapping[str, Any]] = []
        for part in parts:
            rows += map(flat, await queries.read_part(part))
        return await queries.work(lambda: table_response(rows, columns, kind, cursor))
    if kind == "csv" and columns is not None:
        header = to_csv([], columns)
        encoded = _encoded(
            queries, parts, lambda items: to_csv(map(flat, items), columns)[len(header) :]
        )
        stream, media = _with_ends(header, encoded, b"", b""), f"{CSV}; charset=utf-8"
    else:
        before, _, after = msgspec.json.encode(answer).partition(b'"items":[]')
        encoded = _encoded(queries, parts, lambda items: msgspec.json.encode(items)[1:-1])
        stream, media = _with_ends(before + b'"items":[', encoded, b",", b"]" + after), JSON
    # An error of the first part becomes a problem; after the start a response can only be cut off.
    first = await anext(stream)
    headers = {"Streamridge-Cursor": cursor} if cursor and kind == "csv" else None
    return StreamedResponse(_chained(first, stream), media, headers)


async def _encoded(
    queries: Queries, parts: Iterable[Part[T]], encode: Callable[[Sequence[T]], bytes]
) -> AsyncIterator[bytes]:
    for part in parts:

        def read(ledger: Ledger, part: Part[T] = part) -> bytes:
            return encode(part(ledger))

        encoded = await queries.read_part(read)
        if encoded:
            yield encoded


async def _with_ends(
    first: bytes, parts: AsyncIterator[bytes], separator: bytes, last: bytes
) -> AsyncIterator[bytes]:
    """Yield parts with a separator between them, after a first text and before a last one."""
    before = first
    async for part in parts:
        yield before + part
        before = separator
    yield (before if before is first else b"") + last


async def _chained(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in parts:
        yield part


def in_parts(items: Sequence[Any], query: Callable[[Sequence[Any]], Part[T]]) -> Iterable[Part[T]]:
    """Yield the query of each `PART` items."""
    for start in range(0, len(items), PART):
        yield query(items[start : start + PART])
