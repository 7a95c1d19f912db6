"""Running `batches` under strace, which lets chosen calls of the system fail or kill."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.support.ledger import driver

STRACE = shutil.which("strace")
KILLED = -signal.SIGKILL

needs_strace = pytest.mark.skipif(
    STRACE is None, reason="NO STRACE: kills at every write are NOT tested here; install strace"
)


def run_traced(path, when, *expressions):
    """Run `batches` with expressions of strace; return what it acknowledged, and its status."""
    path.parent.mkdir()
    options = [word for expression in expressions for word in ("-e", expression)]
    command = [sys.executable, driver.__file__, "batches", str(path), when]
    done = subprocess.run(
        [STRACE, "-f", "-qq", "-o", f"{path}.trace", *options, *command],
        capture_output=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    return [int(line) for line in done.stdout.split()], done.returncode
