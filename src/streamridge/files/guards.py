"""Streams of bytes that refuse to grow beyond all measure."""

from __future__ import annotations

import gzip
import io
from typing import Any, Protocol

from streamridge.errors import InvalidInputError

# Tables of readings shrink to a few percent in gzip, a bomb to a thousandth; this lies between.
MOST_TIMES = 250
# A small file may shrink by more.
ALWAYS_ALLOWED = 2**25
LONGEST_LINE = 2**24
CHUNK = 2**16


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes, none at the end."""


class Counted(io.RawIOBase):
    """A stream that counts the bytes that are read from another one, and leaves that one open."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self.count += len(content)
        return len(content)


class Unpacked(Counted):
    """The content of a gzip stream, refused once it is too large.

    Parameters
    ----------
    stream
        The packed bytes.
    name
        What messages call the file.
    most
        The most bytes it may unpack to; by default so many times its packed size.
    """

    def __init__(self, stream: Readable, name: str, most: int | None) -> None:
        self._packed = Counted(stream)
        super().__init__(gzip.GzipFile(fileobj=io.BufferedReader(self._packed, CHUNK)))
        self._name, self._most = name, most

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        count = super().readinto(buffer)
        most = self._most
        if most is None:
            most = max(ALWAYS_ALLOWED, MOST_TIMES * self._packed.count)
        if self.count > most:
            raise InvalidInputError(
                f"{self._name} must unpack to at most {most} bytes, got more. "
                "Pass --largest with a size such as 20GB if the file is sound (largest= in Python)."
            )
        return count


class Lines(io.RawIOBase):
    """A stream of text in bytes, refused at a line that is too long."""

    def __init__(self, stream: io.BufferedReader, name: str) -> None:
        self._stream, self._name = stream, name
        self._line, self._length = 1, 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes there were."""
        count = self._stream.readinto1(buffer)
        chunk = bytes(buffer[:count])
        ends = chunk.count(b"\n") or chunk.count(b"\r")
        self._line += ends
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._length = count - end - 1 if ends else self._length + count
        if self._length > LONGEST_LINE:
            raise InvalidInputError(
                f"{self._name} line {self._line} must be at most {LONGEST_LINE // 2**20} MiB long, "
                "got a longer one. Is it a table with one row a line?"
            )
        return count
