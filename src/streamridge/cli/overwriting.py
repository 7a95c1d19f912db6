"""What may be written where: never over an input, and over other files only when asked to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import UnsupportedOperation
from pathlib import Path

from streamridge.errors import InvalidInputError, shown
from streamridge.files.atomic import is_special
from streamridge.files.own import IsOwn, is_checkpoint, is_page, is_predictions
from streamridge.files.tables import require_ending
from streamridge.runs.tasks import Task

# What stands for standard output.
STANDARD = ("-", "/dev/stdout")
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Output:
    """A file that a command is going to write.

    Parameters
    ----------
    flag
        What the user calls it.
    path
        Where it is written.
    is_own
        Tells whether a file that is there already is of the same kind, and may be replaced.
    """

    flag: str
    path: Path
    is_own: IsOwn


def require_free(outputs: Iterable[Output], inputs: Iterable[str], *, force: bool = False) -> None:
    """Raise before anything is written if an output would destroy what it must not.

    Parameters
    ----------
    outputs
        The files that are going to be written. Pipes and devices lose nothing.
    inputs
        The files that are read; "-" is standard input. They are never replaced.
    force
        Whether files that the package did not write may be replaced.
    """
    read = list(_stats(inputs))
    taken: dict[Path, Path] = {}
    for output in outputs:
        flag, path = output.flag, output.path
        if is_special(path):
            continue
        _require_name(flag, path)
        if any(os.path.samestat(there, each) for there in _stats([str(path)]) for each in read):
            raise InvalidInputError(f"{flag} must not replace a file that is read, got '{path}'.")
        if path.is_dir():
            raise InvalidInputError(f"{flag} must be a file, got the folder '{path}'.")
        if path.exists() and not (force or output.is_own(path)):
            raise InvalidInputError(
                f"{flag} must be new or replace what this command wrote before, got '{path}'. "
                "Pass --force to replace it."
            )
        resolved = path.resolve()
        if taken.setdefault(resolved, path) is not path:
            raise InvalidInputError(f"{flag} must not be written to twice, got '{path}'.")
        if not taken.keys().isdisjoint(resolved.parents):
            raise InvalidInputError(
                f"{flag} must be in a folder of its own, got '{path.parent}', which is to be "
                "another file."
            )


def outputs_of_runs(predictions: Path | None, report: Path | None) -> Iterator[Output]:
    """Yield the files of forecasts and of a report, also those of runs that are interrupted."""
    if predictions is not None and not is_standard(predictions):
        yield Output("predictions", predictions, is_predictions)
        yield Output("predictions", interrupted_file(predictions), is_predictions)
    if report is not None:
        yield from _page_and_pictures(report)
        yield from _page_and_pictures(interrupted_folder(report))


def outputs_of_tasks(tasks: Sequence[Task]) -> Iterator[Output]:
    """Yield the files of forecasters and of kept runs."""
    for task in tasks:
        for flag, path in (("save", task.save_to), ("keep", task.keep_in)):
            if path is not None:
                yield Output(flag, path, is_checkpoint)


def is_standard(path: Path) -> bool:
    """Return whether a path stands for standard output."""
    return str(path) in STANDARD


def interrupted_file(path: Path) -> Path:
    """Return the name that a table of interrupted runs gets.

    Examples
    --------
    >>> str(interrupted_file(Path("out/my.table.csv.gz")))
    'out/my.table.interrupted.csv.gz'
    """
    stem = len(path.name) - len(require_ending(path))
    return path.with_name(f"{path.name[:stem]}.{INTERRUPTED}{path.name[stem:]}")


def interrupted_folder(folder: Path) -> Path:
    """Return the folder that gets the report of interrupted runs."""
    return folder / INTERRUPTED


def _page_and_pictures(folder: Path) -> Iterator[Output]:
    """Yield the page of a report, and the pictures beside it: they are ours if the page is."""
    page = folder / "index.html"
    yield Output("report", page, is_page)
    for picture in sorted(folder.glob("*.png")):
        yield Output("report", picture, lambda _: is_page(page))


def _require_name(flag: str, path: Path) -> None:
    """Raise if a file cannot have such a name, as one that is too long."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InvalidInputError(
            f"{flag} must be a file that can be written, got {shown(str(path))}: {error.strerror}."
        ) from None


def _stats(files: Iterable[str]) -> Iterator[os.stat_result]:
    """Yield what the system knows of files, as far as they are there."""
    for file in files:
        with suppress(OSError, ValueError, UnsupportedOperation):
            yield os.fstat(sys.stdin.fileno()) if file == "-" else os.stat(file)
