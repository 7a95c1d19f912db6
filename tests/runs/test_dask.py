"""Dask: a real scheduler and real worker processes, one cluster for all tests of this module."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import active_children

import distributed
import pytest

from streamridge import DaskEngine, InvalidInputError, StreamRidgeError, compare, replay
from streamridge.runs.carrying import carry_out, started_for
from streamridge.runs.engines.local import LocalEngine
from tests.forecaster.test_forecaster import DAY, small
from tests.runs.test_replay import series
from tests.runs.toys import assert_same_runs, deadly, failing, long_tasks, runs_of_long_tasks, tasks

QUICK = {"lags": 6, "train_size": 96, "tune_every": 2 * DAY, "warmup": 3 * DAY}


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of two workers that is running already."""
    with distributed.LocalCluster(
        processes=True, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as two:
        yield two


@pytest.fixture
def engine(cluster):
    return DaskEngine(cluster.scheduler_address)


def outcomes(todo, engine, progress=lambda number, done: None):
    with started_for(todo, engine) as workers:
        return list(carry_out(todo, workers, progress))


def runs(todo, engine, progress=lambda number, done: None):
    return [outcome.run for outcome in outcomes(todo, engine, progress)]


def test_the_numbers_are_those_of_this_process(engine):
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


def test_a_forecaster_that_is_sent_comes_back_moved_along(engine):
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


def test_a_replay_that_fails_says_why(engine):
    bad = failing(tasks("b")[0]).source.load()

    with pytest.raises(StreamRidgeError, match=r"b \(ohl\): at .*: value must be at most 1e\+12"):
        replay(small(), bad, engine=engine)


def test_a_task_that_fails_does_not_stop_the_others(engine):
    one, two, three = tasks()

    first, failed, last = outcomes([one, failing(two), three], engine)

    assert "value must be at most 1e+12 in size" in failed.error
    assert_same_runs([first.run, last.run], runs([one, three], LocalEngine()))


def test_series_are_loaded_when_a_worker_is_about_to_need_them(engine):
    loaded = []

    def counted(task):
        return replace(task.source, load=lambda: loaded.append(task) or task.source.load())

    todo = [replace(task, source=counted(task)) for task in tasks("abcdefghijkl")]
    with started_for(todo, engine) as workers:
        room = workers.room
        next(carry_out(todo, workers, lambda number, done: None))

    assert room == 4
    assert len(loaded) < len(todo)


def test_a_killed_worker_changes_nothing(engine, cluster):
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


def test_a_job_that_kills_every_worker_fails_and_the_others_do_not(engine, cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    one, two = tasks("ab")

    first, dead = outcomes([one, deadly(two)], engine)

    assert dead.error == "its worker died 1 times"
    assert_same_runs([first.run], runs([one], LocalEngine()))


def test_ctrl_c_leaves_what_is_finished_and_no_work_behind(engine, cluster, tmp_path):
    todo = [*tasks("a", keep_in=tmp_path / "a.run"), *long_tasks("bc", days=200)]
    whole = []

    def press(number, done):
        whole.extend([number] if done == 5 * DAY and number == 0 else [])
        if whole and number > 0:
            raise KeyboardInterrupt

    made = runs(todo, engine, press)

    assert [run.sensor for run in made] == ["a"]
    with distributed.Client(cluster, set_as_default=False) as client:
        for worker in client.nthreads():  # each is free, long before its run would have ended
            assert client.submit(abs, -1, workers=worker, pure=False).result(timeout=10) == 1


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


def test_an_address_where_nobody_answers_is_refused(monkeypatch):
    monkeypatch.setattr("streamridge.runs.engines.dask.PATIENCE", "0.2s")

    with pytest.raises(InvalidInputError, match="of a Dask scheduler that is running, got 'tcp:"):
        compare(series("a", 0), "fixed", engine=DaskEngine("tcp://127.0.0.1:9"), **QUICK)


def test_a_cluster_of_ones_own_is_gone_afterwards():
    before = set(active_children())

    made = runs(tasks("a"), DaskEngine())

    assert_same_runs(made, runs(tasks("a"), LocalEngine()))
    assert set(active_children()) <= before


def test_importing_the_package_does_not_import_dask():
    program = "import sys, streamridge; print('distributed' in sys.modules, 'dask' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert said.stdout.split() == ["False", "False"]


def test_a_scheduler_without_a_worker_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("streamridge.runs.engines.dask.PATIENCE", "1s")
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        engine = DaskEngine(empty.scheduler_address)

        with pytest.raises(InvalidInputError, match=r"must have a worker, got none for 1s\. Start"):
            compare(series("a", 0), "fixed", engine=engine, **QUICK)
