"""The command on every engine: results as they come, going on, failures."""

import gc
import json
import sys

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, Run
from tests.support.commands import press_after
from tests.support.forecasters import DAY, daily

QUICK = ["--train-size", "96", "--update-every", "24", "--warmup", "72", "--quiet"]
SECONDS = ("seconds_total", "seconds_tuning", "seconds_fitting", "seconds_predicting")


@pytest.fixture
def flows(tmp_path):
    """Return the path of an hourly file of three sensors."""
    times = pd.date_range("2021-06-13", periods=5 * DAY, freq="h")
    values = {name: daily(5 * DAY, seed=seed) for seed, name in enumerate("abc")}
    path = tmp_path / "flows.csv"
    pd.DataFrame({"time": times, **values}).to_csv(path, index=False)
    return path


def spoil(path):
    """Give the second sensor a value that no forecaster takes."""
    table = pd.read_csv(path)
    table.loc[90, "b"] = 1e13
    table.to_csv(path, index=False)


def records(result):
    """Return what was printed, without what differs from time to time."""
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return [{name: part for name, part in each.items() if name not in SECONDS} for each in found]


@pytest.mark.slow
def test_dask_gives_the_results_of_this_process(invoke, flows, tmp_path):
    arguments = ["compare", "flows.csv", *QUICK, "--methods", "fixed,ohl", "--json"]

    here = invoke(*arguments, "--predictions", "here.csv")
    there = invoke(*arguments, "--predictions", "there.csv", "--engine", "dask", "--jobs", "2")

    assert there.exit_code == 0, there.output
    assert records(there) == records(here)
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_run_is_printed_before_the_next_starts_and_predictions_appear_complete(
    invoke, flows, tmp_path, monkeypatch
):
    predict, seen = Forecaster.predict, []

    def look(self, *arguments):
        if self.next_time is None:
            lines = sys.stdout.buffer.getvalue().splitlines()
            seen.append((len(lines), len(list(tmp_path.glob(".p.csv*")))))
            assert not (tmp_path / "p.csv").exists()
        return predict(self, *arguments)

    monkeypatch.setattr(Forecaster, "predict", look)
    result = invoke("replay", "flows.csv", *QUICK, "--json", "--predictions", "p.csv")

    assert result.exit_code == 0, result.output
    assert seen == [(0, 1), (1, 1), (2, 1)]
    assert len(pd.read_csv(tmp_path / "p.csv")) == 3 * 48


@pytest.mark.parametrize(
    "way",
    [pytest.param(["--json"], id="json"), pytest.param([], id="table", marks=pytest.mark.slow)],
)
def test_only_runs_of_the_current_sensor_are_in_memory(way, invoke, flows, monkeypatch):
    predict, held = Forecaster.predict, []

    def look(self, *arguments):
        if self.next_time is None:
            gc.collect()
            held.append(sum(isinstance(each, Run) for each in gc.get_objects()))
        return predict(self, *arguments)

    monkeypatch.setattr(Forecaster, "predict", look)
    before = sum(isinstance(each, Run) for each in gc.get_objects())
    invoke("replay", "flows.csv", *QUICK, *way, "--methods", "fixed,ohl", "--predictions", "p.csv")

    assert len(held) == 6
    assert max(held) - before <= 2


def test_predictions_in_parquet_have_a_row_group_for_each_run(invoke, flows, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")

    invoke("replay", "flows.csv", *QUICK, "--json", "--predictions", "p.parquet")

    file = parquet.ParquetFile(tmp_path / "p.parquet")
    groups = [file.read_row_group(at) for at in range(file.num_row_groups)]
    assert [set(group["sensor"].to_pylist()) for group in groups] == [{"a"}, {"b"}, {"c"}]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_failed_sensor_is_reported_and_the_others_are_complete(jobs, invoke, flows, tmp_path):
    spoil(flows)

    result = invoke(
        *("replay", "flows.csv", *QUICK, "--jobs", jobs),
        *("--json", "--predictions", "p.csv", "--save", "models"),
    )

    assert result.exit_code == 3
    assert result.stderr.startswith(
        "error: b (ohl): at 2021-06-16T18:00:00: value must be at most 1e+12 in size"
    )
    assert result.stderr.endswith("error: 1 of 3 runs failed: 'b (ohl)'.\n")
    assert "Traceback" not in result.output
    assert [record["sensor"] for record in records(result)] == ["a", "c"]
    assert set(pd.read_csv(tmp_path / "p.csv").sensor) == {"a", "c"}
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"a.sr", "c.sr"}


