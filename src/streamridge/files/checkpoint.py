"""A file with a header and arrays: versioned, checked, written whole or not at all.

The file is a magic line, the format's version (4 bytes), the header's length (8 bytes), the header
as JSON, the arrays one after the other, and a BLAKE2b digest (32 bytes) of everything before it.
Numbers are little-endian. "arrays" in the header lists the name, number format, shape and offset of
each array. Where that saves space, as with counts, the arrays are packed by zlib, and "packed" says
how many bytes they are. There is no pickle in the file, and nothing in it is executed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import FormerFormatError, StateError
from streamridge.files.atomic import replacing

MAGIC = b"streamridge state file\n"
# Format 2 has no second fit of a learner, and other flags of a timeline.
VERSION = 2
# The first line of files that development versions wrote in formats 1 to 7 of another numbering.
FORMER_MAGIC = b"streamridge checkpoint\n"
DIGEST_BYTES = 32
DTYPES = ("<f8", "<f4", "<i8", "|u1", "|b1", "<M8[us]")
_START = len(MAGIC) + 12
# The quickest packing: a forecaster of counts takes a third of its space, in 2 ms.
QUICK = 1

# The errors that damaged content can cause.
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
    zlib.error,
)

Header = dict[str, Any]
Arrays = Mapping[str, NDArray[Any]]


def write_checkpoint(path: Path, header: Header, arrays: Arrays) -> None:
    """Write a header of plain values, and arrays; after an error the old file is still there."""
    content = encoded(header, arrays)
    with replacing(path) as file:
        file.write(content)


def read_checkpoint(path: Path) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file; an error says why it cannot be trusted."""
    return decoded(read_content(path), str(path))


def read_content(path: Path) -> bytes:
    """Return the content of a file; raise if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}.") from None


def encoded(header: Header, arrays: Arrays) -> bytes:
    """Return a header of plain values, and arrays, as the content of a file."""
    table, pieces, offset = [], [], 0
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False).reshape(np.shape(array))
        if plain.dtype.str not in DTYPES:
            raise StateError(f"{name} must be numbers or times, got {plain.dtype}.")
        table.append([name, plain.dtype.str, list(plain.shape), offset])
        pieces.append(plain.tobytes())
        offset += plain.nbytes
    payload, about = b"".join(pieces), Header(arrays=table)
    packed = zlib.compress(payload, QUICK)
    if len(packed) < len(payload):
        payload, about = packed, {**about, "packed": len(payload)}
    text = json.dumps({**header, **about}, allow_nan=False).encode()
    numbers = VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little")
    body = b"".join([MAGIC, numbers, text, payload])
    return body + blake2b(body, digest_size=DIGEST_BYTES).digest()


def state_content(content: bytes) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Return the plain values and the arrays in the bytes of a forecaster, to compare two of them.

    Parameters
    ----------
    content
        The bytes that `Forecaster.to_bytes` returned.
    """
    return decoded(content, "the state")


def decoded(content: bytes, path: str) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file's content; errors call it by its path."""
    if content.startswith(FORMER_MAGIC):
        raise FormerFormatError(
            f"{path} must be in a format that this version reads, got one of a development version "
            "before formats restarted at 1. Start again from the readings."
        )
    if not content.startswith(MAGIC):
        raise StateError(f"{path} is not a streamridge checkpoint.")
    version = int.from_bytes(content[len(MAGIC) : len(MAGIC) + 4], "little")
    if version > VERSION:
        raise StateError(
            f"{path} has format {version}, and this version reads formats up to {VERSION}. "
            "Upgrade streamridge to load it; nothing was changed."
        )
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if len(body) < _START or blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
        raise StateError(
            f"{path} is damaged: it was cut short or altered since it was written. "
            "Load another copy, or start again from the readings."
        )
    if version < VERSION:
        raise FormerFormatError(
            f"{path} has format {version}, and this version reads format {VERSION}. "
            "Start again from the readings."
        )
    length = int.from_bytes(body[len(MAGIC) + 4 : _START], "little")
    try:
        header = json.loads(body[_START : _START + length])
        payload = _unpacked(memoryview(body)[_START + length :], header.pop("packed", None))
        return header, {name: _array(payload, *place) for name, *place in header.pop("arrays")}
    except UNREADABLE as error:
        raise StateError(f"{path} is damaged: its header makes no sense ({error}).") from None


def _unpacked(payload: memoryview, size: int | None) -> memoryview:
    """Return the bytes of all arrays; packed arrays must unpack to exactly `size` bytes."""
    if size is None:
        return payload
    if size < 1:  # zlib takes 0 as no limit
        raise ValueError(f"{size} bytes of arrays are packed")
    plain = zlib.decompressobj().decompress(payload, size)
    if len(plain) != size:
        raise ValueError(f"{size} bytes of arrays are not there")
    return memoryview(plain)


def _array(payload: memoryview, dtype: str, shape: list[int], offset: int) -> NDArray[Any]:
    if dtype not in DTYPES:
        raise ValueError(f"unknown number format {dtype}")
    return np.frombuffer(payload, dtype, prod(shape), offset).reshape(shape).copy()
