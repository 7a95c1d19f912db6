"""Runs stored in a folder, with which stopped work continues."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from streamridge import Forecaster, InvalidInputError, StateError, compare
from streamridge.runs.engines import LocalEngine
from streamridge.runs.run_folder import with_stored_runs
from streamridge.runs.run_tasks import run_tasks
from streamridge.series.clock import Clock
from tests.support.engine_tasks import QUICK, assert_same_runs, tasks
from tests.support.forecasters import DAY, daily, small
from tests.support.series import frame, series

BOTH = ["fixed", "ohl"]
LIKE = ("A 1", "A_1")


def kept(folder):
    return sorted(path.name for path in (folder / "runs").iterdir())


def run(todo):
    return list(run_tasks(todo, LocalEngine()))


def test_the_same_call_makes_only_the_missing_runs(tmp_path):
    def press(number, done):
        if number == 2:
            raise KeyboardInterrupt

    both = [series("a", 0), series("b", 1)]
    whole = compare(both, BOTH, **QUICK)

    compare(both, BOTH, keep=tmp_path, progress=press, **QUICK)
    before = kept(tmp_path)
    again = set()
    table = compare(
        both, BOTH, keep=tmp_path, progress=lambda number, done: again.add(number), **QUICK
    )

    assert before == ["a-fixed.run", "a-ohl.run"]
    assert again == {2, 3}
    assert_same_runs(table.runs, whole.runs)


def test_methods_can_be_added(tmp_path, monkeypatch):
    compare(series("a", 0), "fixed", keep=tmp_path, **QUICK)

    compare(series("a", 0), "ohl", keep=tmp_path, **QUICK)

    assert kept(tmp_path) == ["a-fixed.run", "a-ohl.run"]
    plan = json.loads((tmp_path / "plan.json").read_bytes())
    assert set(plan["methods"]) == {"fixed", "ohl"}
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)
    assert len(compare(series("a", 0), BOTH, keep=tmp_path, **QUICK).runs) == 2


def test_sensors_can_be_added_and_left_out(tmp_path, monkeypatch):
    first, second = series("a", 0), series("b", 1)
    compare(first, "fixed", keep=tmp_path, **QUICK)

    compare(second, "fixed", keep=tmp_path, **QUICK)

    assert kept(tmp_path) == ["a-fixed.run", "b-fixed.run"]
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)
    assert len(compare([second, first], "fixed", keep=tmp_path, **QUICK).runs) == 2
    assert len(compare(first, "fixed", keep=tmp_path, **QUICK).runs) == 1


def test_sensors_with_similar_names_keep_their_files_in_any_order(tmp_path):
    like, unlike = (replace(series("a", seed), sensor=name) for seed, name in enumerate(LIKE))
    compare(unlike, "fixed", keep=tmp_path, **QUICK)

    table = compare([like, unlike], "fixed", keep=tmp_path, **QUICK)

    assert kept(tmp_path) == ["A%201~1-fixed.run", "A_1~1-fixed.run"]
    apart = compare([like, unlike], "fixed", **QUICK)
    assert_same_runs(table.runs, apart.runs)


def test_sensors_of_another_step_can_be_left_out_again(tmp_path, monkeypatch):
    hourly = series("a", 0)
    slow = replace(series("b", 1), clock=Clock(timedelta(hours=2)))
    compare([hourly, slow], "fixed", keep=tmp_path, **QUICK)
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    assert len(compare(slow, "fixed", keep=tmp_path, **QUICK).runs) == 1
    assert len(compare([slow, hourly], "fixed", keep=tmp_path, **QUICK).runs) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"series": series("a", 1)}, "with another series of 'a'"),
        ({"series": [series("b", 0), series("a", 1)]}, "with another series of 'a'"),
        ({"warmup": 80}, "with another warm-up"),
        ({"steps": 10}, "with another number of steps"),
        ({"seed": 1}, "with another setting of 'fixed'"),
    ],
)
def test_a_folder_with_another_plan_is_refused(change, message, tmp_path, monkeypatch):
    given = {"series": series("a", 0), "methods": "fixed", "keep": tmp_path, **QUICK}
    compare(**given)
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    with pytest.raises(
        InvalidInputError,
        match=f"keep must be empty or hold the same runs, got .* {message}. Choose another folder",
    ):
        compare(**given | change)


def test_a_damaged_run_is_reported_before_any_work(tmp_path, monkeypatch):
    compare(series("a", 0), "fixed", keep=tmp_path, **QUICK)
    (tmp_path / "runs" / "a-fixed.run").write_bytes(b"rubbish")
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    with pytest.raises(StateError, match=r"a-fixed\.run is not .* Or remove the file: "):
        compare(series("a", 0), BOTH, keep=tmp_path, **QUICK)


def test_a_folder_that_cannot_be_created_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInputError, match="keep must be a folder that can be written"):
        compare(series("a", 0), "fixed", keep=tmp_path / "file", **QUICK)


def test_two_series_with_one_name_are_refused_before_any_run_is_stored(tmp_path):
    twins = [series("a", 0), series("a", 1)]

    with pytest.raises(InvalidInputError, match="distinct names, got 'a' more than once"):
        compare(twins, "fixed", keep=tmp_path, **QUICK)

    assert not list(tmp_path.iterdir())


def test_a_stored_run_saves_its_own_forecaster_again(tmp_path):
    (task,) = tasks("a", save_to=tmp_path / "a.sr")
    (kept,) = with_stored_runs(tmp_path / "kept", [task])
    run([kept])
    wanted = (tmp_path / "a.sr").read_bytes()
    small(train_size=99).save(tmp_path / "a.sr")  # of another run, under the same name

    run([kept])

    assert (tmp_path / "a.sr").read_bytes() == wanted


def test_a_stored_run_without_a_forecaster_is_repeated_to_save_one(tmp_path):
    (task,) = tasks("a")
    (kept,) = with_stored_runs(tmp_path / "kept", [task])
    run([kept])
    small(train_size=99).save(tmp_path / "a.sr")  # of another run, under the same name

    run([replace(kept, save_to=tmp_path / "a.sr")])

    assert Forecaster.load(tmp_path / "a.sr").settings.train_size == small().settings.train_size


def test_a_folder_of_runs_without_a_zone_refuses_runs_with_a_zone(tmp_path):
    compare(frame(daily(5 * DAY)), "ohl", keep=tmp_path, **QUICK)

    with pytest.raises(InvalidInputError, match="with another series"):
        compare(frame(daily(5 * DAY)), "fixed", keep=tmp_path, tz="Europe/London", **QUICK)
