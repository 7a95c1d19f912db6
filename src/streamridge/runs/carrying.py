"""Tasks carried out on an engine: started when there is room, kept at once, handed on in order."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StreamRidgeError, shown
from streamridge.runs.engines.base import Engine, Workers
from streamridge.runs.engines.dask import DaskEngine
from streamridge.runs.engines.local import LocalEngine
from streamridge.runs.engines.work import Here, Outcome, Progress, reason_of
from streamridge.runs.interrupts import noted_interrupts
from streamridge.runs.tasks import Task

# How many more tasks than there is room for may follow the oldest that is not finished: what is
# finished before its turn has to be held meanwhile.
AHEAD = 64


def parse_engine(engine: str | Engine, *, jobs: int = 1, scheduler: str | None = None) -> Engine:
    """Return an engine that was named, or given.

    Parameters
    ----------
    engine
        "local", "dask", or an engine, which has its own number of workers.
    jobs
        How many processes.
    scheduler
        The address of a Dask scheduler that is running already; it makes the engine "dask".
    """
    require_count("jobs", jobs)
    if scheduler is not None:
        return DaskEngine(scheduler)
    if engine == "local":
        return LocalEngine(jobs)
    if engine == "dask":
        return DaskEngine(jobs=jobs)
    if isinstance(engine, str) or not hasattr(engine, "started"):
        raise InvalidInputError(
            f"engine must be 'local', 'dask' or an engine such as DaskEngine, got {shown(engine)}."
        )
    return engine


@contextmanager
def started_for(tasks: Sequence[Task], engine: Engine) -> Iterator[Workers]:
    """Give workers for the tasks that are not done yet; if all are done, nothing is started."""
    todo = sum(not task.is_done for task in tasks)
    if not todo:
        yield Here()
        return
    with engine.started(todo) as workers:
        yield workers


def carry_out(
    tasks: Sequence[Task], workers: Workers, progress: Progress
) -> Generator[Outcome, None, None]:
    """Yield the outcomes of tasks in their order, each as soon as it and all before it are there.

    What a task shall leave behind is written at once, whether or not its turn has come; a task that
    is done already is read from its file at its turn. Ctrl-C starts no further task, and ends with
    what there is.
    """
    with noted_interrupts(workers.stop) as interrupts:
        wrong: list[Exception] = []  # with the caller's progress, which is no fault of a sensor

        def tell(number: int, done: int) -> None:
            try:
                progress(number, done)
            except KeyboardInterrupt:
                if interrupts.pressed:
                    raise  # on its way to break off the run
                interrupts.press()
            except Exception as error:
                wrong.append(error)
                interrupts.press()

        flight = _Flight(tasks, workers)
        for number, task in enumerate(tasks):
            flight.start_more(unless=interrupts.pressed)
            while flight.is_expected(number):
                flight.take_in_finished(tell)
                flight.start_more(unless=interrupts.pressed)
            if wrong:
                raise wrong[0]
            outcome = flight.handed_on(number) or _kept(number, task)
            if outcome is not None:
                yield outcome


class _Flight:
    """The tasks that wait, those under way, and the outcomes whose turn has not come."""

    def __init__(self, tasks: Sequence[Task], workers: Workers) -> None:
        self._tasks, self._workers = tasks, workers
        self._waiting = [number for number, task in enumerate(tasks) if not task.is_done][::-1]
        self._under_way: set[int] = set()
        self._finished: dict[int, Outcome] = {}

    def is_expected(self, number: int) -> bool:
        """Tell whether a task has yet to be finished."""
        return number in self._under_way or bool(self._waiting and self._waiting[-1] <= number)

    def start_more(self, *, unless: bool) -> None:
        """Start what there is room for, unless all is to stop: then no task is waited for."""
        if unless:
            self._waiting.clear()
        while self._waiting and self._has_room():
            self._start(self._waiting.pop())

    def take_in_finished(self, tell: Progress) -> None:
        """Take in what has finished; a run that was cut short is the last."""
        for outcome in self._workers.finished(tell):
            self._take_in(outcome)
            if outcome.run is not None and outcome.run.interrupted:
                self._waiting.clear()

    def handed_on(self, number: int) -> Outcome | None:
        """Return the outcome of a task if there is one, and forget it."""
        return self._finished.pop(number, None)

    def _has_room(self) -> bool:
        room, following = self._workers.room, self._waiting[-1]
        oldest = min(self._under_way, default=following)
        return len(self._under_way) < room and following < oldest + room + AHEAD

    def _start(self, number: int) -> None:
        self._under_way.add(number)
        try:
            self._workers.take(number, self._tasks[number].job)
        except Exception as error:  # its series cannot be loaded any more, or not be sent
            self._take_in(Outcome(number, error=reason_of(error)))

    def _take_in(self, outcome: Outcome) -> None:
        self._under_way.discard(outcome.number)
        if outcome.run is None and outcome.error is None:
            return  # stopped before there was anything
        try:
            self._tasks[outcome.number].keep(outcome)
        except StreamRidgeError as error:  # a full disk costs what it cannot hold, and no other run
            outcome = replace(outcome, error=reason_of(error))
        self._finished[outcome.number] = outcome


def _kept(number: int, task: Task) -> Outcome | None:
    """Return the outcome of a task that was done before, if it was."""
    run = task.kept()
    return None if run is None else Outcome(number, run)
