"""Dask: a real scheduler and real worker processes, one cluster for all tests of this module."""

import os
import signal
import subprocess
import sys
from importlib import import_module
from multiprocessing import active_children

import pytest

from streamridge import DaskEngine, InvalidInputError, StreamRidgeError, compare, replay
from streamridge.runs.engines import LocalEngine
from streamridge.runs.run_tasks import run_tasks
from tests.support.engine_tasks import (
    assert_same_runs,
    deadly,
    failing,
    long_tasks,
    runs_of_long_tasks,
    tasks,
)
from tests.support.forecasters import DAY, small
from tests.support.series import series
from tests.support.waiting import LIMIT, wait_until

QUICK = {"lags": 6, "train_size": 96, "tune_every": 2 * DAY, "warmup": 3 * DAY}


@pytest.fixture(scope="module")
def distributed():
    """Import the package where it is tested; collecting tests would import it in every process."""
    return import_module("distributed")


@pytest.fixture(scope="module")
def cluster(distributed):
    """Return a cluster of two workers that is running already.

    A busy machine may need more than 15 seconds to replace a killed worker. After that time, the
    cluster would give it up by default.
    """
    patient = import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": LIMIT})
    local = {"processes": True, "n_workers": 2, "threads_per_worker": 1}
    with patient, distributed.LocalCluster(dashboard_address="127.0.0.1:0", **local) as two:
        yield two


@pytest.fixture
def engine(cluster):
    # A test before may have killed a worker, which is replaced.
    wait_until(lambda: len(cluster.scheduler.workers) == 2, "two workers of the cluster")
    return DaskEngine(cluster.scheduler_address)


def outcomes(todo, engine, progress=None):
    return list(run_tasks(todo, engine, progress))


def runs(todo, engine, progress=None):
    return [outcome.run for outcome in outcomes(todo, engine, progress)]


def test_dask_gives_the_results_of_this_process(engine):
    both, told = [series("a", 0), series("b", 1)], {}

    here = compare(both, "ohl,random", **QUICK)
    there = compare(
        both,
        "ohl,random",
        engine=engine,
        progress=lambda number, done: told.update({number: done}),
        **QUICK,
    )

    assert_same_runs(there.runs, here.runs)
    assert told == dict.fromkeys(range(4), 5 * DAY)


def test_a_forecaster_learns_on_a_worker_as_in_this_process(engine):
    whole = series("a", 0)
    first, rest = whole.between(None, whole.times[80]), whole.between(whole.times[81], None)
    stays, travels = small(), small()

    for part in (first, rest):
        options = {"warmup": 0 if part is rest else None}
        here = replay(stays, part, **options)
        there = replay(travels, part, engine=engine, **options)

    assert_same_runs([there], [here])
    assert travels.predict().value == stays.predict().value
    assert travels.counts == stays.counts


def test_a_failed_replay_raises_the_reason(engine):
    bad = failing(tasks("b")[0]).series

    with pytest.raises(StreamRidgeError, match=r"b \(ohl\): at .*: value must be at most 1e\+12"):
        replay(small(), bad, engine=engine)


def test_a_task_that_fails_does_not_stop_the_others(engine):
    one, two, three = tasks()

    first, failed, last = outcomes([one, failing(two), three], engine)

    assert "value must be at most 1e+12 in size" in failed.error
    assert_same_runs([first.run, last.run], runs([one, three], LocalEngine()))


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(engine, cluster, distributed):
    with distributed.Client(cluster, set_as_default=False) as client:
        pid = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill_once(number, done):
        if not killed:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    made = runs(long_tasks(), engine, kill_once)

    assert killed
    assert_same_runs(made, runs_of_long_tasks())


def test_a_task_that_kills_every_worker_fails_alone(engine, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    one, two = tasks("ab")

    first, dead = outcomes([one, deadly(two)], engine)

    assert dead.error == "its worker died 1 time"
    assert_same_runs([first.run], runs([one], LocalEngine()))


def test_ctrl_c_keeps_finished_runs_and_stops_all_work(engine, cluster, distributed, tmp_path):
    todo = [*tasks("a", keep_in=tmp_path / "a.run"), *long_tasks("bc", days=2000)]
    whole = []

    def press(number, done):
        whole.extend([number] if done == 5 * DAY and number == 0 else [])
        if whole and number > 0:
            raise KeyboardInterrupt

    made = runs(todo, engine, press)

    assert [run.sensor for run in made] == ["a"]
    with distributed.Client(cluster, set_as_default=False) as client:
        for worker in client.nthreads():  # each is free, long before its run would have ended
            assert client.submit(abs, -1, workers=worker, pure=False).result(timeout=LIMIT) == 1


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.5:8786", "scheduler.example:8786", "ws://[2001:db8::1]:8786"]
)
def test_an_open_address_beyond_this_machine_is_refused(address):
    with pytest.raises(
        InvalidInputError, match=r"scheduler must be .* tls://, got '.*certificates .*tls://"
    ):
        DaskEngine(address)


@pytest.mark.parametrize(
    "address", ["tls://10.0.0.5:8786", "tcp://127.0.0.1:8786", "localhost:1", "tcp://[::1]:8786"]
)
def test_an_address_of_this_machine_or_an_encrypted_one_is_taken(address):
    assert DaskEngine(address).address == address


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    monkeypatch.setattr("streamridge.runs.dask_engine.TIMEOUT", "0.2s")

    with pytest.raises(InvalidInputError, match="of a running Dask scheduler, got 'tcp:"):
        compare(series("a", 0), "fixed", engine=DaskEngine("tcp://127.0.0.1:9"), **QUICK)


def test_a_local_cluster_is_closed_afterwards():
    before = set(active_children())

    made = runs(tasks("a"), DaskEngine())

    assert_same_runs(made, runs(tasks("a"), LocalEngine()))
    assert set(active_children()) <= before


def test_importing_the_package_does_not_import_dask():
    program = "import sys, streamridge; print('distributed' in sys.modules, 'dask' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert said.stdout.split() == ["False", "False"]


def test_a_scheduler_without_workers_is_refused_after_a_timeout(monkeypatch, distributed):
    monkeypatch.setattr("streamridge.runs.dask_engine.TIMEOUT", "1s")
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        engine = DaskEngine(empty.scheduler_address)

        with pytest.raises(InvalidInputError, match=r"must have a worker, got none for 1s\. Start"):
            compare(series("a", 0), "fixed", engine=engine, **QUICK)
