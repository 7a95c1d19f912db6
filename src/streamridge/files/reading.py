"""Readings of sensors, read from files, standard input and frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from io import BufferedReader
from itertools import chain
from typing import Any, Literal, TypeAlias

from streamridge.arrays import require_one_of
from streamridge.files.blocks import Block, Gap, Origin
from streamridge.files.csv_text import csv_blocks
from streamridge.files.frames import frame_block
from streamridge.files.layouts import Choice, Split, is_long, split_long, split_wide, wide_groups
from streamridge.files.opened import name_of, opened
from streamridge.files.parquet import MAGIC, parquet_content
from streamridge.files.pems import is_pems, split_pems
from streamridge.files.store import Store
from streamridge.series.readings import Readings

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

    A file is CSV or Parquet, packed with gzip or not; its content tells which, not its name. A cell
    that is empty or says nan, NA, null or None is a missing value.

    Parameters
    ----------
    sources
        A path, "-" for standard input, a DataFrame of pandas, polars or pyarrow, a Series of pandas
        with a DatetimeIndex, or a list of these, which are joined in the order given.
    sensors
        The sensors to return, in this order; all by default, in the order of the source.
    layout
        "wide": a column of times and a column for each sensor. The times are in the first column,
        unless another one has a name such as time, timestamp or ds.
        "long": a row for each reading, with a column of sensors (named unique_id, sensor, station,
        detector, ...), one of times and one of values (y, value, flow, count, volume, ...).
        "pems": a station file of Caltrans.
        By default, a source with the three columns of "long" is long, one that looks like a station
        file is pems, and any other is wide.
    extras
        Columns whose values are known in advance; they are returned along with the readings.
    gap
        What to do with a cell that should be a number or a time and is not, and with a row that
        has more or fewer cells than the header or names no sensor. "error" raises at the first
        one. "skip" leaves the reading out and counts it in `skipped`: a cell counts for the sensors
        whose readings it spoils, a row of either kind for every sensor.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13 08:00", "2021-06-13 08:15"], "ramp": [12, None]})
    >>> [ramp] = read_readings(flows)
    >>> ramp.sensor, ramp.values
    ('ramp', array([12., nan]))
    """
    with stored_readings(sources, sensors=sensors, layout=layout, extras=extras, gap=gap) as store:
        return [store.readings(name) for name in store.names]


@contextmanager
def stored_readings(
    sources: Any,
    *,
    sensors: Iterable[str] | None = None,
    layout: Layout | None = None,
    extras: Iterable[str] = (),
    gap: Gap = "error",
) -> Iterator[Store]:
    """Read sources once, and keep what they hold so that it can be taken sensor by sensor.

    The sources may be larger than memory: what does not fit is kept in a temporary file, in the
    folder that TMPDIR names, until the context is left. Everything that is wrong with the sources
    is raised before the first sensor is handed out.

    Parameters
    ----------
    sources, sensors, layout, extras, gap
        See `read_readings`.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13"], "ramp": [12], "exit": [7]})
    >>> with stored_readings(flows) as store:
    ...     store.names, store.readings("exit").values
    (('ramp', 'exit'), array([7.]))
    """
    require_one_of("gap", gap, ("error", "skip"))
    require_one_of("layout", layout, (None, *_SPLITS))
    choice = Choice(_names(sensors or ()), _names(extras))
    every = sources if isinstance(sources, list | tuple) else [sources]
    with closing(Store(choice)) as store:
        blocks = chain.from_iterable(_blocks(source, layout, choice, gap) for source in every)
        # A loop over the blocks themselves would hold on to one while the next is read.
        for split in map(lambda block: _SPLITS[layout or _layout(block)](block, choice), blocks):
            store.add(split)
        store.require_readings(
            _name(every[0]) if len(every) == 1 else f"all {len(every)} sources together"
        )
        yield store


def _blocks(source: Any, layout: Layout | None, choice: Choice, gap: Gap) -> Iterator[Block]:
    if not isinstance(source, str | os.PathLike):
        yield frame_block(source, Origin(_name(source), "row", gap))
        return
    with opened(source) as stream:
        if stream.peek(len(MAGIC)).startswith(MAGIC):
            origin = Origin(_name(source), "row", gap)
            yield from _parquet_blocks(stream, origin, layout, choice)
        else:
            yield from csv_blocks(stream, Origin(_name(source), "line", gap))


def _parquet_blocks(
    stream: BufferedReader, origin: Origin, layout: Layout | None, choice: Choice
) -> Iterator[Block]:
    """Yield a block without rows, which names all columns, and then the rows."""
    with parquet_content(stream, origin.name) as content:
        head = frame_block(content.head, origin)
        yield head
        as_written = {name.strip(): name for name in reversed(content.head.column_names)}
        wide = (layout or _layout(head)) == "wide"
        for group in wide_groups(head, choice) if wide else [tuple(head.columns)]:
            first = 0
            for table in content.tables([as_written[name] for name in group]):
                yield frame_block(table, origin, first)
                first += len(table)


def _layout(block: Block) -> Layout:
    if is_pems(block):
        return "pems"
    return "long" if is_long(block) else "wide"


def _name(source: Any) -> str:
    return name_of(source) if isinstance(source, str | os.PathLike) else type(source).__name__


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, [names] if isinstance(names, str) else names)))
