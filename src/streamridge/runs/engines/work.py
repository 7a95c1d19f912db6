"""A job, what becomes of it, and the process that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from streamridge.errors import StreamRidgeError
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import needs_model
from streamridge.forecaster.settings import Settings
from streamridge.runs.run import Run
from streamridge.runs.scoring import yardstick_run
from streamridge.runs.stepping import StepProgress, step_through
from streamridge.series.series import Series
from streamridge.series.spans import Span

# Called with a task's number, and how many of its steps are done.
Progress = Callable[[int, int], None]


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
    exclude
        Spans that are forecast, but neither learned from nor scored.
    returns_forecaster
        Whether the forecaster is wanted back with the run.
    """

    series: Series
    forecaster: Settings | bytes
    method: str
    warmup: int | None = None
    steps: int | None = None
    exclude: tuple[Span, ...] = ()
    returns_forecaster: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a task; run and error are both None if it was stopped without a result.

    Parameters
    ----------
    number
        Of the task.
    run
        What the forecaster made of the series.
    checkpoint
        The forecaster afterwards, as the content of its file, if it was wanted.
    error
        Why there is no run, or why it could not be kept.
    """

    number: int
    run: Run | None = None
    checkpoint: bytes | None = None
    error: str | None = None


class Here:
    """The process itself as the only worker."""

    width = 1
    room = 1

    def __init__(self) -> None:
        self._taken: tuple[int, Callable[[], Job]] | None = None
        self._working = self._stopping = False

    def take(self, number: int, load: Callable[[], Job]) -> None:
        """Take a job, and load it when it is worked on."""
        self._taken = number, load

    def finished(self, tell: Progress) -> list[Outcome]:
        """Carry out the job that was taken, and return its outcome."""
        if self._taken is None:
            return []
        (number, load), self._taken = self._taken, None
        try:
            try:
                self._working = True
                # Looked at last: from here on `stop` breaks the job off.
                outcome = (
                    Outcome(number) if self._stopping else attempt(number, load, tell, self._finish)
                )
            finally:
                self._working = False
        except KeyboardInterrupt:  # before its first step
            return [Outcome(number)]
        return [outcome]

    def _finish(self) -> None:
        """Take note that all steps are taken: what is left to do is not broken off."""
        self._working = False

    def stop(self) -> None:
        """Begin no job any more, and break off the one under way by raising KeyboardInterrupt.

        It is raised once, so that the job can hand in what it has.
        """
        self._stopping = True
        if self._working:
            self._working = False
            raise KeyboardInterrupt


def attempt(
    number: int, load: Callable[[], Job], tell: Progress, last: Callable[[], None] | None = None
) -> Outcome:
    """Return the outcome of a job; whatever goes wrong is an outcome too.

    Parameters
    ----------
    number, load
        The number of the job, and what loads it.
    tell
        Called after each step.
    last
        Called once all steps are taken.
    """

    def progress(done: int, total: int) -> None:
        tell(number, done)
        if done == total and last is not None:
            last()

    try:
        job = load()
        if not needs_model(job.method) and isinstance(job.forecaster, Settings):
            return Outcome(number, _yardstick_of(job, job.forecaster, progress))
        forecaster = _forecaster_for(job)
        run = step_through(
            forecaster,
            job.series,
            method=job.method,
            warmup=job.warmup,
            steps=job.steps,
            exclude=job.exclude,
            progress=progress,
        )
        wanted = job.returns_forecaster and not run.interrupted  # it may be within a step
        return Outcome(number, run, content_of(forecaster) if wanted else None)
    except Exception as error:
        return Outcome(number, error=reason_of(error))


def _yardstick_of(job: Job, settings: Settings, progress: StepProgress) -> Run:
    """Return the run of a method that needs no forecaster; all its steps are taken at once."""
    run = yardstick_run(
        job.series,
        settings,
        method=job.method,
        warmup=job.warmup,
        steps=job.steps,
        exclude=job.exclude,
    )
    progress(run.lived, run.lived)
    return run


def reason_of(error: BaseException) -> str:
    """Return what went wrong, with the kind of error where its text alone would not do.

    The sensor is not named: whoever shows the reason says which run it is of.
    """
    known = isinstance(error, StreamRidgeError) and error.reason
    return known or f"{type(error).__name__}: {error}"


def _forecaster_for(job: Job) -> Forecaster:
    """Return the forecaster that goes on, or a new one with the name of its series."""
    if isinstance(job.forecaster, bytes):
        return forecaster_of(job.forecaster)
    return Forecaster.of(replace(job.forecaster, sensor=job.series.sensor or None))


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
