"""Readings of sensors, read from files, standard input and frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any

from streamridge.arrays import require_one_of
from streamridge.files.blocks import Gap
from streamridge.files.dialect import Dialect
from streamridge.files.layouts import Choice
from streamridge.files.source import SPLITS, Layout, SourceReader
from streamridge.files.store import Store
from streamridge.series.readings import Readings

__all__ = ["Layout", "read_readings", "stored_readings"]


def read_readings(
    sources: Any,
    *,
    sensors: Iterable[str] | None = None,
    layout: Layout | None = None,
    extras: Iterable[str] = (),
    gap: Gap = "error",
    **written: Any,
) -> list[Readings]:
    """Return the readings of every sensor in some files or a frame.

    A file is CSV, NDJSON or Parquet, packed with gzip or not; its content tells which, not its
    name. A cell that is empty or says nan, NA, null or None is a missing value. How numbers and
    dates are written is decided by their whole column: where two readings remain, an error names
    the option that settles it.

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
    written
        How the source is written, where it does not tell by itself: `date_format`, `decimal`,
        `missing`, `encoding` and `largest` are those of `Dialect`.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13 08:00", "2021-06-13 08:15"], "ramp": [12, None]})
    >>> [ramp] = read_readings(flows)
    >>> ramp.sensor, ramp.values
    ('ramp', array([12., nan]))
    """
    with stored_readings(
        sources,
        sensors=sensors,
        layout=layout,
        extras=extras,
        gap=gap,
        dialect=Dialect(**written),
    ) as store:
        return [store.readings(name) for name in store.names]


@contextmanager
def stored_readings(
    sources: Any,
    *,
    sensors: Iterable[str] | None = None,
    layout: Layout | None = None,
    extras: Iterable[str] = (),
    gap: Gap = "error",
    dialect: Dialect | None = None,
) -> Iterator[Store]:
    """Read sources once, and keep what they hold so that it can be taken sensor by sensor.

    The sources may be larger than memory: what does not fit is kept in a temporary file, in the
    folder that TMPDIR names, until the context is left. Everything that is wrong with the sources
    is raised before the first sensor is handed out. A file is read a second time where it shows
    only far below how numbers or dates are written that were read before.

    Parameters
    ----------
    sources, sensors, layout, extras, gap
        See `read_readings`.
    dialect
        How the sources are written, as far as the user says so.

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame({"time": ["2021-06-13"], "ramp": [12], "exit": [7]})
    >>> with stored_readings(flows) as store:
    ...     store.names, store.readings("exit").values
    (('ramp', 'exit'), array([7.]))
    """
    require_one_of("gap", gap, ("error", "skip"))
    require_one_of("layout", layout, (None, *SPLITS))
    choice = Choice(_names(sensors or ()), _names(extras))
    told = dialect or Dialect()
    every = sources if isinstance(sources, list | tuple) else [sources]
    readers = [SourceReader(source, choice, layout, gap, told) for source in every]
    with closing(_filled(readers, choice)) as store:
        store.require_readings(
            readers[0].origin.name if len(readers) == 1 else f"all {len(readers)} sources together"
        )
        for reader in readers:
            reader.require_one_reading()
        if not told.all_meant:
            store.require_values()
        store.notes = tuple(note for reader in readers for note in reader.notes())
        yield store


def _filled(readers: Sequence[SourceReader], choice: Choice) -> Store:
    """Return a store with all that was read, the second time if cells were misread at first."""
    store = _read_once(readers, choice)
    if not any([reader.was_misread() for reader in readers]):
        return store
    store.close()
    return _read_once(readers, choice)


def _read_once(readers: Sequence[SourceReader], choice: Choice) -> Store:
    store = Store(choice)
    try:
        # A loop over the blocks themselves would hold on to one while the next is read.
        for split in chain.from_iterable(reader.splits() for reader in readers):
            store.add(split)
    except BaseException:
        store.close()
        raise
    return store


def _names(names: Iterable[str]) -> tuple[str, ...]:
    one = isinstance(names, str) or not isinstance(names, Iterable)
    return tuple(dict.fromkeys(map(str, [names] if one else names)))
