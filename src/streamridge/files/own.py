"""Files that this package wrote, told from all others by what they begin with."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from streamridge.errors import StreamRidgeError
from streamridge.files.checkpoint import MAGIC
from streamridge.files.parquet import parquet_content

# Tells whether a file is one of a kind that this package writes.
IsOwn: TypeAlias = Callable[[Path], bool]

# What every page holds in its head.
GENERATOR = '<meta name="generator" content="streamridge">'
# The first columns of a table of forecasts.
PREDICTIONS = ("sensor", "method", "time", "horizon", "actual", "value")
ROAD = re.compile(r"(mainline|ramp)-\d+")
# Characters at the beginning of a file that are looked at.
BEGINNING = 65536


def is_page(path: Path) -> bool:
    """Return whether a file is a page of a report or a study."""
    return GENERATOR.encode() in _beginning(path)


def is_checkpoint(path: Path) -> bool:
    """Return whether a file is a saved forecaster or a kept run."""
    return _beginning(path).startswith(MAGIC)


def is_predictions(path: Path) -> bool:
    """Return whether a file is a table of forecasts."""
    return _columns(path)[: len(PREDICTIONS)] == PREDICTIONS


def is_simulated(path: Path) -> bool:
    """Return whether a file holds simulated roads."""
    time, *roads = _columns(path) or ("",)
    return time == "time" and bool(roads) and all(map(ROAD.fullmatch, roads))


def _columns(path: Path) -> tuple[str, ...]:
    """Return the columns of a table; none if it cannot be read as one."""
    if path.name.lower().endswith(".parquet"):
        return _parquet_columns(path)
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            line = file.readline(BEGINNING).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return ()
    return tuple(next(csv.reader(io.StringIO(line)), ()))


def _parquet_columns(path: Path) -> tuple[str, ...]:
    try:
        with open(path, "rb") as file, parquet_content(file, str(path)) as content:
            return tuple(content.head.column_names)
    except (OSError, StreamRidgeError):
        return ()


def _beginning(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(BEGINNING)
    except OSError:
        return b""
