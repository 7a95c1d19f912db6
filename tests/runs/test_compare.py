from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamridge as sr
from streamridge import Forecaster, InvalidInputError, compare, replay
from streamridge.forecaster.methods import tuned_by
from streamridge.runs.compare import Comparison
from streamridge.runs.tasks import model_settings
from tests.support.forecasters import DAY, daily, small
from tests.support.series import frame, series

QUICK = {"lags": 6, "train_size": 96, "update_every": DAY, "tune_every": 2 * DAY, "warmup": 3 * DAY}
COUNTED = ("sensor", "method", "steps", "scored", "missing", "fits", "gradients", "hyperparameters")


@pytest.fixture(scope="module")
def table():
    """Return three methods on two sensors."""
    both = frame(daily(5 * DAY)).assign(main=daily(5 * DAY, seed=1))
    return compare(both, ["ohl", "random", "fixed"], **QUICK)


def test_compare_is_a_public_name():
    assert sr.compare is compare
    assert {"compare", "Comparison"} <= set(sr.__all__)


@pytest.mark.parametrize("method", ["ohl", "random", "fixed"])
def test_a_run_of_a_comparison_equals_the_run_of_its_method_alone(method, table):
    warmup = QUICK["warmup"]
    rest = {name: value for name, value in QUICK.items() if name != "warmup"}
    settings = tuned_by(method, Forecaster("1h", **rest).settings)

    alone = replay(Forecaster.from_settings(settings), frame(daily(5 * DAY)), warmup=warmup)

    run = table.run(method, "ramp")
    for part in ("times", "actual", "value", "lower", "upper", "by_model"):
        np.testing.assert_array_equal(getattr(run, part), getattr(alone, part))
    assert run.hyperparameters == alone.hyperparameters
    assert run.counts == alone.counts
    assert run.method == alone.method == method


