"""Many replays: one after the other, or side by side in processes, with the same results."""

from __future__ import annotations

import os
import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from time import sleep

from streamridge.arrays import require_count
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import Settings
from streamridge.runs.kept import write_run
from streamridge.runs.replay import replay
from streamridge.runs.run import Run
from streamridge.series.series import Series

# Called with a task's number, and how many of its steps are done.
Progress = Callable[[int, int], None]

# Steps between two messages of a worker, and seconds between two looks at them.
MESSAGE_EVERY = 48
LOOK_EVERY = 0.2

# Of each worker: where it tells its progress, and what says that it is to stop.
_messages: SimpleQueue[tuple[int, int]] | None = None
_stop: Event | None = None
_working = False


@dataclass(frozen=True)
class Task:
    """Is one replay to be made.

    Parameters
    ----------
    series
        What to forecast.
    settings
        Of the forecaster.
    method
        How the run is called.
    warmup, steps
        Steps before the first scored one, and how many are scored at most.
    save_to
        Where the forecaster of a whole run is saved afterwards, if anywhere.
    keep_in
        The file that keeps the run itself once it is whole, if any.
    """

    series: Series
    settings: Settings
    method: str
    warmup: int | None = None
    steps: int | None = None
    save_to: Path | None = None
    keep_in: Path | None = None

    @property
    def first(self) -> int:
        """Return how many steps come before the first scored one."""
        return self.settings.warmup if self.warmup is None else self.warmup

    @property
    def length(self) -> int:
        """Return how many steps are lived through."""
        every = len(self.series)
        return every if self.steps is None else min(every, self.first + self.steps)


def run_all(tasks: Sequence[Task], *, jobs: int = 1, progress: Progress) -> list[Run]:
    """Return the runs of all tasks in their order; Ctrl-C ends with those that have begun."""
    require_count("jobs", jobs)
    if jobs == 1 or len(tasks) <= 1:
        return _run_here(tasks, progress)
    context = get_context("spawn")
    messages, stop = context.SimpleQueue(), context.Event()
    with ProcessPoolExecutor(
        min(jobs, len(tasks)),
        context,
        initializer=_start_worker,
        initargs=(messages, stop, os.getpid()),
    ) as pool:
        # Workers are told to stop, and hand in what they have; Ctrl-C itself must not reach them.
        with _deaf_to_interrupts():
            futures = [pool.submit(_work, number, task) for number, task in enumerate(tasks)]
        try:
            _look_on(futures, messages, progress)
        except BaseException as error:
            stop.set()
            for future in futures:
                future.cancel()
            if not isinstance(error, KeyboardInterrupt):
                raise
        done = [future.result() for future in futures if not future.cancelled()]
        return [run for run in done if run is not None]


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C meanwhile, as do processes that are started within."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run_here(tasks: Sequence[Task], progress: Progress) -> list[Run]:
    runs: list[Run] = []
    try:
        for number, task in enumerate(tasks):
            runs.append(_run(task, lambda done, _, number=number: progress(number, done)))
            if runs[-1].interrupted:
                break
    except KeyboardInterrupt:  # between two runs: those before are whole
        return runs
    return runs


def _run(task: Task, progress: Callable[..., None]) -> Run:
    forecaster = Forecaster.of(task.settings)
    run = replay(
        forecaster,
        task.series,
        warmup=task.warmup,
        steps=task.steps,
        method=task.method,
        progress=progress,
    )
    if run.interrupted:
        return run  # its forecaster may be in the middle of a step
    if task.save_to is not None:
        forecaster.save(task.save_to)
    if task.keep_in is not None:
        write_run(task.keep_in, run)
    return run


def _start_worker(messages: SimpleQueue[tuple[int, int]], stop: Event, parent: int) -> None:
    global _messages, _stop
    _messages, _stop = messages, stop
    signal.signal(signal.SIGINT, _interrupted)
    threading.Thread(target=_watch, args=(stop, parent), daemon=True).start()


def _interrupted(*_: object) -> None:
    """Break off the run under way, once all are to stop; Ctrl-C itself is the parent's affair."""
    global _working
    if _working and _stop is not None and _stop.is_set():
        _working = False  # not again while the run hands in what it has
        raise KeyboardInterrupt


def _watch(stop: Event, parent: int) -> None:
    """Break off the run under way when all are to stop, and end when the parent is gone."""
    while os.getppid() == parent:
        if stop.is_set():
            interrupt_main()  # a search would go on for a minute before it looked
        sleep(LOOK_EVERY)
    os._exit(1)  # there is nobody to hand anything to


def _work(number: int, task: Task) -> Run | None:
    """Return the run of a task; None of one that had not begun when all were to stop."""
    global _working
    if _messages is None or _stop is None or _stop.is_set():
        return None
    try:
        _working = True
        return _run(task, partial(_tell, _messages, _stop, number))
    except KeyboardInterrupt:  # before or after its steps
        return None
    finally:
        _working = False


def _tell(
    messages: SimpleQueue[tuple[int, int]], stop: Event, number: int, done: int, total: int
) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
    if done % MESSAGE_EVERY == 0 or done == total:
        messages.put((number, done))


def _look_on(
    futures: Sequence[Future[Run | None]],
    messages: SimpleQueue[tuple[int, int]],
    progress: Progress,
) -> None:
    """Pass on what workers tell until all are done."""
    pending = set(futures)
    while pending:
        _, pending = wait(pending, timeout=LOOK_EVERY)
        while not messages.empty():
            progress(*messages.get())
