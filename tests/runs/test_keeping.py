"""Runs that are kept in a folder, and gone on with."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from streamridge import Forecaster, InvalidInputError, StateError, compare
from streamridge.series.clock import Clock
from tests.forecaster.test_forecaster import DAY
from tests.runs.test_replay import series
from tests.runs.toys import assert_same_runs

QUICK = {"lags": 6, "train_size": 96, "warmup": 3 * DAY}
BOTH = ["fixed", "ohl"]
LIKE = ("A 1", "A_1")


def kept(folder):
    return sorted(path.name for path in (folder / "runs").iterdir())


def test_the_same_call_goes_on_with_what_is_missing(tmp_path):
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


def test_sensors_with_like_names_keep_their_files_whoever_comes_first(tmp_path):
    like, unlike = (replace(series("a", seed), sensor=name) for seed, name in enumerate(LIKE))
    compare(unlike, "fixed", keep=tmp_path, **QUICK)

    table = compare([like, unlike], "fixed", keep=tmp_path, **QUICK)

    assert kept(tmp_path) == ["A_1-2-fixed.run", "A_1-fixed.run"]
    apart = compare([like, unlike], "fixed", **QUICK)
    assert_same_runs(table.runs, apart.runs)


def test_a_folder_from_before_files_were_named_in_the_plan_goes_on(tmp_path, monkeypatch):
    both = [replace(series("a", seed), sensor=name) for seed, name in enumerate(LIKE)]
    whole = compare(both, "fixed", keep=tmp_path, **QUICK)
    plan = json.loads((tmp_path / "plan.json").read_bytes())
    del plan["files"]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    again = compare(both[1], "fixed", keep=tmp_path, **QUICK)

    assert_same_runs(again.runs, whole.runs[1:])


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
def test_a_folder_of_something_else_is_refused(change, message, tmp_path, monkeypatch):
    given = {"series": series("a", 0), "methods": "fixed", "keep": tmp_path, **QUICK}
    compare(**given)
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    with pytest.raises(
        InvalidInputError,
        match=f"keep must be empty or hold the same runs, got .* {message}. Choose another folder",
    ):
        compare(**given | change)


def test_a_damaged_run_is_named_before_any_work(tmp_path, monkeypatch):
    compare(series("a", 0), "fixed", keep=tmp_path, **QUICK)
    (tmp_path / "runs" / "a-fixed.run").write_bytes(b"rubbish")
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    with pytest.raises(StateError, match=r"a-fixed\.run is not .* Or remove the file: "):
        compare(series("a", 0), BOTH, keep=tmp_path, **QUICK)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInputError, match="keep must be a folder that can be written"):
        compare(series("a", 0), "fixed", keep=tmp_path / "file", **QUICK)
