import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge import InvalidInputError, StateError
from streamridge.datasets import simulate_roads
from streamridge.experiments.traffic.methods import METHODS, PAPER_METHODS
from streamridge.experiments.traffic.study import (
    FULL,
    QUICK,
    STEP,
    cell_settings,
    simulated_series,
)
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.methods import parse_names
from streamridge.runs.engines import LocalEngine
from streamridge.runs.replay import replay
from streamridge.runs.run_tasks import run_tasks
from streamridge.series.clock import Clock
from tests.support.series import series as hourly
from tests.support.studies import TOY, study_of

METHODS_OF_TOY = ("fixed", "ohl", "grid")


def run(study, progress=None, jobs=1):
    return list(run_tasks(study.cells(), LocalEngine(jobs), progress))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a small study that was made without a break."""
    study = study_of(tmp_path_factory.mktemp("whole"), methods=METHODS_OF_TOY)
    study.prepare()
    run(study)
    return study


def assert_same_results(runs, others):
    for one, other in zip(runs, others, strict=True):
        assert (one.sensor, one.method) == (other.sensor, other.method)
        for part in ("times", "actual", "value", "lower", "upper"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        assert one.hyperparameters == other.hyperparameters
        assert one.counts == other.counts


def todo(study):
    """Return the cells that are asked for and not there."""
    return [cell for cell in study.cells() if not cell.is_done]


def test_a_study_has_a_cell_for_each_detector_and_method(whole):
    names = [(each.sensor, each.method) for each in whole.stored_runs()]

    assert names == [
        (sensor, method)
        for sensor in ("mainline-1", "mainline-2")
        for method in ("FIXED", "OHL", "GRID")
    ]


def test_a_cell_equals_a_run_of_its_method(whole):
    settings = cell_settings("ohl", TOY, 0, STEP)

    alone = replay(Forecaster.from_settings(settings), whole.series[1], warmup=150, steps=100)

    ohl = whole.stored_runs()[4]
    np.testing.assert_array_equal(ohl.value, alone.value)
    assert ohl.hyperparameters == alone.hyperparameters
    assert (ohl.steps_done, len(ohl.times)) == (250, 100)


def test_cells_are_stored_when_they_are_complete(tmp_path):
    study = study_of(tmp_path, methods=["fixed", "ohl"])
    study.prepare()
    seen = {}

    def look(number, done):
        if done == 1:
            seen[number] = len(study.stored_runs())

    run(study, look)

    assert seen == {0: 0, 1: 1, 2: 2, 3: 3}


def test_a_second_run_does_nothing(whole, monkeypatch):
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    again = study_of(whole.folder, methods=METHODS_OF_TOY)
    again.prepare()

    assert todo(again) == []
    assert_same_results([outcome.run for outcome in run(again)], whole.stored_runs())


def test_an_interrupted_study_loses_only_the_current_cell_and_continues(tmp_path, whole):
    study = study_of(tmp_path, methods=METHODS_OF_TOY)
    study.prepare()

    def press(number, done):
        if (number, done) == (3, 200):
            raise KeyboardInterrupt

    run(study, press)

    assert [cell.keep_in for cell in todo(study)] == [cell.keep_in for cell in study.cells()[3:]]
    again = study_of(tmp_path, methods=METHODS_OF_TOY)
    again.prepare()
    lived = []
    run(again, lambda number, done: lived.append(number))
    assert len(lived) == 3 * 250
    assert_same_results(again.stored_runs(), whole.stored_runs())


@pytest.mark.slow
def test_a_study_in_several_processes_has_the_same_results(tmp_path, whole):
    study = study_of(tmp_path, methods=METHODS_OF_TOY)
    study.prepare()

    run(study, jobs=2)

    assert_same_results(study.stored_runs(), whole.stored_runs())


def test_more_methods_can_be_added_to_a_study(tmp_path):
    one = study_of(tmp_path, methods=["fixed"])
    one.prepare()
    run(one)

    more = study_of(tmp_path, methods=["ohl"])
    more.prepare()

    assert [cell.method for cell in todo(more)] == ["OHL", "OHL"]
    assert [run.method for run in more.stored_runs()] == ["FIXED", "FIXED"]
    assert more.all_methods == ("fixed", "ohl")


def test_other_detectors_can_be_added_to_a_study(tmp_path):
    one, other = simulated_series(TOY, 0)
    first = study_of(tmp_path, series=[one], methods=["fixed"])
    first.prepare()
    run(first)

    second = study_of(tmp_path, series=[other], methods=["fixed"])
    second.prepare()

    assert [cell.series.sensor for cell in todo(second)] == ["mainline-2"]
    run(second)
    assert second.detectors == ("mainline-2", "mainline-1")
    assert [each.sensor for each in second.stored_runs()] == ["mainline-2", "mainline-1"]
    both = study_of(tmp_path, series=[one, other], methods=["fixed"])
    both.prepare()
    assert todo(both) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"seed": 1},
            r"another seed and series of 'mainline-1', 'mainline-2'\. Choose another folder",
        ),
        ({"size": replace(TOY, steps=90, train_size=50)}, r"another size \(steps, train_size\)\."),
        ({"series": simulated_series(TOY, 3)}, r"another series of 'mainline-1', 'mainline-2'\."),
        ({"series": simulated_series(TOY, 3)[:1]}, r"another series of 'mainline-1'\."),
        ({"model": "paper-prototype"}, r"another setting of 'fixed', 'ohl', 'grid'\."),
    ],
)
def test_another_study_in_the_same_folder_is_refused(change, message, whole):
    other = study_of(whole.folder, **{"methods": ["fixed"], **change})

    with pytest.raises(InvalidInputError, match=message):
        other.prepare()
    whole.prepare()  # the plan is as it was


def test_a_method_with_changed_settings_is_refused(whole, monkeypatch):
    changed = replace(METHODS["grid"], change=METHODS["ohl"].change)
    monkeypatch.setitem(METHODS, "grid", changed)
    study = study_of(whole.folder, methods=METHODS_OF_TOY)

    with pytest.raises(InvalidInputError, match=r"another setting of 'grid'\. Choose"):
        study.prepare()


def test_a_stored_method_is_checked_even_if_it_is_not_requested(whole, monkeypatch):
    changed = replace(METHODS["grid"], change=METHODS["ohl"].change)
    monkeypatch.setitem(METHODS, "grid", changed)

    with pytest.raises(InvalidInputError, match=r"another setting of 'grid'\."):
        study_of(whole.folder, methods=["fixed"]).prepare()


def test_a_method_can_be_added_to_a_study(tmp_path):
    study_of(tmp_path, methods=["fixed"]).prepare()

    study_of(tmp_path, methods=["ohl"]).prepare()

    plan = json.loads((tmp_path / "study.json").read_bytes())
    assert list(plan["methods"]) == ["fixed", "ohl"]


@pytest.mark.parametrize("change", ["value", "time"])
def test_slightly_different_readings_are_another_study(change, tmp_path):
    one, other = simulated_series(TOY, 0)
    if change == "value":
        values = other.values.copy()
        values[7] += 1e-9
        changed = replace(other, values=values)
    else:
        changed = replace(other, start=other.start + 1)
    study_of(tmp_path, series=[one, other]).prepare()

    with pytest.raises(InvalidInputError, match="another series"):
        study_of(tmp_path, series=[one, changed]).prepare()


def test_the_same_detectors_in_another_order_have_the_same_files(tmp_path):
    one, other = (
        replace(each, sensor=name)
        for each, name in zip(simulated_series(TOY, 0), ["A 1", "A_1"], strict=True)
    )

    files = [
        {cell.series.sensor: cell.keep_in for cell in study.cells()}
        for study in (
            study_of(tmp_path, methods=["fixed"], series=order)
            for order in ([one, other], [other, one])
        )
    ]

    assert files[0] == files[1]
    assert files[0]["A 1"] != files[0]["A_1"]


def test_names_of_detectors_cannot_leave_the_folder(tmp_path):
    (one, _) = simulated_series(TOY, 0)
    study = study_of(tmp_path, series=[replace(one, sensor="../../<b>x</b>")])

    assert {cell.keep_in.parent for cell in study.cells()} == {tmp_path / "cells"}


@pytest.mark.parametrize("content", ["not JSON", "[]", '{"later": 1}'])
def test_a_folder_with_a_foreign_plan_is_refused(content, tmp_path):
    tmp_path.joinpath("study.json").write_text(content)

    with pytest.raises(InvalidInputError, match="Choose another folder, or remove this one"):
        study_of(tmp_path).prepare()
    assert tmp_path.joinpath("study.json").read_text() == content


def test_a_plan_with_more_entries_is_another_study(whole, tmp_path):
    plan = json.loads(whole.folder.joinpath("study.json").read_text())
    tmp_path.joinpath("study.json").write_text(json.dumps(plan | {"noise": 1}))

    with pytest.raises(InvalidInputError, match=r"with another noise\."):
        study_of(tmp_path).prepare()


def test_a_folder_that_cannot_be_created_is_refused(tmp_path):
    tmp_path.joinpath("file").write_text("")

    with pytest.raises(InvalidInputError, match="out must be a folder that can be written"):
        study_of(tmp_path / "file" / "study").prepare()


def test_a_damaged_cell_is_named_with_a_remedy(tmp_path):
    study = study_of(tmp_path, methods=["fixed"])
    study.prepare()
    study.cells()[1].keep_in.write_bytes(b"rubbish")

    with pytest.raises(StateError, match=r"mainline-2-fixed\.run is not .* Or remove the file"):
        study.stored_runs()


def test_a_damaged_cell_of_a_stored_method_is_found_before_any_work(tmp_path):
    study = study_of(tmp_path, methods=["fixed"])
    study.prepare()
    study.cells()[0].keep_in.write_bytes(b"rubbish")

    with pytest.raises(StateError, match=r"mainline-1-fixed\.run is not"):
        study_of(tmp_path, methods=["ohl"]).prepare()


def test_a_detector_with_too_few_data_is_left_out(tmp_path):
    one, other = simulated_series(TOY, 0)
    short = replace(other, values=other.values[:150])

    study = study_of(tmp_path, series=[one, short])

    assert [each.sensor for each in study.series] == ["mainline-1"]
    assert [str(each) for each in study.left_out] == [
        "mainline-2: 150 steps are not more than the 150 of the warm-up, left out"
    ]


def test_data_that_are_all_too_short_are_refused(tmp_path):
    short = [replace(each, values=each.values[:100]) for each in simulated_series(TOY, 0)]

    with pytest.raises(
        InvalidInputError,
        match="mainline-1: the series must have more than the 150 steps of the warm-up, got 100",
    ):
        study_of(tmp_path, series=short)


def test_data_of_another_step_are_refused(tmp_path):
    with pytest.raises(
        InvalidInputError, match="a: data must have a reading every 15min, got one every 1h"
    ):
        study_of(tmp_path, series=[hourly("a", 0)])


def test_an_unknown_method_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"method must be one of 'fixed', .* got 'magic'"):
        study_of(tmp_path, methods=["fixed,magic"])


def test_study_methods_are_the_papers_unless_some_are_named():
    assert parse_names(["OHL, hoag-log", "ohl"], METHODS) == ("ohl", "hoag-log")
    assert PAPER_METHODS == ("fixed", "ohl", "hoag", "random")
    with pytest.raises(InvalidInputError, match=r"method must be one of .*, got none"):
        parse_names([""], METHODS)


def test_simulated_detectors_depend_on_the_seed():
    roads = simulate_roads(np.random.default_rng(4), detectors=2, days=3, step_minutes=15)

    series = simulated_series(TOY, 4)

    assert [each.sensor for each in series] == list(roads.names)
    for each, flows in zip(series, roads.flows.T, strict=True):
        known = ~np.isnan(flows)
        begin, end = np.flatnonzero(known)[[0, -1]]
        np.testing.assert_array_equal(each.values, flows[begin : end + 1])
    assert series[0].clock == Clock(STEP)


def test_the_full_study_has_the_papers_sizes():
    assert (FULL.detectors, FULL.train_size, FULL.validation_size) == (13, 2880, 2880)
    assert (FULL.update_every, FULL.tune_every) == (96, 672)
    for size in (FULL, QUICK):
        assert size.warmup >= size.train_size + size.validation_size
        assert 96 * size.days >= size.warmup + (size.steps or 1)


@pytest.mark.parametrize("method", PAPER_METHODS)
def test_the_methods_of_the_paper_use_its_model_at_the_requested_size(method):
    settings = cell_settings(method, TOY, 7, STEP)

    paper = Forecaster.paper(
        STEP, train_size=60, update_every=48, tune_every=96, validation_size=40, warmup=150, seed=7
    ).settings
    assert replace(settings, tuner=None, learn=True) == paper


@pytest.mark.parametrize(
    ("method", "base", "parts"),
    [
        ("random-uniform", "random", {"tuner.spacing"}),
        ("hoag-log", "hoag", {"tuner.coordinates"}),
        ("hoag-two", "hoag", {"tuner.gradients"}),
        ("ohl-log", "ohl", {"preset.coordinates", "preset.step_rule"}),
        ("ohl-adagrad", "ohl", {"preset.step_rule"}),
        ("ohl-log-adagrad", "ohl", {"preset.coordinates", "preset.step_rule"}),
        ("ohl-log-adagrad-period", "ohl-log-adagrad", {"preset.model"}),
        ("ohl-period", "ohl", {"preset.model"}),
        ("ohl-early", "ohl", {"warmup"}),
        ("ohl-log-adagrad-early", "ohl-log-adagrad", {"warmup"}),
        ("ohl-unit-10", "ohl", {"preset.model"}),
        ("ohl-unit-1000", "ohl", {"preset.model"}),
        ("fixed-unit-10", "fixed", {"preset.model"}),
        ("fixed-unit-1000", "fixed", {"preset.model"}),
    ],
)
def test_an_ablation_changes_only_the_settings_of_its_name(method, base, parts):
    changed, plain = (parts_of(cell_settings(name, TOY, 0, STEP)) for name in (method, base))

    assert {name for name in plain if changed[name] != plain[name]} == parts
    assert METHODS[method].label.startswith(METHODS[base].label)


def parts_of(settings):
    plain = settings.described()
    for name in ("preset", "tuner"):
        inner = plain.pop(name) or {}
        plain |= {f"{name}.{part}": value for part, value in inner.items()}
    return plain


def test_ohl_plus_is_ohl_with_other_steps_and_a_searched_start():
    plus, plain = (parts_of(cell_settings(name, TOY, 0, STEP)) for name in ("ohl+", "ohl"))

    assert {name for name in plus if plus[name] != plain.get(name)} == {
        *("preset.coordinates", "preset.step_rule", "start"),
    }
    assert METHODS["ohl+"].label == "OHL+"


def test_ohl_plus_searches_within_a_study(tmp_path):
    size = replace(TOY, days=5, warmup=300, train_size=250)
    study = study_of(tmp_path, methods=["ohl", "ohl+"], size=size)
    study.prepare()

    run(study)

    ohl, plus, *_ = study.stored_runs()
    assert (ohl.method, plus.method) == ("OHL", "OHL+")
    assert (plus.counts["tunings"], "tunings" in ohl.counts) == (1, False)
    assert plus.hyperparameters != ohl.hyperparameters


def test_a_grid_is_searched_once():
    assert cell_settings("grid", TOY, 0, STEP).tune_every == 0


def test_the_default_model_is_another_model_than_the_papers():
    assert (
        cell_settings("default", TOY, 0, STEP).preset != cell_settings("ohl", TOY, 0, STEP).preset
    )
