"""Engines: the executors that run tasks, in this process, in several, or anywhere else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from streamridge.arrays import require_count

# Takes a function to call after each step, as `progress=`.
Call = Callable[..., Any]
# Signals that a terminal sends to all of its processes: Ctrl-C, and the end of the terminal.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)


class Workers:
    """An executor and its number of workers; this class serves any executor."""

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self._count = executor, count

    @property
    def room(self) -> int:
        """Return the number of tasks that can be submitted before one has finished."""
        return self._count

    def submit(self, number: int, call: Call) -> Future[Any]:
        """Submit the call of a task, which has a number, and return its future."""
        return self.executor.submit(call)

    def steps_done(self, number: int) -> int:
        """Return the number of steps that a running task has done; 0 if it is not known."""
        return 0

    def stop(self, futures: Iterable[Future[Any]]) -> None:
        """Cancel tasks; a running task of an unknown executor finishes."""
        for future in futures:
            future.cancel()

    def restart(self) -> bool:
        """Replace a broken executor; return False if that is not possible."""
        return False


class Engine(Protocol):
    """A way to start workers."""

    def workers(self, tasks: int) -> AbstractContextManager[Workers]:
        """Give workers for some tasks; they are closed afterwards."""


def started_workers(engine: Engine | Executor, tasks: int) -> AbstractContextManager[Workers]:
    """Return workers for some tasks. An executor of the caller stays open afterwards."""
    if isinstance(engine, Executor):
        return nullcontext(Workers(engine, os.cpu_count() or 1))
    return engine.workers(tasks)


@dataclass(frozen=True)
class LocalEngine:
    """Processes of this machine. One job runs in the calling process itself."""

    jobs: int = 1  # the number of processes

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)

    @contextmanager
    def workers(self, tasks: int) -> Iterator[Workers]:
        """Give worker processes for some tasks; they are closed afterwards."""
        processes = ProcessWorkers(min(self.jobs, tasks), tasks)
        try:
            yield processes
        finally:
            processes.stop(())
            processes.executor.shutdown(cancel_futures=True)


class ProcessWorkers(Workers):
    """A `ProcessPoolExecutor` whose workers report progress and can be interrupted."""

    def __init__(self, jobs: int, tasks: int) -> None:
        # A stop flag, and the steps done of each task. These numbers have no lock: a worker that is
        # killed cannot leave one behind.
        self._shared = get_context("spawn").RawArray("q", 1 + tasks)
        super().__init__(_new_pool(jobs, self._shared), jobs)

    def submit(self, number: int, call: Call) -> Future[Any]:
        """Submit the call of a task; this may start a process."""
        self._shared[1 + number] = 0
        with terminal_signals_blocked():
            return self.executor.submit(_call_in_worker, number, call)

    def steps_done(self, number: int) -> int:
        """Return the number of steps that a running task has done."""
        return int(self._shared[1 + number])

    def stop(self, futures: Iterable[Future[Any]]) -> None:
        """Interrupt all tasks at their next step; they return their results so far."""
        self._shared[0] = True

    def restart(self) -> bool:
        """Start a new pool after a worker has died, which breaks its pool."""
        self.executor.shutdown()
        self.executor = _new_pool(self._count, self._shared)
        return True


def _new_pool(jobs: int, shared: Any) -> Executor:
    # "spawn": a forked copy of a process with threads, as BLAS has, can deadlock.
    with terminal_signals_blocked():
        return ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(shared,)
        )


@contextmanager
def terminal_signals_blocked() -> Iterator[None]:
    """Block signals of the terminal in this thread and in the processes that it starts meanwhile.

    The parent stops its workers. A terminal sends these signals to all of its processes.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
    # Its process must outlive SIGHUP too. To start it unblocks SIGINT here.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The numbers shared with the parent, in a worker process.
_shared: Any = None


def _start_worker(shared: Any) -> None:
    """Prepare a worker process: one BLAS thread, no Ctrl-C while idle, and an end with its parent.

    A process starts with blocked signals, so that Ctrl-C in a terminal cannot hit its imports.
    """
    global _shared
    _shared = shared
    threadpool_limits(1)
    for each in TERMINAL_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINAL_SIGNALS)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call_in_worker(number: int, call: Call) -> Any:
    """Return the result of a call; Ctrl-C or the stop flag raise KeyboardInterrupt in it, once."""

    def progress(done: int, total: int) -> None:
        _shared[1 + number] = done
        if done == total:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # too late to interrupt
        elif _shared[0]:
            _interrupt()

    signal.signal(signal.SIGINT, _interrupt)
    try:
        return call(progress=progress)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
