"""A worker writes nothing but lines of JSON, even when it fails."""

import json
import os
import signal
import subprocess
import sys

from tests.support.service.live_server import process
from tests.support.service.serve_command import workers_of
from tests.support.waiting import LIMIT, wait_until

FAILING = """
from multiprocessing import Array, Pipe
from streamridge_service.plan import MINUTE, Plan
from streamridge_service.workers.worker import WorkerConfig, run_worker

config = WorkerConfig("missing.db", Plan(step=15 * MINUTE), [], done=0, memory=10**8)
run_worker(Pipe()[0], config, Array("q", 4, lock=False))
"""


def test_a_failure_is_one_line_of_json(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FAILING], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )

    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert "missing.db" in json.loads(line)["exception"]


def test_a_signal_to_all_processes_stops_them_quietly(tmp_path):
    """Ctrl-C goes to the workers as well, even while they start."""
    with process(tmp_path / "a.db", workers=2) as served:
        wait_until(lambda: len(workers_of(served.pid)) >= 2, "the workers")
        for each in workers_of(served.pid):
            os.kill(each, signal.SIGINT)
        code, log = served.end(signal.SIGINT)

    assert code == 0
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["serving", "stopping"]
