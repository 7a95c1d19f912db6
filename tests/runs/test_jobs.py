import os
import subprocess
import sys
from time import monotonic, sleep

import pytest

CHILD = """
import numpy as np
from streamridge import Forecaster
from streamridge.experiments.traffic.study import FULL, simulated_series
from streamridge.runs.jobs import Task, run_all

if __name__ == "__main__":
    series = simulated_series(FULL, 0)[:2]
    tasks = [Task(each, Forecaster("15min").settings, "ohl") for each in series]
    run_all(tasks, jobs=2, progress=lambda number, done: print(number, flush=True))
"""


def children_of(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(each) for each in found.stdout.split()]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "many.py"
    script.write_text(CHILD)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline()  # a worker is at work
        workers = children_of(parent.pid)
        assert len(workers) >= 2

        parent.kill()

    deadline = monotonic() + 30
    while any(map(is_running, workers)) and monotonic() < deadline:
        sleep(0.2)
    assert not any(map(is_running, workers))
