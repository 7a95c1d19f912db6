"""Engines of this machine: this process, and several."""

import os
import signal
import subprocess
import sys
from multiprocessing import active_children

import pytest

from streamridge import Forecaster, LocalEngine, compare
from streamridge.runs.carrying import carry_out, started_for
from streamridge.runs.engines.work import Outcome, content_of, forecaster_of
from streamridge.runs.run_files import read_run
from tests.forecaster.test_forecaster import DAY, small
from tests.runs.test_replay import series
from tests.runs.toys import assert_same_runs, deadly, failing, long_tasks, runs_of_long_tasks, tasks

BOTH = pytest.mark.parametrize("jobs", [1, 2], ids=["here", "processes"])


def nothing(number, done):
    """Take no notice of progress."""


def outcomes(todo, jobs=1, progress=nothing):
    with started_for(todo, LocalEngine(jobs)) as workers:
        return list(carry_out(todo, workers, progress))


def runs(todo, jobs=1, progress=nothing):
    return [outcome.run for outcome in outcomes(todo, jobs, progress)]


def press(*_):
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def test_processes_give_the_results_of_one():
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
def test_ctrl_c_ends_with_what_there_is(jobs, tmp_path):
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


def test_ctrl_c_while_a_run_is_handed_on_loses_nothing(tmp_path):
    todo = [task for name in "abc" for task in tasks(name, keep_in=tmp_path / f"{name}.run")]
    made = []

    with started_for(todo, LocalEngine()) as workers:
        for outcome in carry_out(todo, workers, nothing):
            press()
            made.append(outcome.run)

    assert_same_runs(made, runs(todo[:1]))
    assert [path.name for path in tmp_path.iterdir()] == ["a.run"]


def test_ctrl_c_before_a_task_begins_leaves_it_out(tmp_path):
    def kept(names):
        return [each for name in names for each in tasks(name, keep_in=tmp_path / f"{name}.run")]

    runs(kept("a"))
    made = []

    with started_for(kept("abc"), LocalEngine()) as workers:
        for outcome in carry_out(kept("abc"), workers, nothing):
            press()  # while the next is ready to begin
            made.append(outcome.run.sensor)

    assert made == ["a"]


def test_a_second_ctrl_c_ends_at_once(monkeypatch):
    monkeypatch.setattr("streamridge.runs.interrupts.SECOND_PRESS", 0.0)

    with started_for(tasks(), LocalEngine()) as workers:
        every = carry_out(tasks(), workers, nothing)
        next(every)
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
        every.close()


@BOTH
def test_a_run_is_kept_and_its_forecaster_saved_once_it_is_whole(jobs, tmp_path):
    todo = [
        task
        for name in "ab"
        for task in tasks(name, keep_in=tmp_path / f"{name}.run", save_to=tmp_path / f"{name}.sr")
    ]

    made = runs(todo, jobs)

    assert_same_runs([read_run(task.keep_in) for task in todo], made)
    assert Forecaster.load(todo[0].save_to).predict().source == "model"


def test_what_is_done_already_is_read_from_its_file(tmp_path):
    def kept(names):
        return [each for name in names for each in tasks(name, keep_in=tmp_path / f"{name}.run")]

    runs(kept("b"))
    told = set()

    made = runs(kept("abc"), progress=lambda number, done: told.add(number))

    assert [run.sensor for run in made] == ["a", "b", "c"]
    assert told == {0, 2}


def test_a_kept_run_whose_forecaster_is_missing_is_made_again(tmp_path):
    (task,) = tasks("a", keep_in=tmp_path / "a.run", save_to=tmp_path / "a.sr")
    runs([task])
    task.save_to.unlink()

    runs([task])

    assert task.save_to.exists()


def test_the_job_of_a_process_that_is_killed_is_done_by_another():
    killed = []

    def kill_once(number, done):
        if not killed:
            killed.append(active_children()[0])
            killed[0].kill()

    made = runs(long_tasks(), 2, kill_once)

    assert killed
    assert_same_runs(made, runs_of_long_tasks())


