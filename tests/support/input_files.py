"""Files for tests, written beside the test so that messages name them as they are typed."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

import numpy as np

from streamridge.files import reading
from streamridge.files.reading_options import ReadingOptions


def read_readings(sources, **options):
    """Return the readings of every sensor of some sources."""
    collector = reading.read_readings(sources, ReadingOptions.of(options))
    return [collector.take(name) for name in collector.names]


def written(content, folder, name="flow.csv"):
    """Write a file, and return its path."""
    path = Path(folder) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def column(cells, delimiter=",", name="a"):
    """Return a wide file with one row a day for the cells of its only sensor."""
    rows = (f"2021-06-{day:02}{delimiter}{cell}" for day, cell in enumerate(cells, 1))
    return "\n".join([f"time{delimiter}{name}", *rows])


def times_column(cells, name="time"):
    """Return a wide file with one row for each time."""
    return "\n".join([f"{name},a", *(f"{cell},{5 + row}" for row, cell in enumerate(cells))])


def values(path, **options):
    """Return the values of the only sensor of a file."""
    [readings] = read_readings(path, **options)
    return readings.values.tolist()


def times(path, **options):
    """Return the times of the only sensor of a file, as text without zeros at the end."""
    [readings] = read_readings(path, **options)
    return [
        str(time.astype("datetime64[s]")) for time in readings.times
    ], readings.time_format.zoned


def same(found, expected):
    """Raise unless numbers are equal, NaN to NaN."""
    np.testing.assert_array_equal(found, expected)


EIGHT, NINE = "2021-06-13T08:00", "2021-06-13T09:00"
BOTH = [datetime.fromisoformat(EIGHT), datetime.fromisoformat(NINE)]
SAME = {"a": [1, math.nan], "b": [2.5, 4]}


def values_of(readings):
    return {one.sensor: one.values.tolist() for one in readings}


def assert_same(readings, expected):
    values = values_of(readings)
    assert list(values) == list(expected)
    for sensor, column in expected.items():
        np.testing.assert_array_equal(values[sensor], column)
