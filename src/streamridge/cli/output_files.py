"""Files that a command writes: checks before any work, and the table of predictions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import UnsupportedOperation
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

from streamridge.cli.commands import PLOTS, require_extra
from streamridge.cli.terminal import StandardOutput
from streamridge.errors import InvalidInputError, StreamRidgeError, listed, shown
from streamridge.files.open_files import is_special
from streamridge.files.tables import CsvRows, column_arrays, open_table, require_ending
from streamridge.files.written_files import (
    IsOurs,
    file_stem,
    is_checkpoint,
    is_page,
    is_predictions,
)
from streamridge.forecaster.methods import METHODS, needs_model
from streamridge.runs.run_folder import with_stored_runs
from streamridge.runs.tasks import Task

# Names of standard output.
STANDARD = ("-", "/dev/stdout")
# Part of the names of outputs whose runs were interrupted.
INTERRUPTED_NAME = "interrupted"


@dataclass(frozen=True)
class OutputFile:
    """A file that a command is going to write."""

    flag: str  # the flag or argument that names it
    path: Path
    is_own: IsOurs  # whether an existing file is of the same kind and may be replaced


def require_replaceable(
    outputs: Iterable[OutputFile], inputs: Iterable[str], *, force: bool = False
) -> None:
    """Raise if an output would replace a file that it must not replace.

    Pipes and devices are not checked. Inputs, where "-" is standard input, are never replaced.
    `force` allows to replace existing files of another kind.
    """
    read = list(_stats(inputs))
    seen: dict[Path, Path] = {}
    for output in outputs:
        flag, path = output.flag, output.path
        if is_special(path):
            continue
        _require_valid_name(flag, path)
        if any(os.path.samestat(there, each) for there in _stats([str(path)]) for each in read):
            raise InvalidInputError(f"{flag} must not replace a file that is read, got '{path}'.")
        if path.is_dir():
            raise InvalidInputError(f"{flag} must be a file, got the folder '{path}'.")
        if path.exists() and not (force or output.is_own(path)):
            raise InvalidInputError(
                f"{flag} must be new or replace a file that this command wrote, got '{path}'. "
                "Pass --force to replace it."
            )
        resolved = path.resolve()
        if seen.setdefault(resolved, path) is not path:
            raise InvalidInputError(f"{flag} must not be written to twice, got '{path}'.")
        if not seen.keys().isdisjoint(resolved.parents):
            raise InvalidInputError(
                f"{flag} must not be inside another output file, got '{path.parent}'."
            )


def require_folder(name: str, folder: Path) -> None:
    """Create a folder; raise if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:  # a disk may be full, or a folder read-only
            file.write(b"streamridge")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"{name} must be a folder that can be written, got {str(folder)!r}: {reason}."
        ) from None


def require_table(name: str, path: Path) -> None:
    """Raise unless a table can be written: check its ending, its folder and its dependencies."""
    if require_ending(path) == ".parquet":
        require_extra("pyarrow", "parquet")
    if not is_special(path):
        target = path.resolve() if path.is_symlink() else path
        require_folder(f"the folder of {name}", target.parent)


def outputs_of_runs(predictions: Path | None, report: Path | None) -> Iterator[OutputFile]:
    """Yield the files of predictions and reports, and their names after an interruption."""
    if predictions is not None and not is_standard(predictions):
        yield OutputFile("predictions", predictions, is_predictions)
        yield OutputFile("predictions", interrupted_file(predictions), is_predictions)
    if report is not None:
        yield from _report_files(report)
        yield from _report_files(report / INTERRUPTED_NAME)


def is_standard(path: Path) -> bool:
    """Return whether a path stands for standard output."""
    return str(path) in STANDARD


def interrupted_file(path: Path) -> Path:
    """Return the path of a table whose runs were interrupted.

    Examples
    --------
    >>> str(interrupted_file(Path("out/my.table.csv.gz")))
    'out/my.table.interrupted.csv.gz'
    """
    stem = len(path.name) - len(require_ending(path))
    return path.with_name(f"{path.name[:stem]}.{INTERRUPTED_NAME}{path.name[stem:]}")


