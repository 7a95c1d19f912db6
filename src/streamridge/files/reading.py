"""Readings out of files, standard input and frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, TypeAlias

from streamridge.errors import InvalidInputError, listed, shown
from streamridge.files.blocks import Block, Gap, Origin
from streamridge.files.csv_text import csv_blocks
from streamridge.files.frames import frame_block
from streamridge.files.layouts import Choice, Split, is_long, split_long, split_wide
from streamridge.files.opened import name_of, opened
from streamridge.files.parquet import MAGIC, read_parquet
from streamridge.files.pems import is_pems, split_pems
from streamridge.series.readings import Piece, Readings, join

Layout: TypeAlias = Literal["wide", "long", "pems"]

_SPLITS: Mapping[str, Callable[[Block, Choice], Split]] = {
    "wide": split_wide,
    "long": split_long,
    "pems": split_pems,
}


def read_readings(
    sources: Any,
    *,
    sensors: Iterable[str] | None = None,
    layout: Layout | None = None,
    extras: Iterable[str] = (),
    gap: Gap = "error",
) -> list[Readings]:
    """Return the readings of every sensor in some files or a frame.

    A file is CSV or Parquet, packed with gzip or not; its content tells, not its name. A cell that
    is empty or says nan, NA, null or None is a missing value.

    Parameters
    ----------
    sources
        A path, "-" for standard input, a DataFrame of pandas, polars or pyarrow, a Series of pandas
        with a DatetimeIndex, or a list of these, whose rows are joined in the order given.
    sensors
        Which to return, in this order; all by default, in the order of the source.
    layout
        "wide" is a time column, the first one unless one has a name such as time, timestamp or ds,
        and one column per sensor. "long" is a row per reading, in columns for the sensor
        (unique_id, sensor, station, detector, ...), the time, and the value (y, value, flow, count,
        volume, ...). "pems" is a station file of Caltrans. By default a source with all three
        columns is long, one that has no header but the form of a station file is pems, and all
        others are wide.
    extras
        Columns that are known in advance, given along with the readings.
    gap
        "error" to raise at the first cell that is neither missing nor a number, or no time;
        "skip" to leave out such readings and count them in `skipped`. So are rows with more or
        fewer cells than the header; they, and those that name no sensor, count for every sensor.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13 08:00", "2021-06-13 08:15"], "ramp": [12, None]})
    >>> [ramp] = read_readings(flows)
    >>> ramp.sensor, ramp.values
    ('ramp', array([12., nan]))
    """
    _require_one_of("gap", gap, ("error", "skip"))
    _require_one_of("layout", layout, (None, *_SPLITS))
    choice = Choice(_names(sensors or ()), _names(extras))
    every = sources if isinstance(sources, list | tuple) else [sources]
    blocks = (block for source in every for block in _blocks(source, gap))
    splits = [_SPLITS[layout or _layout(block)](block, choice) for block in blocks]
    readings = _joined(splits, choice)
    if not any(len(one.times) for one in readings):
        name = _name(every[0]) if len(every) == 1 else f"all {len(every)} sources together"
        raise InvalidInputError(f"{name} must have at least one reading, got none.")
    return readings


def _blocks(source: Any, gap: Gap) -> Iterator[Block]:
    if not isinstance(source, str | os.PathLike):
        yield frame_block(source, Origin(_name(source), "row", gap, 'gap="skip"'))
        return
    with opened(source) as stream:
        if stream.peek(len(MAGIC)).startswith(MAGIC):
            table = read_parquet(stream.read(), _name(source))
            yield frame_block(table, Origin(_name(source), "row", gap))
        else:
            yield from csv_blocks(stream, Origin(_name(source), "line", gap))


def _layout(block: Block) -> Layout:
    if is_pems(block):
        return "pems"
    return "long" if is_long(block) else "wide"


def _joined(splits: Sequence[Split], choice: Choice) -> list[Readings]:
    names = dict.fromkeys(name for split in splits for name in split.names)
    unknown = [sensor for sensor in choice.sensors if sensor not in names]
    if names and unknown:
        raise InvalidInputError(f"sensors must be among {listed(names)}, got {shown(unknown[0])}.")
    pieces: dict[str, list[Piece]] = {}
    for piece in chain.from_iterable(split.pieces for split in splits):
        pieces.setdefault(piece.sensor, []).append(piece)
    loose = sum(split.loose for split in splits)
    joined = (join(pieces[name]) for name in choice.sensors or names if name in pieces)
    return [replace(readings, skipped=readings.skipped + loose) for readings in joined]


def _name(source: Any) -> str:
    return name_of(source) if isinstance(source, str | os.PathLike) else type(source).__name__


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, [names] if isinstance(names, str) else names)))


def _require_one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        words = ", ".join(map(str, allowed))
        raise InvalidInputError(f"{name} must be one of {words}, got {shown(value)}.")
