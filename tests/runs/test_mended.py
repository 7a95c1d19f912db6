"""Ways in which runs could be mistaken, lost or misreported, each of which once happened."""

import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, compare, replay
from streamridge.files.atomic import replacing
from streamridge.runs.carrying import carry_out, parse_engine
from streamridge.runs.engines.local import LocalEngine
from streamridge.runs.interrupts import deaf_to_interrupts
from streamridge.runs.keeping import kept_tasks
from tests.forecaster.test_forecaster import DAY, daily, small
from tests.runs.test_replay import frame, series
from tests.runs.toys import tasks

QUICK = {"lags": 6, "train_size": 96, "warmup": 3 * DAY}


def carried_out(every):
    with LocalEngine().started(len(every)) as workers:
        return list(carry_out(every, workers, lambda number, done: None))


def test_two_series_of_one_name_are_refused_before_any_run_is_kept(tmp_path):
    twins = [series("a", 0), series("a", 1)]

    with pytest.raises(InvalidInputError, match="distinct names, got 'a' more than once"):
        compare(twins, "fixed", keep=tmp_path, **QUICK)

    assert not list(tmp_path.iterdir())


def test_a_kept_run_saves_its_own_forecaster_over_that_of_another(tmp_path):
    (task,) = tasks("a", save_to=tmp_path / "a.sr")
    (kept,) = kept_tasks(tmp_path / "kept", [task])
    carried_out([kept])
    wanted = (tmp_path / "a.sr").read_bytes()
    small(train_size=99).save(tmp_path / "a.sr")  # of another run, under the same name

    carried_out([kept])

    assert (tmp_path / "a.sr").read_bytes() == wanted


def test_a_kept_run_without_its_forecaster_is_made_again_when_one_is_to_be_saved(tmp_path):
    (task,) = tasks("a")
    (kept,) = kept_tasks(tmp_path / "kept", [task])
    carried_out([kept])
    small(train_size=99).save(tmp_path / "a.sr")  # of another run, under the same name

    carried_out([replace(kept, save_to=tmp_path / "a.sr")])

    assert Forecaster.load(tmp_path / "a.sr").settings.train_size == small().settings.train_size


def test_a_folder_of_runs_without_a_zone_takes_none_with_one(tmp_path):
    compare(frame(daily(5 * DAY)), "ohl", keep=tmp_path, **QUICK)

    with pytest.raises(InvalidInputError, match="with another series"):
        compare(frame(daily(5 * DAY)), "fixed", keep=tmp_path, tz="Europe/London", **QUICK)


def test_ctrl_c_while_processes_are_started_is_put_off_and_not_lost():
    reached = []

    def press_and_go_on():
        with deaf_to_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end of the block")

    with pytest.raises(KeyboardInterrupt):
        press_and_go_on()
    assert reached


def test_ctrl_c_after_the_last_step_loses_no_run(monkeypatch):
    def pressed(self):
        os.kill(os.getpid(), signal.SIGINT)
        return {}

    monkeypatch.setattr(Forecaster, "active_bounds", property(pressed))  # asked for at the end only

    (outcome,) = carried_out(tasks("ab"))

    assert not outcome.run.interrupted
    assert len(outcome.run.times) > 0


def test_a_stopped_comparison_says_which_runs_are_missing():
    def press(number, done):
        if number == 1:
            raise KeyboardInterrupt

    table = compare([series("a", 0), series("b", 1)], ["fixed", "ohl"], progress=press, **QUICK)

    made = {(run.sensor, run.method) for run in table.runs}
    assert made == {("a", "fixed"), ("a", "ohl")}
    assert table.missing == ("b (fixed)", "b (ohl)")


def test_an_error_of_the_callers_progress_is_raised_as_it_is():
    with pytest.raises(ZeroDivisionError):
        compare(series("a", 0), "fixed", progress=lambda number, done: 1 / 0, **QUICK)


def test_a_pipe_that_closes_is_not_the_fault_of_the_file_that_is_written(tmp_path):
    with pytest.raises(BrokenPipeError), replacing(tmp_path / "p.csv"):
        raise BrokenPipeError

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"first": "2021-06-13"}, {"train_size": 96}], ids=str)
def test_an_option_that_replay_does_not_have_is_refused(options):
    with pytest.raises(InvalidInputError, match="replay must be given options among sensor, "):
        replay(small(), frame(daily(5 * DAY)), **options)


def test_an_option_that_compare_does_not_have_is_refused():
    with pytest.raises(InvalidInputError, match=r"options among sensor, .*train_size.*'last'"):
        compare(frame(daily(5 * DAY)), "fixed", last="2021-06-15", **QUICK)


def test_no_sensors_asked_for_are_all_of_them():
    every = [series("a", 0), series("b", 1)]

    assert len(compare(every, "fixed", sensors=[], **QUICK).runs) == 2


def test_jobs_are_checked_beside_an_engine_too():
    with pytest.raises(InvalidInputError, match="jobs must be a whole number of at least 1"):
        parse_engine(LocalEngine(1), jobs=-5)


def test_questions_about_the_next_step_are_not_hoarded():
    forecaster = small(extras=("rain",))
    for hour, value in enumerate(daily(4 * DAY)):
        time = np.datetime64("2021-06-13T00:00", "m") + hour * np.timedelta64(60, "m")
        forecaster.observe(time, value, {"rain": 0.0})
    before = len(pickle.dumps(forecaster))

    for rain in range(50):
        forecaster.predict({"rain": float(rain)})

    assert len(pickle.dumps(forecaster)) < before + 5000