@dataclass(frozen=True)
class RequestedOutputs:
    """The outputs that a user requested of a replay; None if not requested."""

    files: Sequence[str]  # the files that are read; they give the report its title
    predictions: Path | None = None  # the file of predictions
    report: Path | None = None  # the folder of the report
    save: Path | None = None  # the folder of saved forecasters
    keep: Path | None = None  # the folder of stored runs
    unit: str = ""  # the unit of the values, for figures
    events: Sequence[tuple[Any, str]] = ()  # times with a text, which figures mark
    as_json: bool = False  # print runs as JSON instead of a table
    force: bool = False  # replace existing files that this package did not write

    def require_writable(self, inputs: Iterable[str]) -> None:
        """Raise if an output cannot be written, or would replace a file that it must not."""
        if self.as_json and self.prints_predictions:
            raise InvalidInputError(
                "--predictions - must be left out with --json, since both write to standard "
                "output, got both. Pass a file to --predictions."
            )
        outputs = outputs_of_runs(self.predictions, self.report)
        require_replaceable(outputs, inputs, force=self.force)
        folders = {"report": self.report, "save": self.save, "keep": self.keep}
        for name, folder in folders.items():
            if folder is not None:
                require_folder(name, folder)
        if self.predictions is not None and not self.prints_predictions:
            require_table("predictions", self.predictions)
        if self.report is not None:
            for module in PLOTS:
                require_extra(module, "plot")

    def tasks(self, tasks: Sequence[Task], inputs: Iterable[str]) -> Sequence[Task]:
        """Return the tasks with the files of their forecasters and runs; raise as above."""
        stored = tasks if self.keep is None else with_stored_runs(self.keep, tasks)
        saved = stored if self.save is None else _with_saved_forecasters(stored, self.save)
        outputs = (
            OutputFile(flag, path, is_checkpoint)
            for task in saved
            for flag, path in (("save", task.save_to), ("keep", task.keep_in))
            if path is not None
        )
        require_replaceable(outputs, inputs, force=self.force)
        return saved

    @property
    def prints_predictions(self) -> bool:
        """Return whether predictions go to standard output."""
        return self.predictions is not None and is_standard(self.predictions)

    @property
    def writes_files(self) -> bool:
        """Return whether any file is requested."""
        predictions = None if self.prints_predictions else self.predictions
        return any((predictions, self.report, self.save, self.keep))


class PredictionsTable:
    """A table of forecasts that grows run by run: in a file, on standard output, or nowhere.

    The file gets its name when the table is finished. Without `finish`, nothing remains of it. A
    full disk fails this file only, not the command: `fail` is called with the message.
    """

    def __init__(
        self, path: Path | None, output: StandardOutput, fail: Callable[[str], None]
    ) -> None:
        self._path = path
        self._fail = fail
        self._is_empty, self._failed = True, False
        self._open = ExitStack()
        self._append: Callable[[Mapping[str, Any]], None] = lambda columns: None
        if path is not None and is_standard(path):
            rows = CsvRows(sys.stdout.buffer)
            self._open.callback(rows.close)  # all rows are flushed by then
            self._append = lambda columns: output.attempt(partial(_print_rows, rows, columns))
        elif path is not None:
            self._append = self._open.enter_context(
                open_table(path, at_end=lambda: self._path or path)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._discard()

    def add(self, columns: Mapping[str, Any]) -> None:
        """Write the forecasts of a run, unless writing has failed before."""
        self._is_empty = False
        self._attempt(lambda: self._append(columns))

    def finish(self, *, interrupted: bool) -> Path | None:
        """Finish the table and return the path of its file; None without a file."""
        path = self._path
        if path is None or self._is_empty:
            return None
        if interrupted and not (is_standard(path) or is_special(path)):
            self._path = interrupted_file(path)
        self._attempt(self._open.close)
        return None if self._failed or is_standard(path) else self._path

    def _attempt(self, write: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            write()
        except StreamRidgeError as error:
            self._failed = True
            self._discard()
            self._fail(str(error))

    def _discard(self) -> None:
        """Remove the file unless it is finished."""
        with suppress(StreamRidgeError):
            self._open.__exit__(StreamRidgeError, StreamRidgeError("discarded"), None)


def _with_saved_forecasters(tasks: Sequence[Task], folder: Path) -> Sequence[Task]:
    """Return tasks that save their forecasters in a folder, if they have one."""
    if not any(needs_model(task.method) for task in tasks):
        raise InvalidInputError(
            "save must be left out if no method has a forecaster to save, got methods "
            f"{listed(dict.fromkeys(task.method for task in tasks))}."
        )
    return [
        replace(task, save_to=folder / saved_name(task.series.sensor, task.method))
        if needs_model(task.method)
        else task
        for task in tasks
    ]


def saved_name(sensor: str, method: str) -> str:
    """Return the name of the file of a forecaster, which no other forecaster has in any run.

    Examples
    --------
    >>> saved_name("a", "ohl"), saved_name("a", "fixed"), saved_name("a-fixed", "ohl")
    ('a.sr', 'a-fixed.sr', 'a-fixed-ohl.sr')
    """
    ends_like_a_method = sensor.rpartition("-")[2] in METHODS
    ending = "" if method == "ohl" and not ends_like_a_method else f"-{method}"
    return f"{file_stem(sensor)}{ending}.sr"


def _print_rows(rows: CsvRows, columns: Mapping[str, Any]) -> None:
    rows.append(column_arrays(columns))
    rows.flush()


def _report_files(folder: Path) -> Iterator[OutputFile]:
    """Yield the page of a report and its images, which belong to the report if the page does."""
    page = folder / "index.html"
    yield OutputFile("report", page, is_page)
    for image in sorted(folder.glob("*.png")):
        yield OutputFile("report", image, lambda _: is_page(page))


def _require_valid_name(flag: str, path: Path) -> None:
    """Raise if the system does not allow the name of a file, for example if it is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InvalidInputError(
            f"{flag} must be a file that can be written, got {shown(str(path))}: {error.strerror}."
        ) from None


def _stats(files: Iterable[str]) -> Iterator[os.stat_result]:
    """Yield the status of each file that exists."""
    for file in files:
        with suppress(OSError, ValueError, UnsupportedOperation, AttributeError):
            yield os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
