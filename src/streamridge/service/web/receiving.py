"""The body of a request, as it comes in: counted, unpacked, and not waited for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from streamridge.errors import shown
from streamridge.service.bodies.unpacking import Unpacker
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES
from streamridge.service.web.context import Asked
from streamridge.service.web.contracts import JSON
from streamridge.service.web.room import Guest, Room

# A body must go on by so many bytes within so many seconds, or end.
LEAST, PATIENCE = 15_000, 30.0
# The most bytes of a body that says what to do, rather than what was measured.
MOST_SAID = 1_000_000

T = TypeVar("T")


async def body_of(request: Asked, guest: Guest, most: int = MOST_BYTES) -> bytes:
    """Return the body of a request, unpacked.

    Raises `Problem` as soon as it is too large, sent or unpacked, stalls, or breaks off.
    """
    packing = request.headers.get("content-encoding")
    unpacker = Unpacker(packing, most)
    if (announced := _announced(request)) > most:
        raise Problem(
            "sr-too-large", f"a body must have at most {most:,} bytes, got {announced:,}."
        )
    try:
        async with asyncio.timeout(PATIENCE) as limit:
            await _receive(request, unpacker, guest, limit)
    except TimeoutError:
        raise Problem(
            "sr-slow-body", f"There were less than {LEAST:,} bytes in {PATIENCE:g} seconds."
        ) from None
    return unpacker.body()


def _announced(request: Asked) -> int:
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


async def _receive(
    request: Asked, unpacker: Unpacker, guest: Guest, limit: asyncio.Timeout
) -> None:
    packed = request.headers.get("content-encoding", "identity") != "identity"
    clock, mark, more = asyncio.get_running_loop().time, 0, True
    while more:
        message: Mapping[str, Any] = await request.receive()
        if message["type"] == "http.disconnect":
            raise Problem("sr-unreadable", "The body broke off.")
        chunk, more = message.get("body", b""), message.get("more_body", False)
        guest.grow(unpacker.sent + len(chunk), packed=packed)
        if packed:  # a few bytes can stand for many, and requests of others go on meanwhile
            await asyncio.to_thread(unpacker.add, chunk)
        else:
            unpacker.add(chunk)
        if unpacker.sent - mark >= LEAST:
            mark = unpacker.sent
            limit.reschedule(clock() + PATIENCE)


async def said(request: Asked, kind: type[T]) -> T:
    """Return what the JSON of a small body says; anything else than `kind` is refused."""
    content_type = request.headers.get("content-type")
    if (content_type or "").partition(";")[0].strip().lower() != JSON:
        raise Problem(
            "sr-unsupported-type", f"Content-Type must be {JSON}, got {shown(content_type)}."
        )
    with Room().guest() as guest:
        body = await body_of(request, guest, MOST_SAID)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem("sr-bad-field", f"{error}.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem("sr-unreadable", f"The body is not JSON: {error}.") from None
