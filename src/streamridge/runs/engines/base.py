"""What every engine shares: jobs, their outcomes, and what workers can do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import Settings
from streamridge.runs.run import Run
from streamridge.runs.stepping import step_through
from streamridge.series.series import Series

# Called with a task's number, and how many of its steps are done.
Progress = Callable[[int, int], None]

# Seconds between two looks at what workers have to tell.
LOOK_EVERY = 0.2


@dataclass(frozen=True)
class Job:
    """A replay as a worker gets it: all that it needs, and nothing of this machine.

    Parameters
    ----------
    series
        What to forecast.
    forecaster
        The settings of a new one, or one that goes on, as the content of its file.
    method
        What the run is called.
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    returns_forecaster
        Whether the forecaster is wanted back with the run.
    """

    series: Series
    forecaster: Settings | bytes
    method: str
    warmup: int | None = None
    steps: int | None = None
    returns_forecaster: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a task; one that was stopped before there was anything has no part.

    Parameters
    ----------
    number
        Of the task.
    run
        What the forecaster made of the series.
    checkpoint
        The forecaster afterwards, as the content of its file, if it was wanted.
    error
        Why there is no run.
    """

    number: int
    run: Run | None = None
    checkpoint: bytes | None = None
    error: str | None = None


class Workers(Protocol):
    """Workers that are ready to take jobs."""

    @property
    def width(self) -> int:
        """Return how many jobs are worked on at a time."""

    @property
    def room(self) -> int:
        """Return how many jobs they take before one has to be finished."""

    def take(self, number: int, job: Job) -> None:
        """Take a job."""

    def finished(self, tell: Progress) -> list[Outcome]:
        """Wait a little, tell what is going on, and return what has finished meanwhile."""

    def stop(self) -> None:
        """Break off all jobs soon; those under way are finished with what they have, or nothing."""


class Engine(Protocol):
    """A way of carrying out jobs."""

    def started(self, jobs: int) -> AbstractContextManager[Workers]:
        """Give workers for some jobs; they are gone afterwards."""


def attempt(number: int, job: Callable[[], Job], tell: Progress) -> Outcome:
    """Return the outcome of a job; whatever goes wrong is an outcome too."""
    try:
        return _carried_out(number, job(), tell)
    except Exception as error:
        return Outcome(number, error=in_words(error))


def in_words(error: BaseException) -> str:
    """Return what went wrong, with the kind of error where its text would not do."""
    name, text = type(error).__name__, str(error)
    return text if text and type(error).__module__.startswith("streamridge") else f"{name}: {text}"


def content_of(forecaster: Forecaster) -> bytes:
    """Return a forecaster as the content of its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "forecaster.sr"
        forecaster.save(path)
        return path.read_bytes()


def forecaster_of(content: bytes) -> Forecaster:
    """Return the forecaster of a file's content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "forecaster.sr"
        path.write_bytes(content)
        return Forecaster.load(path)


def _carried_out(number: int, job: Job, tell: Progress) -> Outcome:
    given = job.forecaster
    forecaster = forecaster_of(given) if isinstance(given, bytes) else Forecaster.of(given)
    run = step_through(
        forecaster,
        job.series,
        warmup=job.warmup,
        steps=job.steps,
        method=job.method,
        progress=lambda done, total: tell(number, done),
    )
    wanted = job.returns_forecaster and not run.interrupted  # it may be in the middle of a step
    return Outcome(number, run, content_of(forecaster) if wanted else None)
