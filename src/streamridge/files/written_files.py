"""Output files: names that are safe on every system, and whether this package wrote a file."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

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
LONGEST = 80
# Devices on Windows, with any suffix.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", flags=re.IGNORECASE)


class FileNames:
    """A source of file names that are safe on every system and never repeat.

    Names in `taken`, without an ending, are in use already.

    >>> names = FileNames()
    >>> names.take("A1/north", ".png"), names.take("a1 north", ".png"), names.take("../..", ".png")
    ('A1_north.png', 'a1_north-2.png', 'sensor.png')
    >>> names.take("NUL", ".sr"), names.take("com1.2", ".sr"), names.take("ramp-ohl+", ".sr")
    ('NUL_.sr', 'com1_.2.sr', 'ramp-ohl+.sr')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def take(self, text: str, ending: str) -> str:
        """Return a new name that resembles the text."""
        safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", text)[:LONGEST]
        stem = safe.lstrip("._+-").rstrip("._-") or "sensor"
        stem = RESERVED.sub(r"\1_\2", stem) if RESERVED.fullmatch(stem) else stem
        name, count = stem, 1
        # A.png and a.png are the same file on some systems.
        while name.lower() in self._taken:
            count += 1
            name = f"{stem}-{count}"
        self._taken.add(name.lower())
        return name + ending


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
