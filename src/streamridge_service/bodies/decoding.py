"""From the body of a request to rows: decompression, then decoding by Content-Type."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable
from typing import Protocol

import zstandard

from streamridge.errors import shown
from streamridge_service.bodies.csv_rows import decode_csv
from streamridge_service.bodies.json_rows import decode_json, decode_json_lines
from streamridge_service.limits import MOST_BYTES
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch

DECODERS: dict[str, Callable[[bytes], Batch]] = {
    "application/json": decode_json,
    "application/x-ndjson": decode_json_lines,
    "application/ndjson": decode_json_lines,
    "application/jsonl": decode_json_lines,
    "text/csv": decode_csv,
}
PARQUET = ("application/vnd.apache.parquet", "application/x-parquet", "application/parquet")
# Compressed bytes that are decompressed at once. Four bytes of zstd can stand for 128 kB, so the
# result can grow by 17 MB before its size is checked.
CHUNK = 512
# A compressed body may be a sequence of compressed parts; even an empty part takes time.
MOST_PARTS = 1_000
# The window size that RFC 9659 allows on the web, in bytes.
ZSTD_WINDOW = 2**23


def decode(body: bytes, content_type: str | None) -> Batch:
    r"""Return the rows of a body: valid rows and refused rows.

    Any bytes give a batch or a `Problem`: sr-unsupported-type for another type or charset,
    sr-unreadable for a body that cannot be parsed, sr-too-large for a body above the limits.

    Examples
    --------
    >>> decode(b"sensor,time,value\na,1970-01-01T00:00:00Z,\n", "text/csv; charset=utf-8").rows
    [Row(line=2, sensor='a', time=0, value=None)]
    """
    kind, parameters = _media_type(content_type or "")
    if kind in PARQUET:
        raise Problem(
            "sr-unsupported-type",
            "Parquet is not accepted as a body. Send the file with `streamridge feed FILE`, or "
            "convert it to CSV.",
        )
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


def _media_type(content_type: str) -> tuple[str, dict[str, str]]:
    """Return the type and its parameters, in lower case and without quotation marks."""
    kind, *written = content_type.lower().split(";")
    pairs = (each.partition("=") for each in written)
    return kind.strip(), {name.strip(): value.strip().strip('"') for name, _, value in pairs}


class Codec(Protocol):
    """The decompressor of one part, as zlib and zstandard provide it."""

    @property
    def eof(self) -> bool:
        """Whether the part is complete."""

    @property
    def unused_data(self) -> bytes:
        """The given bytes that lie after the end of the part."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return the content of some more compressed bytes."""


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


class Decompressor:
    """A body that arrives in chunks; its size is limited before and after decompression.

    `encoding` is the header Content-Encoding, None if it is missing.
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
        # The codec of the part that has begun; None between parts.
        self._part: Codec | None = None
        self._parts = 0
        self.received = 0
        self._content = io.BytesIO()

    def add(self, chunk: bytes) -> None:
        """Add the next bytes of the body as they were sent."""
        self.received += len(chunk)
        self._require_small(self.received, "as sent")
        if self._codec is None:
            self._content.write(chunk)
            return
        for start in range(0, len(chunk), CHUNK):
            self._decompress(chunk[start : start + CHUNK])

    def body(self) -> bytes:
        """Return the decompressed body, once all of it was added."""
        if self._codec and (self._part or not self._parts):
            raise Problem("sr-unreadable", f"the {self._name} stream ends before its end.")
        return self._content.getvalue()

    def _decompress(self, chunk: bytes) -> None:
        while chunk:
            part = self._part or self._new_part()
            try:
                content = part.decompress(chunk)
            except (zlib.error, zstandard.ZstdError) as error:
                raise Problem(
                    "sr-unreadable",
                    f"the {self._name} stream is broken before byte {self.received + 1}: {error}.",
                ) from None
            self._require_small(self._content.tell() + len(content), "decompressed")
            self._content.write(content)
            self._part, chunk = (None, part.unused_data) if part.eof else (part, b"")

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


def decompress(chunks: Iterable[bytes], encoding: str | None = None) -> bytes:
    """Return a body that was sent in chunks, decompressed.

    Examples
    --------
    >>> decompress([zlib.compress(b"sensor,", wbits=31), zlib.compress(b"time", wbits=31)], "gzip")
    b'sensor,time'
    """
    decompressor = Decompressor(encoding)
    for chunk in chunks:
        decompressor.add(chunk)
    return decompressor.body()
