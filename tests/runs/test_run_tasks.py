"""Tasks in this process, in several processes, and on any executor."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing import active_children
from threading import get_ident

import pytest

from streamridge import Forecaster, InvalidInputError, LocalEngine, compare
from streamridge.forecaster.tuning import Tuning
from streamridge.runs import run_tasks as run_tasks_module
from streamridge.runs.engines import terminal_signals_blocked
from streamridge.runs.run_files import read_run
from streamridge.runs.run_tasks import parse_engine, run_tasks
from streamridge.runs.tasks import TaskOutcome
from tests.support.engine_tasks import (
    assert_same_runs,
    deadly,
    failing,
    long_tasks,
    runs_of_long_tasks,
    tasks,
)
from tests.support.forecasters import DAY
from tests.support.series import series

QUICK = {"lags": 6, "train_size": 96, "warmup": 3 * DAY}
BOTH = pytest.mark.parametrize("jobs", [1, 2], ids=["here", "processes"])


def outcomes(todo, jobs=1, progress=None):
    return list(run_tasks(todo, LocalEngine(jobs), progress))


def runs(todo, jobs=1, progress=None):
    return [outcome.run for outcome in outcomes(todo, jobs, progress)]


def press(*_):
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def test_two_processes_give_the_results_of_this_process():
    told = {}

    together = runs(tasks(), 2, lambda number, done: told.update({number: done}))

    assert_same_runs(together, runs(tasks()))
    assert told == dict.fromkeys(range(3), 5 * DAY)


@BOTH
def test_a_task_that_fails_does_not_stop_the_others(jobs):
    one, two, three = tasks()

    first, failed, last = outcomes([one, failing(two), three], jobs)

    assert failed.error.startswith("at 2021-06-16T18:00:00: value must be at most 1e+12")
    assert failed.run is None
    assert_same_runs([first.run, last.run], runs([one, three]))


@BOTH
def test_ctrl_c_keeps_finished_runs_and_interrupts_the_others(jobs, tmp_path):
    todo = [
        *tasks("a", keep_in=tmp_path / "a.run", save_to=tmp_path / "a.sr"),
        *long_tasks("bcd"),
    ]
    whole = []

    def press_after_the_first(number, done):
        whole.extend([number] if done == 5 * DAY and number == 0 else [])
        if whole and number > 0:
            press()

    made = runs(todo, jobs, press_after_the_first)

    assert [run.interrupted for run in made] == [False] + [True] * (len(made) - 1)
    assert made[0].sensor == "a"
    assert {run.sensor for run in made[1:]} <= {"b", "c"}  # the last never begins
    assert read_run(tmp_path / "a.run").sensor == "a"
    assert {path.name for path in tmp_path.iterdir()} == {"a.run", "a.sr"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_the_loop_over_outcomes_loses_nothing(tmp_path):
    todo = [task for name in "abc" for task in tasks(name, keep_in=tmp_path / f"{name}.run")]
    made = []

    for outcome in run_tasks(todo, LocalEngine()):
        press()
        made.append(outcome.run)

    assert_same_runs(made, runs(todo[:1]))
    assert [path.name for path in tmp_path.iterdir()] == ["a.run"]


def test_ctrl_c_before_a_task_starts_skips_it(tmp_path):
    def kept(names):
        return [each for name in names for each in tasks(name, keep_in=tmp_path / f"{name}.run")]

    runs(kept("a"))
    made = []

    for outcome in run_tasks(kept("abc"), LocalEngine()):
        press()  # before the next task begins
        made.append(outcome.run.sensor)

    assert made == ["a"]


def test_a_second_ctrl_c_ends_at_once(monkeypatch):
    monkeypatch.setattr("streamridge.runs.run_tasks.SECOND_PRESS", 0.0)
    every = run_tasks(tasks(), LocalEngine())
    next(every)
    press()

    with pytest.raises(KeyboardInterrupt):
        press()

    every.close()


@BOTH
def test_a_complete_run_and_its_forecaster_are_stored(jobs, tmp_path):
    todo = [
        task
        for name in "ab"
        for task in tasks(name, keep_in=tmp_path / f"{name}.run", save_to=tmp_path / f"{name}.sr")
    ]

    made = runs(todo, jobs)

    assert_same_runs([read_run(task.keep_in) for task in todo], made)
    assert Forecaster.load(todo[0].save_to).predict().source == "model"


def test_a_stored_run_is_read_from_its_file(tmp_path):
    def kept(names):
        return [each for name in names for each in tasks(name, keep_in=tmp_path / f"{name}.run")]

    runs(kept("b"))
    told = set()

    made = runs(kept("abc"), progress=lambda number, done: told.add(number))

    assert [run.sensor for run in made] == ["a", "b", "c"]
    assert told == {0, 2}


def test_a_missing_forecaster_of_a_stored_run_is_saved_again(tmp_path):
    (task,) = tasks("a", keep_in=tmp_path / "a.run", save_to=tmp_path / "a.sr")
    runs([task])
    task.save_to.unlink()

    runs([task])

    assert task.save_to.exists()


def test_the_task_of_a_killed_process_is_done_by_another():
    killed = []

    def kill_once(number, done):
        if not killed:
            killed.append(active_children()[0])
            killed[0].kill()

    made = runs(long_tasks(), 2, kill_once)

    assert killed
    assert_same_runs(made, runs_of_long_tasks())


def test_a_task_that_kills_its_process_twice_fails_alone():
    one, two, three = tasks()

    first, dead, last = outcomes([one, deadly(two), three], 2)

    assert dead.error == (
        "its worker process died 2 times. Usually memory has run out: "
        "pass a smaller --jobs (jobs= in Python)."
    )
    assert_same_runs([first.run, last.run], runs([one, three]))


CHILD = """
from streamridge.runs.engines import LocalEngine
from streamridge.runs.run_tasks import run_tasks
from tests.support.engine_tasks import long_tasks

