"""`streamridge serve` in a group of processes of its own, which can be killed whole."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
SMALL = {"port": 0, "workers": 1, "train_size": 96, "memory": "200MB", "clock": "stream"}


class Served:
    """A service as people start it; what it says is added to a file beside its database.

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

    def await_ready(self, seconds=60):
        """Wait until it serves; return whether it does, or has ended before."""
        while time.monotonic() - self.begun < seconds:
            found = re.search(r"streamridge serves (http://\S+)\n", self.words)
            if found:
                self.url = found[1]
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.02)
        raise AssertionError(f"it did not serve within {seconds} seconds: {self.words}")

    @property
    def words(self):
        """Return what this process has said."""
        with open(self.said, "rb") as said:
            said.seek(self._heard)
            return said.read().decode()

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def client(self, **options):
        return httpx.Client(base_url=self.url, **{"timeout": 60, **options})

    def kill(self):
        """End the service and its workers at once, as nothing can prevent."""
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def end(self, seconds=20):
        """Tell it to stop; return the code it exits with, and how many seconds that took."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        return code, time.monotonic() - begun

    @property
    def workers(self):
        """Return the numbers of its worker processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(each) for each in children if b"spawn_main" in command_of(each)]


def limit_memory(size):
    """Let the addresses of this process, and of those it starts, be limited."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def command_of(pid):
    """Return the command line of a process; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def memory_of(pid, name):
    """Return a figure of a process's memory, such as VmPeak, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])


def figure_of(client, name):
    """Return a figure that a service tells by /metrics."""
    told = client.get("/metrics").text
    return float(re.search(rf"^streamridge_{name} (\S+)$", told, re.MULTILINE)[1])


def await_forecasts(client, seconds=120):
    """Wait until the forecasts of all readings are stored."""
    end = time.monotonic() + seconds
    while figure_of(client, "readings_behind"):
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def begun(database, **changes):
    """Give a service that begins to serve, and is gone after the block."""
    service = Served(database, **changes)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.kill()


@contextmanager
def served(database, **changes):
    """Give a service that serves, and is gone after the block."""
    with begun(database, **changes) as service:
        assert service.await_ready(), service.words
        yield service
