"""Rows of the tables of hostile inputs: what is handed over, and what must come of it."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import date, timedelta
from math import nan

import numpy as np

# The last reading forecasts the next one, which needs no model; every reading is printed.
SHOWN = ["--method", "last", "--warmup", "0", "--predictions", "-"]
# The name of an exception, as it would stand in a traceback.
EXCEPTION = re.compile(r"Traceback|\b[A-Z]\w+(Error|Exception)\b")
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Row:
    """A file and flags, the exit code, what is said, and the readings where there are some.

    Parameters
    ----------
    content
        What the file holds.
    flags
        What is passed along.
    code, said
        The exit code, and a part of what standard error says.
    values, times
        Every reading, and its time, where both are known.
    """

    content: str | bytes
    flags: tuple[str, ...] = ()
    code: int = 0
    said: str = ""
    values: tuple[float, ...] | None = None
    times: tuple[str, ...] | None = None


def refused(content, said, *flags):
    """Return a row whose file is refused with an exit code of 2."""
    return Row(content, flags, 2, said)


def read(content, values, *flags, said="", times=None):
    """Return a row whose file is read: its values, NaN where one is missing, and their times."""
    return Row(content, flags, 0, said, tuple(values), times and tuple(times))


def column(*cells, by=",", name="a"):
    """Return a file with a day a row for the cells of its only sensor."""
    first = date(2021, 6, 1)
    rows = (f"{first + timedelta(day)}{by}{cell}" for day, cell in enumerate(cells))
    return "\n".join([f"time{by}{name}", *rows, ""])


def stamps(*cells, name="time"):
    """Return a file with a row for each time; the values count from 5."""
    return "\n".join([f"{name},a", *(f"{cell},{at}" for at, cell in enumerate(cells, 5)), ""])


def named(name):
    """Return a file of two readings whose sensor has a name."""
    quoted = name.replace('"', '""')
    return f'time,"{quoted}"\n2021-06-01,1\n2021-06-02,2\n'


def written(content, path):
    """Write a file."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def require_contract(result, code, said=""):
    """Raise unless a command ended as agreed: its exit code, its words, and nothing of Python's."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    assert not EXCEPTION.search(result.output), result.output
    assert not OBEYED.search(result.stderr), result.stderr
    assert said in " ".join(result.stderr.split()), result.stderr
    if code == 2:
        assert result.stdout == ""
        assert len(re.findall("^error: |^Error: ", result.stderr, re.MULTILINE)) == 1


def require_readings(result, values, times=None):
    """Raise unless a printed table holds exactly these readings."""
    table = list(csv.DictReader(io.StringIO(result.stdout, newline="")))
    found = [float(row["actual"] or nan) for row in table]
    np.testing.assert_array_equal(found, values)
    if times is not None:
        assert [row["time"] for row in table] == list(times)
