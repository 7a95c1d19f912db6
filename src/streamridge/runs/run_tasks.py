"""Tasks run on an engine: started when a worker is free, stored at once, yielded in order."""

from __future__ import annotations

import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic

from threadpoolctl import threadpool_limits

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StreamRidgeError, counted, option, shown
from streamridge.runs.dask_engine import DaskEngine
from streamridge.runs.engines import Engine, LocalEngine, Workers, started_workers
from streamridge.runs.step_loop import reason_of, run_task
from streamridge.runs.tasks import AnyTask, TaskOutcome

# Called with the number of a task and the number of its steps that are done.
TaskProgress = Callable[[int, int], None]
# Returns the outcome of a task.
Perform = Callable[..., TaskOutcome]
# Seconds between two looks at the progress of running tasks.
LOOK_EVERY = 0.2
# The most outcomes that are held in memory while the oldest task is running.
AHEAD = 64
# Seconds after which a second Ctrl-C ends everything at once. Some programs send the signal twice.
SECOND_PRESS = 1.0
# Requests to stop: Ctrl-C, the end of the process, and the end of its terminal.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A task fails when its worker process has died this often.
ATTEMPTS = 2


def parse_engine(
    engine: str | Engine | Executor, *, jobs: int = 1, scheduler: str | None = None
) -> Engine | Executor:
    """Return an engine by its name "local" or "dask", or the given engine.

    `jobs` is the number of processes of a named engine. The address of a Dask scheduler makes the
    engine "dask".
    """
    require_count("jobs", jobs)
    if scheduler is not None:
        return DaskEngine(scheduler)
    if isinstance(engine, Executor) or hasattr(engine, "workers"):
        return engine
    if engine == "local":
        return LocalEngine(jobs)
    if engine == "dask":
        return DaskEngine(jobs=jobs)
    raise InvalidInputError(
        "engine must be 'local', 'dask', an engine such as DaskEngine or a "
        f"concurrent.futures.Executor, got {shown(engine)}."
    )


def run_tasks(
    tasks: Sequence[AnyTask],
    engine: Engine | Executor,
    progress: TaskProgress | None = None,
    perform: Perform = run_task,
) -> Generator[TaskOutcome, None, None]:
    """Return a generator of the outcomes of tasks, in the order of the tasks.

    `perform` returns the outcome of one task, given its number, the task and a function to call
    with the number of its steps that are done, and of all its steps. By default it is a replay.

    An outcome is stored as soon as its task has finished, and yielded at its turn. A task whose run
    is stored already is read from its file. After Ctrl-C no further task starts, running tasks are
    interrupted, and only stored runs follow.
    """
    todo = sum(not task.is_done for task in tasks)
    report = progress or (lambda number, done: None)
    if not todo or (isinstance(engine, LocalEngine) and min(engine.jobs, todo) == 1):
        return _run_here(tasks, report, perform)
    return _run_on_workers(tasks, engine, report, perform)


class Interrupts:
    """Ctrl-C, SIGTERM and SIGHUP as a request to stop, which interrupts a task but nothing else."""

    def __init__(self) -> None:
        self.requested = self.in_task = False
        self._since = 0.0

    def press(self, *_: object) -> None:
        """Note the request, and interrupt the task of this process; raise at a second request."""
        if self.requested and monotonic() > self._since + SECOND_PRESS:
            raise KeyboardInterrupt
        if not self.requested:
            self.requested, self._since = True, monotonic()
        if self.in_task:
            self.in_task = False
            raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Give the requests to stop that arrive meanwhile."""
    interrupts = Interrupts()
    with handled_signals(interrupts.press, STOP_SIGNALS):
        yield interrupts


def interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt: the handler of signals that end a command as Ctrl-C does."""
    raise KeyboardInterrupt