def test_a_job_that_kills_every_process_fails_and_the_others_do_not(monkeypatch):
    monkeypatch.setattr("streamridge.runs.engines.processes.ATTEMPTS", 2)
    one, two, three = tasks()

    first, dead, last = outcomes([one, deadly(two), three], 2)

    assert dead.error.startswith("its process died 2 times, at last by SIGKILL, as when memory")
    assert_same_runs([first.run, last.run], runs([one, three]))


CHILD = """
from streamridge.runs.carrying import carry_out
from streamridge.runs.engines.local import LocalEngine
from tests.runs.toys import long_tasks

if __name__ == "__main__":
    with LocalEngine(2).started(2) as workers:
        list(carry_out(long_tasks(), workers, lambda number, done: print(number, flush=True)))
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
        assert parent.stdout.readline()  # a worker is at work

        parent.kill()
        parent.stdout.read()  # ends once no process holds the other end

    assert parent.returncode == -signal.SIGKILL


class Scripted:
    """Workers that finish jobs in the order they are told to, without doing them."""

    def __init__(self, room, order):
        self.width = self.room = room
        self.taken, self.taken_before, self._order = [], {}, list(order)

    def take(self, number, job):
        self.taken.append(number)

    def finished(self, tell):
        number = self._order.pop(0)
        self.taken_before[number] = list(self.taken)
        return [Outcome(number, error="never done")]

    def stop(self):
        """Take no notice."""


def test_outcomes_are_handed_on_in_the_order_of_the_tasks():
    todo = tasks("abcd")
    workers = Scripted(4, [2, 0, 3, 1])

    assert [each.number for each in carry_out(todo, workers, nothing)] == [0, 1, 2, 3]


def test_tasks_are_started_when_there_is_room_and_not_before():
    workers = Scripted(2, range(4))

    list(carry_out(tasks("abcd"), workers, nothing))

    assert [len(taken) for taken in workers.taken_before.values()] == [2, 3, 4, 4]


def test_work_does_not_run_far_ahead_of_a_task_that_takes_long(monkeypatch):
    monkeypatch.setattr("streamridge.runs.carrying.AHEAD", 1)
    workers = Scripted(2, [1, 2, 0, 3, 4])

    numbers = [outcome.number for outcome in carry_out(tasks("abcde"), workers, nothing)]

    assert workers.taken_before[0] == [0, 1, 2]
    assert numbers == [0, 1, 2, 3, 4]


def test_a_series_that_cannot_be_loaded_any_more_is_a_failure():
    def gone():
        raise OSError("the file is gone")

    one, two = tasks("ab")
    lost = two.source.__class__(two.source.sensor, two.source.step, len(two.source), "", gone)

    _, failed = outcomes([one, two.__class__(lost, two.settings, "ohl")])

    assert failed.error == "OSError: the file is gone"


def test_a_comparison_says_what_failed(caplog):
    bad = failing(tasks("b")[0]).source.load()

    table = compare([series("a", 0), bad], "fixed", warmup=3 * DAY, lags=6, train_size=96)

    assert [run.sensor for run in table.runs] == ["a"]
    (failure,) = table.failures
    assert (failure.sensor, failure.method) == ("b", "fixed")
    assert str(failure).startswith("b (fixed): at 2021-06-16T18:00:00: value must")
    assert str(failure) in caplog.text


def test_a_forecaster_comes_back_from_its_content():
    forecaster = small()
    forecaster.observe("2021-06-13T00:00", 7.0)

    assert forecaster_of(content_of(forecaster)).predict().value == forecaster.predict().value


@BOTH
def test_a_new_forecaster_has_the_name_of_its_series(jobs, tmp_path):
    todo = tasks("ab", save_to=tmp_path / "forecaster.sr")

    made = [forecaster_of(outcome.checkpoint) for outcome in outcomes(todo, jobs)]

    assert [forecaster.settings.sensor for forecaster in made] == ["a", "b"]