def test_nothing_is_written_if_all_sensors_fail(invoke, flows, tmp_path):
    spoil(flows)

    result = invoke("replay", "flows.csv", *QUICK, "--sensor", "b", "--predictions", "p.csv")

    assert result.exit_code == 3
    assert not (tmp_path / "p.csv").exists()


def test_the_same_command_makes_only_the_missing_runs(invoke, flows, tmp_path, monkeypatch):
    loud = ["compare", "flows.csv", *QUICK[:-1], "--methods", "fixed", "--json"]
    whole = invoke(*loud)

    with monkeypatch.context() as patched:
        press_after(patched, 6 * DAY)
        first = invoke(*loud, "--keep", "runs", "--predictions", "p.csv")
    part = pd.read_csv(tmp_path / "p.interrupted.csv")
    second = invoke(*loud, "--keep", "runs", "--predictions", "p.csv")

    assert (first.exit_code, second.exit_code) == (130, 0)
    assert "Stopped early" in first.stderr
    assert records(first)[0] == records(whole)[0]
    assert set(part.sensor) == {"a"}
    assert "1 of 3 runs is already stored." in second.stderr
    assert records(second) == records(whole)
    assert list(dict.fromkeys(pd.read_csv(tmp_path / "p.csv").sensor)) == ["a", "b", "c"]


def test_a_folder_with_another_plan_is_refused(invoke, flows):
    invoke("replay", "flows.csv", *QUICK, "--keep", "runs")

    result = invoke("replay", "flows.csv", *QUICK, "--keep", "runs", "--seed", "3")

    assert result.exit_code == 2
    assert "error: keep must be empty or hold the same runs, got 'runs' with another" in (
        result.stderr
    )


def test_the_table_shows_finished_and_interrupted_runs_after_ctrl_c(invoke, flows, monkeypatch):
    press_after(monkeypatch, 5 * DAY + 100)

    result = invoke("replay", "flows.csv", *QUICK[:-1])

    assert result.exit_code == 130
    lines = [line.split() for line in result.stdout.splitlines() if "  ohl" in line]
    assert [(line[0], line[-2]) for line in lines] == [("a", "48"), ("b", "27")]
    assert lines[1][2] == "*"
    assert "* b (ohl): interrupted after 27 scored steps." in result.stdout


def test_a_sensor_that_is_too_short_is_reported_and_left_out(invoke, flows):
    table = pd.read_csv(flows)
    table.loc[50:, "b"] = np.nan
    table.to_csv(flows, index=False)

    result = invoke("replay", "flows.csv", *QUICK[:-1], "--json")

    assert result.exit_code == 0
    assert [record["sensor"] for record in records(result)] == ["a", "c"]
    assert "b: 50 steps are not more than the 72 of the warm-up, left out" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "tcp://10.0.0.5:8786"], "error: scheduler must be an address of this"),
        (["--engine", "cloud"], "--engine"),
    ],
)
def test_an_unusable_engine_is_refused(arguments, message, invoke, flows):
    for command in (["replay", "flows.csv"], ["reproduce", "traffic", "--quick", "--out", "s"]):
        result = invoke(*command, *arguments)

        assert result.exit_code == 2
        assert message in result.stderr


def test_without_dask_the_extra_is_named(invoke, flows, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)

    result = invoke("replay", "flows.csv", "--engine", "dask")

    assert result.exit_code == 1
    assert "pip install 'streamridge[dask]'" in result.stderr
