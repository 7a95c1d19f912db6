"""Memory of the machine and of processes, as measured, and the memory that a service needs."""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from streamridge_service.plan import Plan

# The share of the machine's memory that a service may use by default. The rest is for the cache of
# the file system, and for other programs.
DEFAULT_SHARE = 0.5
# The file with the memory limit of a control group, by the folder of its version.
GROUP_LIMITS = {"": "memory.max", "memory": "memory.limit_in_bytes"}
# Bytes that the server and each worker hold without sensors. A worker has memory for a refit, too.
SERVER_BYTES, WORKER_BYTES = 150_000_000, 120_000_000
# Bytes of a refit: of the default model per pair of rows, and of models with landmarks per row.
REFIT_PAIR_BYTES, REFIT_ROW_BYTES = 25, 17_000

PAGE = os.sysconf("SC_PAGE_SIZE")
# The function of the GNU C library that returns free memory; other libraries have none.
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)


def default_memory(root: Path = Path("/")) -> str:
    """Return the default of `--memory`, such as "8000MB"."""
    return f"{int(DEFAULT_SHARE * machine_bytes(root)) // 1_000_000}MB"


def machine_bytes(root: Path = Path("/")) -> int:
    """Return the memory that this process can use: the machine's, or its container's if smaller.

    `root` is the folder with `proc` and `sys`.
    """
    physical = PAGE * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, StopIteration, IndexError, ValueError):
        lines = (root / "proc/meminfo").read_text().splitlines()
        total = next(line for line in lines if line.startswith("MemTotal:"))
        physical = 1024 * int(total.split()[1])
    return min([physical, *_group_limits(root)])


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the memory limits of the control groups of this process, and of groups around them."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers not in GROUP_LIMITS:
            continue
        top = root / "sys/fs/cgroup" / controllers
        path = PurePosixPath(group.lstrip("/"))
        for each in (path, *path.parents):
            with suppress(OSError, ValueError):  # "max" is no limit
                yield int((top / each / GROUP_LIMITS[controllers]).read_text())


def refit_bytes(plan: Plan) -> int:
    """Return about how much memory refits take in a worker, which keeps it for the next ones."""
    rows = plan.train_size
    return REFIT_PAIR_BYTES * rows**2 if plan.model == "default" else REFIT_ROW_BYTES * rows


def fixed_bytes(plan: Plan, workers: int) -> int:
    """Return about how much memory a service needs without sensors."""
    return SERVER_BYTES + workers * (WORKER_BYTES + refit_bytes(plan))


def resident_bytes(pid: int | None = None) -> int:
    """Return the memory that a process holds, by default this one; 0 if it has ended.

    Without `/proc`, the largest memory that this process has held is returned.
    """
    try:
        pages = Path(f"/proc/{pid or 'self'}/statm").read_bytes().split()[1]
    except OSError:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return own if pid in (None, os.getpid()) and not Path("/proc/self").exists() else 0
    return int(pages) * PAGE


def proportional_bytes(pid: int) -> int:
    """Return the memory that a process holds, with its part of memory that processes share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return resident_bytes(pid)
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(b"Pss:"))


def family_bytes(without: Collection[int | None] = ()) -> int:
    """Return the memory that this process and its children hold, without some of them.

    A child from which workers are forked shares most of its memory with them.
    """
    children: list[str] = []
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            children += thread.read_text().split()
    counted = {int(pid) for pid in children}.difference(without)
    return resident_bytes() + sum(map(proportional_bytes, counted))


def return_free_memory() -> None:
    """Give memory that this process has freed back to the operating system, where this is known.

    The allocator of the C library keeps freed memory for later; then `resident_bytes` stays high.
    """
    if TRIM is not None:
        TRIM(0)
