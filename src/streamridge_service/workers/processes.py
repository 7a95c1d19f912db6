"""How worker processes are started.

On Linux a process of its own imports the modules of a worker once, and forks each worker. Imports
take a second of processor time, a fork takes some milliseconds, and forked workers share memory.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver, get_context, resource_tracker, util
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, SIGTERM, pthread_sigmask

# Elsewhere, libraries of the system cannot be forked safely.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# The modules of a worker, by a name that need not be imported here.
PRELOADED = "streamridge_service.workers.worker"
# Signals that end the service, which then stops its workers.
STOPPING = (SIGINT, SIGTERM)
# The longest name of a folder, in bytes, in which a socket of `multiprocessing` can be bound. The
# system allows 107 bytes, and the names below the folder have 32.
LONGEST_FOLDER = 75


def process_context() -> BaseContext:
    """Return the context of the workers: it starts them, and makes what they share."""
    context = get_context(METHOD)
    context.set_forkserver_preload([PRELOADED])
    _make_folder_of_sockets()
    return context


@cache
def _make_folder_of_sockets() -> None:
    """Make the folder of the sockets once: in /tmp, if the usual name is too long for sockets.

    For a moment it changes the folder of temporary files of the whole process.
    """
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) > LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"  # the folder made in it has a random name
    try:
        util.get_temp_dir()
    finally:
        tempfile.tempdir = usual


def prepare_start() -> None:
    """Let the modules of workers be imported from now on, while this process does other work."""
    process_context()
    if METHOD == "forkserver":
        with _blocked_signals():
            forkserver.ensure_running()


def start_process(target: Callable[..., None], *args: object) -> BaseProcess:
    """Start a process that does not outlive this one; no signal interrupts its start."""
    context = process_context()
    process: BaseProcess = context.Process(target=target, args=args, daemon=True)  # type: ignore[attr-defined]
    with _blocked_signals():
        process.start()
    return process


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block signals in processes that are started; they inherit this."""
    resource_tracker.ensure_running()  # its start would end the block
    before = pthread_sigmask(SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)
