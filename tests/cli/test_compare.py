import json
import shlex
from inspect import signature

import pandas as pd
import pytest

from streamridge import Forecaster
from streamridge.cli.compare import compare
from streamridge.cli.replay import replay
from tests.support.forecasters import DAY, daily

QUICK = ["--train-size", "96", "--update-every", "24", "--tune-every", "48", "--quiet"]


@pytest.fixture
def flows(tmp_path):
    """Return the path of an hourly file of two sensors."""
    times = pd.date_range("2021-06-13", periods=5 * DAY, freq="h")
    table = pd.DataFrame({"time": times, "ramp": daily(5 * DAY), "main": daily(5 * DAY, seed=1)})
    path = tmp_path / "flows.csv"
    table.to_csv(path, index=False)
    return path


def records(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def without_seconds(record):
    return {name: value for name, value in record.items() if not name.startswith("seconds_")}


def test_all_methods_are_compared(invoke, flows):
    every = "ohl,hoag,random,grid,bayes,fixed"
    once = [*QUICK, "--tune-every", "0"]

    result = invoke("compare", "flows.csv", *once, "--sensor", "ramp", "--methods", every, "--json")

    runs = records(result)
    assert [run["method"] for run in runs] == every.split(",")
    for run in runs:
        assert set(run) >= {
            *("sensor", "method", "steps", "scored", "missing", "rmse", "mae", "coverage"),
            *("seconds_total", "seconds_tuning", "seconds_fitting", "seconds_predicting"),
            *("fits", "hyperparameters"),
        }
        assert (run["steps"], run["scored"], run["missing"]) == (120, 48, 0)
    fits = {run["method"]: run["fits"] for run in runs}
    assert fits["ohl"] == fits["fixed"] < min(fits[name] for name in ("hoag", "random", "grid"))
    assert result.stderr == ""


def test_the_papers_methods_are_compared_by_default(invoke, flows):
    result = invoke("compare", "flows.csv", *QUICK, "--sensor", "ramp", "--json")

    assert [run["method"] for run in records(result)] == ["ohl", "hoag", "random", "fixed"]


def test_a_comparison_equals_the_replays_of_its_methods(invoke, flows):
    together = records(
        invoke("compare", "flows.csv", *QUICK, "--methods", "random,fixed", "--json")
    )

    apart = [
        record
        for method in ("random", "fixed")
        for record in records(invoke("replay", "flows.csv", *QUICK, "--method", method, "--json"))
    ]

    by_name = {(each["sensor"], each["method"]): without_seconds(each) for each in apart}
    assert len(together) == len(by_name) == 4
    for each in together:
        assert without_seconds(each) == by_name[each["sensor"], each["method"]]


@pytest.mark.slow
def test_several_processes_give_the_same_results_as_one(invoke, flows):
    alone, together = (
        records(
            invoke("compare", "flows.csv", *QUICK, "--methods", "ohl,random", "--json", "--jobs", n)
        )
        for n in ("1", "2")
    )

    assert [each["sensor"] for each in together] == ["ramp", "ramp", "main", "main"]
    assert list(map(without_seconds, together)) == list(map(without_seconds, alone))


def test_the_table_shows_errors_costs_and_the_change_against_fixed(invoke, flows):
    result = invoke("compare", "flows.csv", *QUICK, "--sensor", "ramp", "--methods", "ohl,fixed")

    assert result.exit_code == 0, result.output
    for word in ("RMSE", "relative", "coverage", "fits", "tuning (s)", "against fixed", "%"):
        assert word in result.stdout
    ohl, fixed = (line.split() for line in result.stdout.splitlines() if "ramp" in line)
    change = float(ohl[2]) / float(fixed[2]) - 1
    assert float(ohl[4].rstrip("%")) == pytest.approx(100 * change, abs=0.1)
    assert result.stderr == ""


def test_a_report_has_every_method(invoke, flows, tmp_path):
    arguments = ["--sensor", "ramp", "--methods", "ohl,fixed", "--report", "r"]

    result = invoke("compare", "flows.csv", *QUICK, *arguments)

    assert result.exit_code == 0, result.output
    page = (tmp_path / "r" / "index.html").read_text()
    assert "Comparison of flows.csv" in page
    for words in (
        "RMSE(t), the RMSE of all steps so far",
        "Running time",
        "Hyperparameters of ohl",
        "Methods with constant hyperparameters: fixed",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "error: nowhere.csv"),
        (
            ["flows.csv", "--methods", "ohl,magic"],
            "error: method must be one of 'ohl', 'ohl+', 'hoag', 'random', 'grid', 'bayes', "
            "'fixed', 'last', 'week', got 'magic'.",
        ),
        (["flows.csv", "--methods", ","], "error: method must be one of"),
        (["flows.csv", "--sensor", "x"], "error: sensors must be among 'ramp', 'main', got 'x'."),
        (
            ["flows.csv", "--warmup", "500"],
            "error: ramp: the series must have more than the 500 steps of the warm-up, got 120. "
            "Pass a smaller --warmup",
        ),
        (["flows.csv", "--scheduler", "tcp://10.0.0.5:1"], "error: scheduler must be an address"),
        (["flows.csv", "--keep", "flows.csv"], "error: keep must be a folder that can be"),
        (["flows.csv", "--report", "flows.csv"], "error: report must be a folder that can be"),
        (["flows.csv", "--predictions", "p.txt"], "error: path must end in .csv"),
    ],
)
def test_invalid_requests_are_refused_before_any_work(
    arguments, message, invoke, flows, monkeypatch
):
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    result = invoke("compare", *arguments)

    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_predictions_have_a_column_of_methods(invoke, flows, tmp_path):
    invoke(
        *("compare", "flows.csv", *QUICK, "--sensor", "ramp", "--methods", "ohl,fixed"),
        *("--predictions", "p.csv"),
    )

    assert pd.read_csv(tmp_path / "p.csv").groupby("method").size().to_dict() == {
        "fixed": 48,
        "ohl": 48,
    }


