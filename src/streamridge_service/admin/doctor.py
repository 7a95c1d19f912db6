"""Checks of a machine and a database, and an estimate of how many sensors it can serve."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path
from time import thread_time, time_ns
from typing import Literal

import apsw
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import streamridge as sr
from streamridge.errors import StreamRidgeError, counted
from streamridge_service.ledger.acknowledged import AcknowledgedFile
from streamridge_service.ledger.opening import is_postgres, open_ledger, sqlite_path
from streamridge_service.ledger.sqlite_connection import is_safe
from streamridge_service.memory import fixed_bytes, machine_bytes
from streamridge_service.plan import SECOND, Declaration, Plan
from streamridge_service.service.answers import iso
from streamridge_service.settings import ServiceSettings, bytes_of, usable_cores

# The highest load of the processors.
BUSY = 0.6
# Steps that are timed after the first fit.
TIMED_STEPS = 50
# Bytes of a sensor between its steps: per row of its training set and horizon, and a constant.
REST_ROW_BYTES, SENSOR_BYTES = 32, 45_000
# Open files that a service with many clients needs.
OPEN_FILES = 1024

Level = Literal["fine", "note", "wrong"]


@dataclass(frozen=True)
class Finding:
    """The result of one check: "fine", "note" or "wrong", and a text."""

    about: str
    level: Level
    words: str


def findings(settings: ServiceSettings, *, measure: bool = True) -> Iterator[Finding]:
    """Yield the results of all checks."""
    checks: list[Callable[[ServiceSettings], Finding]] = [
        versions,
        sqlite,
        linear_algebra,
        folder,
        disk,
        memory,
        open_files,
        storage,
        clock,
        port,
    ]
    for check in checks:
        yield check(settings)
    if measure:
        yield capacity(settings)


def versions(_: ServiceSettings) -> Finding:
    """Return the versions."""
    words = (
        f"streamridge {sr.__version__}, Python {platform.python_version()}, {platform.platform()}"
    )
    return Finding("versions", "fine", words)


def sqlite(_: ServiceSettings) -> Finding:
    """Return whether this version of SQLite is safe."""
    version = apsw.sqlite_lib_version()
    if is_safe(version):
        return Finding("SQLite", "fine", version)
    return Finding("SQLite", "wrong", f"{version} can damage a database. Install a current apsw.")


def linear_algebra(_: ServiceSettings) -> Finding:
    """Return the library for linear algebra, which runs on one thread in each process."""
    found = {
        f"{each['internal_api']} {each.get('version') or ''}".strip()
        for each in threadpool_info()
        if each.get("user_api") == "blas"
    }
    words = f"{', '.join(sorted(found)) or 'none found'}; one thread in each process"
    return Finding("linear algebra", "fine" if found else "note", words)


def folder(settings: ServiceSettings) -> Finding:
    """Return whether the database can be written, and whether others can read it."""
    if is_postgres(settings.database):
        return Finding("permissions", "fine", "the database server decides")
    path = sqlite_path(settings.database).absolute()
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return Finding("permissions", "wrong", f"{path.parent} cannot be written to.")
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return Finding("permissions", "wrong", f"{path} cannot be read and written.")
    if path.exists() and path.stat().st_mode & 0o077:
        return Finding("permissions", "note", f"others can read {path}. Run: chmod 600 {path}")
    return Finding("permissions", "fine", f"{path.parent} can be written to")


def disk(settings: ServiceSettings) -> Finding:
    """Return the free disk space."""
    if is_postgres(settings.database):
        return Finding("disk", "note", "unknown for a database server")
    free = shutil.disk_usage(sqlite_path(settings.database).absolute().parent).free
    words = f"{free / 1e9:.1f} GB free, of which {settings.min_free} stay free"
    return Finding("disk", "fine" if free > 2 * bytes_of(settings.min_free) else "wrong", words)


def memory(settings: ServiceSettings) -> Finding:
    """Return whether the machine has the memory that the service may use, and if it is enough."""
    there, limit = machine_bytes(), bytes_of(settings.memory)
    least = fixed_bytes(settings.plan, settings.workers)
    words = f"{there / 1e9:.1f} GB, of which the service may use {settings.memory}"
    if limit > 0.8 * there:
        return Finding("memory", "wrong", f"{words}. Pass a smaller --memory.")
    if limit < least:
        needed = f"{least / 1e6:.0f} MB without sensors"
        advice = "Pass a larger --memory or fewer --workers."
        return Finding("memory", "wrong", f"{words}; it needs about {needed}. {advice}")
    return Finding("memory", "fine", words)


def open_files(_: ServiceSettings) -> Finding:
    """Return the limit of open files and connections."""
    most, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = f"{most} at most"
    if most < OPEN_FILES:
        return Finding("open files", "note", f"{words}; {OPEN_FILES} are better: ulimit -n 4096")
    return Finding("open files", "fine", words)


def storage(settings: ServiceSettings) -> Finding:
    """Return the content of the database, and whether this version can read it."""
    database = settings.database
    if not is_postgres(database) and not sqlite_path(database).exists():
        return _missing_storage(sqlite_path(database))
    try:
        with open_ledger(database, read_only=True) as ledger:
            facts, sensors = ledger.facts(), len(ledger.sensors())
    except StreamRidgeError as error:
        return Finding("storage", "wrong", error.reason)
    words = (
        f"format {facts['format']}, written by {facts['version']}, {counted(sensors, 'sensor')}, "
        f"{counted(int(facts['last']), 'arrival')}"
    )
    return Finding("storage", "fine", words)


def _missing_storage(path: Path) -> Finding:
    """Return whether a file may be missing: nothing in it was acknowledged."""
    try:
        AcknowledgedFile.of(path.resolve()).require_stored(str(path), dict)
    except StreamRidgeError as error:
        return Finding("storage", "wrong", error.reason)
    return Finding("storage", "fine", "does not exist yet; serve creates it")


def clock(settings: ServiceSettings) -> Finding:
    """Return whether the clock is plausible: not before the last received reading."""
    now, last = time_ns() // 1000, 0
    try:
        if is_postgres(settings.database) or sqlite_path(settings.database).exists():
            with open_ledger(settings.database, read_only=True) as ledger:
                recent = ledger.readings_after(max(ledger.last_seq() - 1000, 0))
                last = max((entry.received for entry in recent), default=0)
    except StreamRidgeError:
        pass  # the check of the database reports it
    if now < last:
        words = f"{iso(now)} is before the last received reading, {iso(last)}. Correct the clock."
        return Finding("clock", "wrong", words)
    return Finding("clock", "fine", str(iso(now // SECOND * SECOND)))


def port(settings: ServiceSettings) -> Finding:
    """Return whether the port is free."""
    where = f"{settings.host}, port {settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        words = f"{where}: {error.strerror}. A service may already run there."
        return Finding("port", "note", words)
    return Finding("port", "fine", f"{where} is free")


def capacity(settings: ServiceSettings) -> Finding:
    """Return how many sensors the machine can serve, from a short measurement."""
    plan = settings.plan
    cost = measured(plan)
    processes = min(settings.workers, usable_cores())
    seconds = cost.step + cost.refit / cost.every
    by_time = int(BUSY * processes * plan.step / SECOND / seconds)
    each = SENSOR_BYTES + REST_ROW_BYTES * plan.train_size * plan.horizon
    by_memory = max(bytes_of(settings.memory) - fixed_bytes(plan, settings.workers), 0) // each
    limit = "the processors" if by_time < by_memory else "--memory"
    words = (
        f"about {_rounded(min(by_time, by_memory)):,} sensors, limited by {limit}: a step takes "
        f"{1000 * cost.step:.1f} ms, and a refit {cost.refit:.2f} s every {cost.every} steps"
    )
    return Finding("capacity", "fine", words)


@dataclass(frozen=True)
class Cost:
    """Seconds of a step and of a refit, and the number of steps between refits."""

    step: float
    refit: float
    every: int


def measured(plan: Plan) -> Cost:
    """Return the cost of one sensor on this machine."""
    settings = plan.settings(Declaration())
    step = timedelta(microseconds=plan.step)
    count = max(settings.warmup, plan.train_size) + settings.update_every
    times = np.datetime64("2026-01-05", "us") + np.arange(count) * np.timedelta64(step)
    flows = _flows(count)
    series = sr.series_from_arrays(times, flows, step=step)
    with threadpool_limits(1):
        forecaster, workspace = sr.Forecaster.from_settings(settings, series), sr.Workspace()
        forecaster.refit(workspace)
        after = times[-1] + np.timedelta64(step) * np.arange(1, TIMED_STEPS + 1)
        begun = thread_time()
        for time, value in zip(after.tolist(), flows[:TIMED_STEPS].tolist(), strict=False):
            forecaster.workspace = None  # of many sensors, most have no rows in memory
            forecaster.predict()
            forecaster.observe(time.replace(tzinfo=UTC), value)
        stepped = thread_time()
        forecaster.refit(workspace)
        ended = thread_time()
    return Cost(
        (stepped - begun) / len(flows[:TIMED_STEPS]), ended - stepped, settings.update_every
    )


def _flows(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the counts of a simulated detector."""
    days = count // 96 + 1
    roads = sr.datasets.simulate_roads(np.random.default_rng(0), detectors=1, days=days)
    return roads.flows[:count, 0]


def _rounded(number: int) -> int:
    """Return a number rounded down to two significant digits.

    Examples
    --------
    >>> _rounded(31_774)
    31000
    """
    unit = 10 ** max(len(str(number)) - 2, 0)
    return number // unit * unit