@pytest.mark.slow
def test_two_processes_give_the_results_of_one():
    both = [series("a", 0), series("b", 1)]
    methods = ["ohl", "random"]

    alone = compare(both, methods, seed=3, **QUICK)
    together = compare(both, methods, seed=3, jobs=2, **QUICK)

    for one, other in zip(alone.runs, together.runs, strict=True):
        for part in ("value", "lower", "upper"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        np.testing.assert_array_equal(one.path.values, other.path.values)
        assert one.counts == other.counts
        first, second = one.record(), other.record()
        assert {name: first[name] for name in COUNTED} == {name: second[name] for name in COUNTED}


def test_every_sensor_is_run_by_every_method_on_the_same_steps(table):
    assert [(run.sensor, run.method) for run in table.runs] == [
        *(("ramp", "ohl"), ("ramp", "random"), ("ramp", "fixed")),
        *(("main", "ohl"), ("main", "random"), ("main", "fixed")),
    ]
    for run in table.runs:
        np.testing.assert_array_equal(run.times, table.runs[0].times)
        np.testing.assert_array_equal(run.actual, table.run("fixed", run.sensor).actual)


def test_fits_include_the_fits_of_searches(table):
    run = table.run("random")

    (row,) = [row for row in table.rows() if (row["sensor"], row["method"]) == ("ramp", "random")]
    assert run.counts["tuning_fits"] > 0
    assert row["fits"] == run.counts["fits"] + run.counts["tuning_fits"]
    assert run.record()["fits"] == row["fits"]


def test_another_seed_gives_another_random_search():
    runs = [compare(series("a", 0), ["random"], seed=seed, **QUICK).runs[0] for seed in (0, 1)]

    assert runs[0].hyperparameters != runs[1].hyperparameters


def test_change_is_relative_to_the_rmse_of_fixed(table):
    ohl, fixed = table.run("ohl", "main"), table.run("fixed", "main")

    assert table.change(ohl) == pytest.approx((ohl.rmse - fixed.rmse) / fixed.rmse)
    assert table.change(fixed) == 0 != table.change(ohl)
    assert np.isnan(Comparison((ohl,)).change(ohl))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_frame_comes_from_the_library_of_the_input(kind):
    flows = frame(daily(4 * DAY), kind)

    result = compare(flows, "fixed,ohl", **QUICK).frame()

    assert isinstance(result, kind)
    assert list(result["method"]) == ["fixed", "ohl"]
    assert list(result.columns) == [
        *("sensor", "method", "scored", "rmse", "mae", "coverage", "fits", "gradients"),
        *("against_fixed", "seconds_tuning", "seconds_total"),
    ]


def test_a_frame_of_another_library_can_be_requested(table):
    assert isinstance(table.frame("polars"), pl.DataFrame)


def test_a_path_and_a_frame_give_the_same_runs(tmp_path):
    flows = frame(daily(4 * DAY))
    flows.to_csv(tmp_path / "flows.csv", index=False)

    from_path = compare(tmp_path / "flows.csv", "fixed", **QUICK)

    np.testing.assert_array_equal(
        from_path.runs[0].value, compare(flows, "fixed", **QUICK).runs[0].value
    )


def test_extra_columns_are_not_sensors():
    flows = frame(daily(5 * DAY)).assign(holiday=np.repeat([0.0, 1.0, 0.0, 1.0, 0.0], DAY))

    runs = compare(flows, "fixed", extras=("holiday",), **QUICK).runs

    assert [run.sensor for run in runs] == ["ramp"]
    own = {name: value for name, value in QUICK.items() if name != "warmup"}
    alone = replay(Forecaster("1h", extras=("holiday",), learn=False, **own), flows)
    np.testing.assert_array_equal(runs[0].value, alone.value)


def test_local_times_follow_the_zone():
    local = pd.date_range("2023-10-27", periods=5 * DAY, freq="h", tz="Europe/Berlin")
    flows = pd.DataFrame({"time": local.tz_localize(None), "ramp": daily(5 * DAY)})

    (run,) = compare(flows, "fixed", tz="Europe/Berlin", **QUICK).runs

    assert run.counts.get("missing", 0) == 0
    np.testing.assert_array_equal(run.local_times, flows.time.to_numpy()[3 * DAY :])


def test_finer_readings_are_aggregated_as_requested():
    values = daily(5 * DAY)
    halves = np.repeat(values / 2, 2)
    times = np.datetime64("2021-06-13T00:00", "m") + 30 * np.arange(len(halves))
    finer = pd.DataFrame({"time": times.astype("M8[ms]"), "ramp": halves})

    summed = compare(finer, "fixed", step="1h", aggregate="sum", **QUICK).runs[0]

    np.testing.assert_array_equal(summed.actual, values[QUICK["warmup"] :])
    with pytest.raises(InvalidInputError, match="aggregate"):
        compare(finer, "fixed", step="1h", **QUICK)


def test_steps_and_warmup_select_the_scored_steps():
    (run,) = compare(series("a", 0), "fixed", **QUICK | {"warmup": 80}, steps=10).runs

    assert (len(run.times), run.steps_done) == (10, 90)


@pytest.mark.parametrize("sensors", ["b", ["b"]])
def test_some_of_several_series_can_be_selected(sensors):
    every = [series("a", 0), series("b", 1)]

    assert [run.sensor for run in compare(every, "fixed", sensors=sensors, **QUICK).runs] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["ohl", "magic"]}, "method must be one of 'ohl', .*, got 'magic'"),
        ({"methods": []}, "method must be one of 'ohl', .*, got none"),
        ({"model": "papers"}, "model must be one of 'default', 'compact', .*, got 'papers'"),
        ({"sensors": ["x"]}, "sensors must be among 'a', 'b', got 'x'"),
        ({"step": "15min"}, "a: step must be the step of the series, 1h, got 15min"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
        ({"warmup": "a day"}, "warmup must be a whole number of at least 0, got 'a day'"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        (
            {"warmup": 500},
            r"a: the series must have more than the 500 steps of the warm-up, got 120\. "
            r"Pass a smaller --warmup \(warmup= in Python\)",
        ),
        ({"engine": "cloud"}, "engine must be 'local', 'dask', an engine .*, got 'cloud'"),
        ({"series": []}, "series must hold at least one sensor, got none"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(arguments, message, monkeypatch):
    told = []
    given = {"series": [series("a", 0), series("b", 1)], "methods": ["fixed"], **QUICK, **arguments}

    with pytest.raises(InvalidInputError, match=message):
        compare(**given, progress=lambda number, done: told.append(done))
    assert told == []


def test_a_series_that_is_too_short_is_left_out_and_reported(caplog):
    short = series("b", 1).between(None, series("b", 1).times[DAY])

    table = compare([series("a", 0), short], "fixed,ohl", **QUICK)

    assert {run.sensor for run in table.runs} == {"a"}
    said = "b: 25 steps are not more than the 72 of the warm-up, left out"
    assert [str(each) for each in table.left_out] == [said]
    assert [record.getMessage() for record in caplog.records] == [said]


def test_a_sensor_without_values_is_left_out_and_reported():
    flows = frame(daily(5 * DAY)).assign(dead=np.nan)

    table = compare(flows, "fixed", **QUICK)

    assert [run.sensor for run in table.runs] == ["ramp"]
    assert [str(each) for each in table.left_out] == ["dead: no values, left out"]


def test_an_unknown_sensor_of_a_file_is_refused():
    with pytest.raises(InvalidInputError, match="sensors must be among 'ramp', got 'x'"):
        compare(frame(daily(4 * DAY)), sensors=["x"])


@pytest.mark.parametrize("ask", ["run", "plot"])
def test_an_unknown_sensor_is_refused(ask, table):
    arguments = {"run": ("ohl", "x"), "plot": ("x",)}[ask]

    with pytest.raises(InvalidInputError, match="sensor must be one of 'ramp', 'main', got 'x'"):
        getattr(table, ask)(*arguments)


def test_a_method_that_was_not_run_is_refused(table):
    with pytest.raises(
        InvalidInputError, match="method must be one of 'ohl', 'random', 'fixed', got 'hoag'"
    ):
        table.run("hoag")


def test_the_first_sensor_is_the_default(table):
    assert table.run("fixed") is table.runs[2]
    assert table.run("fixed", "main") is table.runs[5]


def test_its_text_is_an_aligned_table(table):
    head, *lines = str(table).splitlines()

    assert head.split() == ["sensor", "method", "RMSE", "change", "tuning", "(s)", "total", "(s)"]
    assert len(lines) == 6
    assert {len(line) for line in lines} == {len(head)}
    assert lines[2].split()[:4] == ["ramp", "fixed", f"{table.run('fixed').rmse:.4g}", "+0.0%"]


def test_without_fixed_the_change_is_empty(table):
    alone = Comparison((table.run("ohl"),))

    assert "%" not in str(alone)


def test_it_has_a_short_text_and_a_figure(table):
    figure = table.plot("main")

    errors, costs = figure.axes
    assert errors.get_title() == "main"
    assert [line.get_label() for line in errors.lines] == ["ohl", "random", "fixed"]
    assert errors.get_xlabel() == "days since the first forecast"
    assert costs.get_xlabel() == "seconds"
    figure.canvas.draw()


def test_progress_is_reported_for_each_run():
    told = {}

    compare(
        series("a", 0),
        "fixed,ohl",
        **QUICK,
        progress=lambda number, done: told.update({number: done}),
    )

    assert told == {0: 5 * DAY, 1: 5 * DAY}


def test_ctrl_c_returns_the_finished_runs():
    def press(number, done):
        if number == 1:
            raise KeyboardInterrupt

    stopped = compare(series("a", 0), "fixed,ohl,grid", **QUICK, progress=press)

    assert [run.interrupted for run in stopped.runs] == [False, True]
    assert "ohl" in str(stopped)


def test_levels_and_bounds_apply_to_every_method(tmp_path):
    values = daily(4 * DAY)
    values[[20, 80]] = -9.0
    arguments = {"level": (0.8, 0.95), "bounds": (0, None), "train_size": 96, "keep": tmp_path}

    table, again = (compare(frame(values), ["ohl", "fixed"], **arguments) for _ in range(2))

    assert list(table.rows()[0]) == [
        *("sensor", "method", "scored", "rmse", "mae", "coverage_80", "coverage_95", "fits"),
        *("gradients", "against_fixed", "seconds_tuning", "seconds_total"),
    ]
    assert table.frame()["coverage_95"].tolist() == [run.coverages[0.95] for run in table.runs]
    for run, kept in zip(table.runs, again.runs, strict=True):
        assert run.counts["implausible"] == 2
        assert kept.coverages == run.coverages
        assert run.lower.min() >= 0


def test_settings_that_are_none_keep_their_default():
    step = small().settings.step

    assert model_settings("default", step, lags=None) == Forecaster(step).settings
    assert model_settings("paper", step, horizon=None) == Forecaster.paper(step).settings


def test_an_interrupted_run_is_compared_over_the_common_steps(table):
    ohl, fixed = table.run("ohl"), table.run("fixed")
    early = 20
    cut = replace(
        fixed,
        interrupted=True,
        **{
            part: getattr(fixed, part)[:early]
            for part in ("times", "actual", "value", "implausible")
        },
    )

    change = Comparison((ohl, cut)).change(ohl)

    errors = [(each.actual - each.value[:, 0])[:early] for each in (ohl, fixed)]
    expected = np.sqrt(np.mean(errors[0] ** 2) / np.mean(errors[1] ** 2)) - 1
    assert change == pytest.approx(expected, rel=1e-12)


def test_an_interrupted_comparison_names_the_missing_runs():
    def press(number, done):
        if number == 1:
            raise KeyboardInterrupt

    table = compare([series("a", 0), series("b", 1)], ["fixed", "ohl"], progress=press, **QUICK)

    made = {(run.sensor, run.method) for run in table.runs}
    assert made == {("a", "fixed"), ("a", "ohl")}
    assert table.missing == ("b (fixed)", "b (ohl)")


def test_compare_refuses_an_unknown_option():
    with pytest.raises(InvalidInputError, match=r"options among sensor, .*train_size.*'last'"):
        compare(frame(daily(5 * DAY)), "fixed", last="2021-06-15", **QUICK)


def test_an_empty_list_of_sensors_selects_all():
    every = [series("a", 0), series("b", 1)]

    assert len(compare(every, "fixed", sensors=[], **QUICK).runs) == 2