@pytest.mark.parametrize("model", ["default", pytest.param("paper", marks=pytest.mark.slow)])
def test_ohl_plus_runs_with_ohl_and_is_saved_under_its_name(model, invoke, tmp_path):
    times = pd.date_range("2021-06-13", periods=18 * DAY, freq="h")
    table = pd.DataFrame({"time": times, "ramp": daily(18 * DAY)})
    table.to_csv(tmp_path / "flows.csv", index=False)
    arguments = ["--model", model, "--train-size", "240", "--warmup", "400"]

    result = invoke(
        *("compare", "flows.csv", *arguments, "--steps", "24", "--methods", "ohl,ohl+"),
        *("--json", "--save", "models"),
    )

    ohl, plus = records(result)
    assert (ohl["method"], plus["method"]) == ("ohl", "ohl+")
    assert plus["counts"]["tuning_fits"] > ohl["counts"].get("tuning_fits", 0)
    names = sorted(each.name for each in (tmp_path / "models").iterdir())
    assert names == ["ramp-ohl+.sr", "ramp.sr"]


def test_compare_has_the_flags_of_replay():
    assert list(signature(compare).parameters) == list(signature(replay).parameters)


def test_help_ends_with_an_example_that_runs(invoke):
    example = invoke("compare", "--help").stdout.partition("Example:\n  ")[2].strip()
    made = invoke("simulate", "--out", "roads.csv", "--days", "8", "--detectors", "3")
    assert made.exit_code == 0, made.output

    result = invoke(
        *shlex.split(example)[1:], "--sensor", "ramp-3", "--train-size", "96", "--json", "--quiet"
    )

    errors = {run["method"]: run["rmse"] for run in records(result)}
    assert list(errors) == ["ohl", "hoag", "random", "fixed"]
    assert errors["ohl"] < errors["fixed"]


def test_naive_forecasts_have_rows_of_their_own(invoke, flows):
    result = invoke(
        "compare", "flows.csv", *QUICK, "--sensor", "ramp", "--methods", "fixed,last,week", "--json"
    )

    runs = records(result)
    assert [(run["method"], run["by_model"]) for run in runs] == [
        ("fixed", 1.0),
        ("last", 0.0),
        ("week", 0.0),
    ]
    assert [run["interrupted"] for run in runs] == [False] * 3
    assert runs[0]["rmse_relative"] == pytest.approx(runs[0]["rmse"] / runs[2]["rmse"])


def test_all_methods_start_at_a_given_hyperparameter(invoke, flows):
    start = ["--hyperparameter", "regularization=0.05"]

    result = invoke(
        "compare", "flows.csv", *QUICK, "--sensor", "ramp", "--methods", "fixed", *start, "--json"
    )

    (run,) = records(result)
    assert run["hyperparameters"]["regularization"] == pytest.approx(0.05)
