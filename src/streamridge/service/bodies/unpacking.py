"""Bodies as they are sent, packed or not, to the bytes that they stand for."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable
from typing import Protocol

import zstandard

from streamridge.errors import shown
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES

# So many packed bytes are unpacked at once. Four bytes of zstd can stand for 128 kB, so these can
# grow to 17 MB before the size is looked at again.
PIECE = 512
# A packed body may be several packed bodies in a row; each costs time even if it is empty.
MOST_PARTS = 1_000
# What RFC 9659 allows on the web, in bytes.
ZSTD_WINDOW = 2**23


class Codec(Protocol):
    """What unpacks one part, as zlib and zstandard offer it."""

    @property
    def eof(self) -> bool:
        """Whether the part is complete."""

    @property
    def unused_data(self) -> bytes:
        """What was given to it and lies after the part's end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what some more packed bytes stand for."""


def _gzip() -> Codec:
    return zlib.decompressobj(wbits=31)


def _zstd() -> Codec:
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()


CODECS: dict[str, Callable[[], Codec] | None] = {
    "identity": None,
    "gzip": _gzip,
    "x-gzip": _gzip,
    "zstd": _zstd,
}


class Unpacker:
    """A body that arrives in chunks; whatever it holds, it takes no more memory than allowed.

    Parameters
    ----------
    encoding
        The header Content-Encoding, None without one.
    most
        The most bytes, as sent and unpacked.
    """

    def __init__(self, encoding: str | None = None, most: int = MOST_BYTES) -> None:
        name = (encoding or "identity").strip().lower()
        if name not in CODECS:
            raise Problem(
                "sr-unsupported-type",
                f"Content-Encoding must be gzip, zstd or identity, got {shown(encoding)}.",
            )
        self._name, self._most = name, most
        self._codec = CODECS[name]
        # What unpacks the part that has begun and not ended; None between parts.
        self._part: Codec | None = None
        self._parts = 0
        self.sent = 0
        self._unpacked = io.BytesIO()

    def add(self, chunk: bytes) -> None:
        """Take the next bytes as they were sent."""
        self.sent += len(chunk)
        self._require_small(self.sent, "sent")
        if self._codec is None:
            self._unpacked.write(chunk)
            return
        for start in range(0, len(chunk), PIECE):
            self._unpack(chunk[start : start + PIECE])

    def body(self) -> bytes:
        """Return all that was unpacked, when everything was sent."""
        if self._codec and (self._part or not self._parts):
            raise Problem("sr-unreadable", f"the {self._name} stream ends before its end.")
        return self._unpacked.getvalue()

    def _unpack(self, piece: bytes) -> None:
        while piece:
            part = self._part or self._new_part()
            try:
                unpacked = part.decompress(piece)
            except (zlib.error, zstandard.ZstdError) as error:
                raise Problem(
                    "sr-unreadable",
                    f"the {self._name} stream is broken before byte {self.sent + 1}: {error}.",
                ) from None
            self._require_small(self._unpacked.tell() + len(unpacked), "unpacked")
            self._unpacked.write(unpacked)
            self._part, piece = (None, part.unused_data) if part.eof else (part, b"")

    def _new_part(self) -> Codec:
        self._parts += 1
        if self._codec is None or self._parts > MOST_PARTS:
            raise Problem(
                "sr-unreadable", f"the {self._name} stream has more than {MOST_PARTS:,} parts."
            )
        return self._codec()

    def _require_small(self, size: int, how: str) -> None:
        if size > self._most:
            raise Problem(
                "sr-too-large", f"a body must have at most {self._most:,} bytes {how}, got more."
            )


def unpack(chunks: Iterable[bytes], encoding: str | None = None) -> bytes:
    """Return the body that chunks stand for.

    Parameters
    ----------
    chunks
        The bytes as they were sent.
    encoding
        The header Content-Encoding, None without one.

    Examples
    --------
    >>> unpack([zlib.compress(b"sensor,", wbits=31), zlib.compress(b"time", wbits=31)], "gzip")
    b'sensor,time'
    """
    unpacker = Unpacker(encoding)
    for chunk in chunks:
        unpacker.add(chunk)
    return unpacker.body()
