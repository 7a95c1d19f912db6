import gc
import os
import shutil
import signal
import sys
import tempfile
from functools import cache

import httpx
import numpy as np
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from streamridge.cli.main import app
from streamridge.runs import engines
from streamridge_service.workers.processes import process_context
from tests.support.figures import save_blank
from tests.support.samples import HOURLY_TIMES

# A shell lets its background jobs ignore Ctrl-C; tests of Ctrl-C are about jobs that do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules and tests stay: the garbage collector need not look at them again and again.
gc.disable()

# Tests start many processes, which would compile everything again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A sync takes no time in memory, and a killed process leaves there what it leaves on a disk.
MEMORY, LEAST_FREE = "/dev/shm", 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= LEAST_FREE:
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

# For each call of a command, Typer and its test client would build all commands.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)
# Each client of httpx would load the certificates of all authorities: 28 ms, also for http.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)

# A busy machine is no counterexample. The quick suite tries the same few examples in every run; the
# whole suite looks for new ones.
BUSY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", derandomize=True, database=None, max_examples=24, **BUSY)
settings.register_profile("all", **BUSY)

# Results repeat to the last bit on one thread only, and the workers share few cores.
threadpool_limits(1)


# Nothing in there is a test or an example.
collect_ignore = ["support"]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for examples in the library only: the tests have none, and to look takes a second."""
    return [each for each in (yield) if type(each) is pytest.Module]


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()


def pytest_configure(config):
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "all")


@pytest.fixture(scope="session", autouse=True)
def _quick_processes():
    """Start processes of engines as the service starts its workers: forked, without imports."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engines, "get_context", lambda method: process_context())
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20180715)


@pytest.fixture
def actual(rng):
    """Return a value for each of the hourly times, with gaps."""
    values = 100 + rng.normal(0, 10, len(HOURLY_TIMES))
    values[[3, 30, 31, 32, 34]] = np.nan
    return values


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Return a function that runs the command in an empty folder, with its output in a pipe."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # output is as wide as it needs to be
    return lambda *arguments, **more: typer.testing.CliRunner().invoke(app, list(arguments), **more)


@pytest.fixture
def quick_figures(monkeypatch):
    """Write blank pictures."""
    monkeypatch.setattr(Figure, "savefig", save_blank)