if __name__ == "__main__":
    list(run_tasks(long_tasks(), LocalEngine(2), lambda number, done: print(done, flush=True)))
"""


def test_processes_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "many.py"
    script.write_text(CHILD)
    paths = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    ) as parent:
        for steps in parent.stdout:
            if int(steps) > 0:  # a worker runs a task
                break

        parent.kill()
        parent.stdout.read()  # ends once no process holds the other end

    assert parent.returncode == -signal.SIGKILL


class Scripted(Executor):
    """Finish tasks in a given order, one whenever they are waited for, without doing them."""

    def __init__(self, order):
        self.started, self.started_before = [], {}
        self._order, self._futures = list(order), {}

    def submit(self, call):
        number = call.args[0]
        self.started.append(number)
        self._futures[number] = Future()
        return self._futures[number]

    def finish_next(self, *_):
        number = self._order.pop(0)
        self.started_before[number] = list(self.started)
        self._futures[number].set_result(TaskOutcome(number, error="not done"))


@pytest.fixture
def scripted(monkeypatch):
    """Return a function that runs tasks on two scripted workers, given the order of their ends."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def run(todo, order):
        executor = Scripted(order)
        monkeypatch.setattr(run_tasks_module, "wait", executor.finish_next)
        return [outcome.number for outcome in run_tasks(todo, executor)], executor

    return run


def test_outcomes_are_yielded_in_the_order_of_the_tasks(scripted):
    numbers, _ = scripted(tasks("abcd"), [1, 2, 0, 3])

    assert numbers == [0, 1, 2, 3]


def test_tasks_start_when_a_worker_is_free_and_not_before(scripted):
    _, executor = scripted(tasks("abcd"), range(4))

    assert [len(started) for started in executor.started_before.values()] == [2, 3, 4, 4]


def test_tasks_do_not_start_far_ahead_of_a_task_that_takes_long(scripted, monkeypatch):
    monkeypatch.setattr(run_tasks_module, "AHEAD", 1)

    numbers, executor = scripted(tasks("abcde"), [1, 2, 0, 3, 4])

    assert executor.started_before[0] == [0, 1, 2]
    assert numbers == [0, 1, 2, 3, 4]


def test_any_executor_is_an_engine():
    with ThreadPoolExecutor(2) as threads:
        table = compare([series("a", 0), series("b", 1)], "ohl", engine=threads, **QUICK)
        assert threads.submit(abs, -1).result() == 1  # it stays open

    assert_same_runs(table.runs, compare([series("a", 0), series("b", 1)], "ohl", **QUICK).runs)


def test_an_error_of_the_progress_function_is_not_a_failure_of_a_sensor():
    def fail(number, done):
        raise ZeroDivisionError

    for jobs in (1, 2):
        with pytest.raises(ZeroDivisionError):
            runs(tasks("ab"), jobs, fail)


def test_a_comparison_reports_failures(caplog):
    bad = failing(tasks("b")[0]).series

    table = compare([series("a", 0), bad], "fixed", warmup=3 * DAY, lags=6, train_size=96)

    assert [run.sensor for run in table.runs] == ["a"]
    (failure,) = table.failures
    assert (failure.sensor, failure.method) == ("b", "fixed")
    assert str(failure).startswith("b (fixed): at 2021-06-16T18:00:00: value must")
    assert str(failure) in caplog.text


@BOTH
def test_a_new_forecaster_has_the_name_of_its_series(jobs, tmp_path):
    todo = tasks("ab", save_to=tmp_path / "forecaster.sr")

    made = [Forecaster.from_bytes(outcome.forecaster) for outcome in outcomes(todo, jobs)]

    assert [forecaster.settings.sensor for forecaster in made] == ["a", "b"]


def test_ctrl_c_during_the_start_of_processes_is_delayed_and_not_lost():
    reached = []

    def press_and_go_on():
        with terminal_signals_blocked():
            signal.pthread_kill(get_ident(), signal.SIGINT)
            reached.append("the end of the block")

    with pytest.raises(KeyboardInterrupt):
        press_and_go_on()
    assert reached


def test_ctrl_c_after_the_last_step_loses_no_run(monkeypatch):
    def pressed(self):
        os.kill(os.getpid(), signal.SIGINT)
        return {}

    monkeypatch.setattr(Tuning, "active_bounds", property(pressed))  # asked for at the end only

    (outcome,) = outcomes(tasks("ab"))

    assert not outcome.run.interrupted
    assert len(outcome.run.times) > 0


def test_jobs_are_checked_with_an_engine_too():
    with pytest.raises(InvalidInputError, match="jobs must be a whole number of at least 1"):
        parse_engine(LocalEngine(1), jobs=-5)
