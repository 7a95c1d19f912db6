"""Output files: names that are safe on every system, and whether this package wrote a file."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from streamridge.errors import StreamRidgeError
from streamridge.files.checkpoint import FORMER_MAGIC, MAGIC
from streamridge.files.parquet import open_parquet

# Returns whether a file is one of a kind that this package writes.
IsOurs: TypeAlias = Callable[[Path], bool]

# Every page has this in its head.
GENERATOR = '<meta name="generator" content="streamridge">'
# The first columns of a table of forecasts.
PREDICTIONS = ("sensor", "method", "time", "horizon", "actual", "value")
# The first columns of a table of the next steps.
FORECASTS = ("sensor", "time")
# The program that figures name in their metadata.
DRAWN_BY = "streamridge"
ROAD = re.compile(r"(mainline|ramp)-\d+")
# The number of bytes at the beginning of a file that are inspected.
HEAD_BYTES = 65536
# The longest stem of a file name, and the part of a longer one that stays before its digest. The
# digest has more digits than the number of capitals can have.
LONGEST, LEGIBLE, DIGEST_BYTES = 100, 60, 16
# Devices on Windows, with any suffix.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", flags=re.IGNORECASE)


def file_stem(name: str) -> str:
    """Return a file name without an ending that belongs to this name alone, on every system.

    ASCII letters, digits and "._+-" stay, and other characters are escaped as in web addresses.
    Some systems treat A and a as equal. A name with capitals therefore ends with "~" and a
    hexadecimal number whose bits mark them. A long name is cut and ends with a digest.

    Examples
    --------
    >>> file_stem("ramp-3"), file_stem("a b"), file_stem("a_b"), file_stem("../..")
    ('ramp-3', 'a%20b', 'a_b', '%2E.%2F..')
    >>> file_stem("A1"), file_stem("a1"), file_stem("nul"), file_stem("é")
    ('A1~1', 'a1', '%6Eul', '%C3%A9')
    """
    escaped = quote(name, safe="+", errors="surrogatepass").replace("~", "%7E")
    if escaped[:1] in (".", "-") or RESERVED.fullmatch(escaped):
        escaped = f"%{ord(name[0]):02X}{escaped[1:]}"
    letters = (char for char in name if char.isascii() and char.isalpha())
    capitals = int("0" + "".join(str(int(char.isupper())) for char in letters), 2)
    stem = f"{escaped}~{capitals:x}" if capitals else escaped
    if len(stem) > LONGEST:
        digest = blake2b(name.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES)
        stem = f"{escaped[:LEGIBLE]}~{digest.hexdigest()}"
    return stem or "%"


def is_page(path: Path) -> bool:
    """Return whether a file is a page of a report or a study."""
    return GENERATOR.encode() in _head(path)


def is_checkpoint(path: Path) -> bool:
    """Return whether a file is a saved forecaster or a kept run."""
    return _head(path).startswith((MAGIC, FORMER_MAGIC))


def is_predictions(path: Path) -> bool:
    """Return whether a file is a table of forecasts."""
    return _columns(path)[: len(PREDICTIONS)] == PREDICTIONS


def is_forecast(path: Path) -> bool:
    """Return whether a file is a table of the next steps."""
    columns = _columns(path)
    return columns[:2] == FORECASTS and any(name.startswith("lower") for name in columns)


def is_figure(path: Path) -> bool:
    """Return whether a file is a figure that this package drew."""
    return DRAWN_BY.encode() in _head(path)


def is_simulated(path: Path) -> bool:
    """Return whether a file holds simulated roads."""
    time, *roads = _columns(path) or ("",)
    return time == "time" and bool(roads) and all(map(ROAD.fullmatch, roads))


def _columns(path: Path) -> tuple[str, ...]:
    """Return the columns of a table; none if it cannot be read as one."""
    try:
        if path.name.lower().endswith(".parquet"):
            with open(path, "rb") as file:
                return tuple(open_parquet(file, str(path)).head.column_names)
        opened = gzip.open if path.name.lower().endswith(".gz") else open
        with opened(path, "rb") as file:
            line = file.readline(HEAD_BYTES).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, StreamRidgeError):
        return ()
    return tuple(next(csv.reader(io.StringIO(line)), ()))


def _head(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""
