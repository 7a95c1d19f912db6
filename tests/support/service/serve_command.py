"""`streamridge serve` in its own process group, which can be killed as a whole."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.support.paths import ROOT
from tests.support.waiting import LIMIT, wait_until

SMALL = {"port": 0, "workers": 1, "train_size": 96, "memory": "400MB", "clock": "stream"}


class Served:
    """A service started by the command; its output is appended to a file next to its database.

    Parameters
    ----------
    database
        Its file.
    most_memory
        Bytes of addresses that each of its processes may have, if there is a limit.
    changes
        Settings other than the small ones.
    """

    def __init__(self, database, *, most_memory=None, **changes):
        self.database, self.url = Path(database), ""
        self.said = self.database.with_suffix(".said")
        self._heard = self.said.stat().st_size if self.said.exists() else 0
        flags = [
            word
            for name, value in {**SMALL, **changes, "database": database}.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        with open(self.said, "ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamridge", "serve", *flags],
                cwd=ROOT,
                stdout=said,
                stderr=said,
                start_new_session=True,
                preexec_fn=None if most_memory is None else lambda: limit_memory(most_memory),
            )
        self.pid, self.begun = self.process.pid, time.monotonic()

    def await_ready(self):
        """Wait until the service serves; return False if it has ended instead."""
        wait_until(
            lambda: self._find_url() or self.process.poll() is not None,
            f"the address of the service of process {self.pid}",
        )
        return self._find_url()

    def _find_url(self):
        """Read the address in the output; return whether it is known."""
        found = re.search(r"streamridge serves (http://\S+)\n", self.words)
        self.url = found[1] if found else ""
        return bool(found)

    @property
    def words(self):
        """Return the output of this process."""
        with open(self.said, "rb") as said:
            said.seek(self._heard)
            return said.read().decode()

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def client(self, **options):
        return httpx.Client(base_url=self.url, **{"timeout": LIMIT, **options})

    def kill(self):
        """Kill the service and its workers."""
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Stop the service; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT)

    @property
    def workers(self):
        """Return the process ids of its workers."""
        return workers_of(self.pid)


def workers_of(pid):
    """Return the process ids of the workers of a service."""
    return [each for server in fork_servers(pid) for each in children_of(server)]


def fork_servers(pid):
    """Return the process id of the process that forks the workers of a service."""
    return [each for each in children_of(pid) if b"forkserver" in command_of(each)]


def children_of(pid):
    """Return the process ids of the children of a process."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            found += map(int, thread.read_text().split())
    return found


def limit_memory(size):
    """Limit the address space of this process and of its children."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def command_of(pid):
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def memory_of(pid, name):
    """Return a memory figure of a process, such as VmPeak, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])


def figure_of(client, name):
    """Return a metric of a service."""
    told = client.get("/metrics").text
    return float(re.search(rf"^streamridge_{name} (\S+)$", told, re.MULTILINE)[1])


def await_forecasts(client):
    """Wait until the forecasts of all readings are stored, while fewer and fewer are missing."""
    while behind := figure_of(client, "readings_behind"):
        wait_until(
            lambda: figure_of(client, "readings_behind") < behind,
            f"more forecasts while {behind:g} are missing",
        )


@contextmanager
def begun(database, **changes):
    """Start a service; kill it at the end of the block."""
    service = Served(database, **changes)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.kill()


@contextmanager
def served(database, **changes):
    """Run a service that is ready; kill it at the end of the block."""
    with begun(database, **changes) as service:
        assert service.await_ready(), service.words
        yield service