@contextmanager
def handled_signals(
    handler: Callable[..., None], signals: Iterable[signal.Signals]
) -> Iterator[None]:
    """Handle signals meanwhile, except ignored ones: `nohup` lets a command ignore SIGHUP.

    Only the main thread receives signals.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) for each in signals if is_main}
    heard = [each for each, own in before.items() if own is not signal.SIG_IGN]
    for each in heard:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, before[each])


def _run_here(
    tasks: Sequence[AnyTask], progress: TaskProgress, perform: Perform
) -> Generator[TaskOutcome, None, None]:
    """Run tasks in this process, one after the other."""
    caller_errors: list[Exception] = []  # errors of `progress` are not failures of a task

    def report(number: int, done: int, total: int) -> None:
        interrupts.in_task = interrupts.in_task and done < total
        try:
            progress(number, done)
        except Exception as error:
            caller_errors.append(error)
            raise KeyboardInterrupt from error

    with threadpool_limits(1), noted_interrupts() as interrupts:
        for number, task in enumerate(tasks):
            outcome = task.stored(number)
            if outcome is None and not interrupts.requested:
                try:
                    interrupts.in_task = True
                    outcome = perform(number, task, partial(report, number))
                except KeyboardInterrupt:  # before the first step
                    interrupts.requested = True
                finally:
                    interrupts.in_task = False
                if outcome is not None:
                    interrupts.requested |= outcome.is_interrupted
                    outcome = _stored(task, outcome)
            if caller_errors:
                raise caller_errors[0]
            if outcome is not None:
                yield outcome


def _stored(task: AnyTask, outcome: TaskOutcome) -> TaskOutcome:
    """Return an outcome after its files are written; a full disk is an error of this task alone."""
    try:
        task.store(outcome)
    except StreamRidgeError as error:
        return replace(outcome, error=reason_of(error))
    return outcome


def _run_on_workers(
    tasks: Sequence[AnyTask], engine: Engine | Executor, progress: TaskProgress, perform: Perform
) -> Generator[TaskOutcome, None, None]:
    """Run tasks on the workers of an engine."""
    with (
        threadpool_limits(1),
        noted_interrupts() as interrupts,
        started_workers(engine, len(tasks)) as workers,
        closing(_Schedule(tasks, workers, perform)) as schedule,
    ):
        for number, task in enumerate(tasks):
            while schedule.is_expected(number):
                if interrupts.requested:
                    schedule.close()
                schedule.start_more()
                try:
                    schedule.collect(progress)
                except KeyboardInterrupt:  # raised by `progress`, or a second Ctrl-C
                    if interrupts.requested:
                        raise
                    interrupts.requested = True
                interrupts.requested |= schedule.has_interrupted
            outcome = schedule.finished.pop(number, None) or task.stored(number)
            if outcome is not None:
                yield outcome


class _Schedule:
    """The tasks that wait, the tasks that run, and the outcomes that are not yielded yet.

    A dead worker process breaks its whole pool. The tasks that were running are suspects: each is
    retried alone in a new pool, so that a task that kills its worker fails alone. One task at a
    time also needs the least memory, and a lack of memory is the usual reason.
    """

    def __init__(self, tasks: Sequence[AnyTask], workers: Workers, perform: Perform) -> None:
        self._tasks, self._workers, self._perform = tasks, workers, perform
        self._waiting = deque(number for number, task in enumerate(tasks) if not task.is_done)
        self._suspects: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._running: dict[int, Future[TaskOutcome]] = {}
        self.finished: dict[int, TaskOutcome] = {}
        self.has_interrupted = self._is_closed = False

    def is_expected(self, number: int) -> bool:
        """Return whether a task waits or runs."""
        return number in self._running or number in self._suspects or number in self._waiting

    def close(self) -> None:
        """Drop the tasks that wait, and interrupt the tasks that run."""
        self._waiting.clear()
        self._suspects.clear()
        if not self._is_closed:
            self._is_closed = True
            self._workers.stop(self._running.values())

    def start_more(self) -> None:
        """Start tasks while workers are free; a suspect runs alone."""
        if self._suspects and not self._running:
            self._start(self._suspects.popleft())
        has_suspects = self._suspects or any(self._deaths[number] for number in self._running)
        while self._waiting and not has_suspects and self._has_room():
            self._start(self._waiting.popleft())

    def _has_room(self) -> bool:
        room = self._workers.room
        oldest = min(self._running, default=self._waiting[0])
        return len(self._running) < room and self._waiting[0] < oldest + room + AHEAD

    def _start(self, number: int) -> None:
        call = partial(self._perform, number, self._tasks[number])
        try:
            self._running[number] = self._workers.submit(number, call)
        except BrokenExecutor as error:  # an idle worker has died
            self._running[number] = Future()
            self._running[number].set_exception(error)

    def collect(self, progress: TaskProgress) -> None:
        """Wait a little, take the outcomes of finished tasks, and report progress."""
        wait(self._running.values(), LOOK_EVERY, FIRST_COMPLETED)
        if any(map(_is_broken, self._running.values())):
            wait(self._running.values())  # a broken pool ends all of its tasks
        done = {number: future for number, future in self._running.items() if future.done()}
        for number in done:
            del self._running[number]
        lost = [number for number, future in done.items() if _is_broken(future)]
        if lost:
            self._retry(lost)
        for number, future in done.items():
            if number not in lost:
                self._take(number, self._outcome(number, future))
        for number in self._running:
            progress(number, self._workers.steps_done(number))
        for number in done:
            outcome = self.finished.get(number)
            if outcome is not None and outcome.steps_done:
                progress(number, outcome.steps_done)

    def _retry(self, lost: Sequence[int]) -> None:
        """Let tasks of a broken pool run again, unless their worker has died too often."""
        can_retry = not self._is_closed and self._workers.restart()
        for number in lost:
            self._deaths[number] += 1
            if can_retry and self._deaths[number] < ATTEMPTS:
                self._suspects.append(number)
            elif not self._is_closed:
                died = f"its worker process died {counted(self._deaths[number], 'time')}"
                remedy = f"Usually memory has run out: pass a smaller {option('jobs')}."
                self._take(number, TaskOutcome(number, error=f"{died}. {remedy}"))

    def _take(self, number: int, outcome: TaskOutcome | None) -> None:
        if outcome is None or outcome.is_interrupted:
            self.has_interrupted = True
        if outcome is not None:
            self.finished[number] = _stored(self._tasks[number], outcome)

    def _outcome(self, number: int, future: Future[TaskOutcome]) -> TaskOutcome | None:
        """Return the outcome of a task; None if it was interrupted without a result."""
        if future.cancelled() and not self._is_closed:
            raise StreamRidgeError(
                "the Dask scheduler must run until all tasks are done, but the connection is lost. "
                f"Start it again: with {option('keep')} the same command makes the missing runs."
            )
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or isinstance(error, KeyboardInterrupt):
            return None
        if error is None:
            return future.result()
        failures = getattr(error, "allowed_failures", None)  # of Dask's KilledWorker
        if failures is not None:
            return TaskOutcome(number, error=f"its worker died {counted(failures + 1, 'time')}")
        return TaskOutcome(number, error=reason_of(error))


def _is_broken(future: Future[TaskOutcome]) -> bool:
    """Return whether a future failed because a worker process died."""
    has_result = future.done() and not future.cancelled()
    return has_result and isinstance(future.exception(), BrokenExecutor)
