"""Every forecast as a row of a table: in a file, on standard output, or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from streamridge.cli.overwriting import interrupted_file, is_standard
from streamridge.cli.printing import Printed
from streamridge.errors import StreamRidgeError
from streamridge.files.atomic import is_special
from streamridge.files.tables import CsvRows, column_arrays, growing_table

# Takes what went wrong.
Fail = Callable[[str], None]


class Predictions(Protocol):
    """A table of forecasts that grows run by run."""

    def add(self, columns: Mapping[str, Any]) -> None:
        """Take the forecasts of the next run."""

    def close(self, *, interrupted: bool) -> Path | None:
        """End the table, and return the file that it is in, if there is one."""


@contextmanager
def begun_predictions(path: Path | None, printed: Printed, fail: Fail) -> Iterator[Predictions]:
    """Give a table that is open: on standard output for "-", and nowhere without a path.

    Unless it is closed within, nothing is left of it.
    """
    if path is None:
        yield NoPredictions()
    elif is_standard(path):
        yield PrintedPredictions(printed)
    else:
        file = PredictionsFile(path, fail)
        try:
            yield file
        finally:
            file.drop()


class NoPredictions:
    """A table that nobody asked for."""

    def add(self, columns: Mapping[str, Any]) -> None:
        """Drop the forecasts."""

    def close(self, *, interrupted: bool) -> None:
        """Leave nothing."""


class PrintedPredictions:
    """A table on standard output, as CSV."""

    def __init__(self, printed: Printed) -> None:
        self._printed = printed
        self._rows = CsvRows(sys.stdout.buffer)

    def add(self, columns: Mapping[str, Any]) -> None:
        """Print the forecasts of a run at once."""
        self._printed.attempt(lambda: self._print(columns))

    def close(self, *, interrupted: bool) -> None:
        """Print nothing more: all is there."""
        self._printed.attempt(self._rows.close)

    def _print(self, columns: Mapping[str, Any]) -> None:
        self._rows.append(column_arrays(columns))
        self._rows.flush()


class PredictionsFile:
    """A table in a file, which has its name once it is whole; one of interrupted runs says so.

    A disk that is full costs this file alone.

    Parameters
    ----------
    path
        The file.
    fail
        Called with what went wrong.
    """

    def __init__(self, path: Path, fail: Fail) -> None:
        self._path = self._named = path
        self._fail = fail
        self._begun = self._failed = False
        self._file = ExitStack()
        self._append = self._file.enter_context(growing_table(path, lambda: self._named))

    def add(self, columns: Mapping[str, Any]) -> None:
        """Write the forecasts of a run, unless that has failed before."""
        self._begun = True
        self._attempt(lambda: self._append(columns))

    def close(self, *, interrupted: bool) -> Path | None:
        """Give the file its name; without any run there is none."""
        if not self._begun:
            self.drop()
            return None
        if interrupted and not is_special(self._path):
            self._named = interrupted_file(self._path)
        self._attempt(self._file.close)
        return None if self._failed else self._named

    def drop(self) -> None:
        """Remove what has been written, if it has no name yet."""
        dropped = StreamRidgeError("the table is not wanted any more.")
        with suppress(StreamRidgeError):
            self._file.__exit__(StreamRidgeError, dropped, None)

    def _attempt(self, work: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            work()
        except StreamRidgeError as error:
            self._failed = True
            self.drop()
            self._fail(str(error))
