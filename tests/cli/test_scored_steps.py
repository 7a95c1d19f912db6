"""Which steps and which horizons are scored is said in the table, in JSON and in the report."""

import json

import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError, compare, replay
from tests.support.forecasters import DAY, daily
from tests.support.hostile_files import column, require_contract

NAIVE = ["--method", "last", "--quiet"]


@pytest.fixture
def flows(tmp_path):
    """Write daily readings of two sensors, of which one ends earlier."""
    first, *rows = column(*range(60)).splitlines()
    lines = [f"{first},b", *(f"{row},{i if i < 50 else ''}" for i, row in enumerate(rows))]
    (tmp_path / "flows.csv").write_text("\n".join(lines))


def test_the_table_says_which_steps_are_scored(invoke, flows):
    result = invoke("replay", "flows.csv", *NAIVE, "--sensor", "a", "--warmup", "10")

    assert "\nScored steps: 2021-06-11T00:00:00 to 2021-07-30T00:00:00.\n" in result.stdout


def test_sensors_with_other_scored_steps_are_named(invoke, flows):
    result = invoke("replay", "flows.csv", *NAIVE, "--warmup", "10")

    assert "Scored steps of 'a': 2021-06-11T00:00:00 to 2021-07-30T00:00:00.\n" in result.stdout
    assert "Scored steps of 'b': 2021-06-11T00:00:00 to 2021-07-20T00:00:00.\n" in result.stdout


def test_many_scored_spans_are_counted(invoke, tmp_path):
    rows = [
        f"2021-06-{day:02d}," + ",".join("5" if day <= 10 + at else "" for at in range(8))
        for day in range(1, 20)
    ]
    (tmp_path / "flows.csv").write_text("\n".join(["time,a,b,c,d,e,f,g,h", *rows]))

    result = invoke("replay", "flows.csv", *NAIVE, "--warmup", "2")

    assert result.stdout.count("Scored steps of '") == 5
    assert result.stdout.endswith("of other sensors: 3 other spans. --json shows all.\n")


def test_json_has_the_first_and_the_last_scored_step(invoke, flows):
    result = invoke("replay", "flows.csv", *NAIVE, "--warmup", "10", "--json")

    spans = [(each["scored_from"], each["scored_to"]) for each in map(json.loads, lines(result))]
    assert spans == [
        ("2021-06-11T00:00:00", "2021-07-30T00:00:00"),
        ("2021-06-11T00:00:00", "2021-07-20T00:00:00"),
    ]


def lines(result):
    return result.stdout.splitlines()


def test_times_with_an_offset_are_said_with_it(invoke, tmp_path):
    rows = [f"2021-06-01T{hour:02d}:00+02:00,{hour}" for hour in range(20)]
    (tmp_path / "flow.csv").write_text("\n".join(["time,a", *rows]))

    result = invoke("replay", "flow.csv", *NAIVE, "--warmup", "0", "--last-steps", "3")

    assert "Scored steps: 2021-06-01T17:00:00+02:00 to 2021-06-01T19:00:00+02:00." in result.stdout


def test_the_report_says_which_steps_are_scored(invoke, flows, tmp_path):
    invoke("replay", "flows.csv", *NAIVE, "--warmup", "10", "--report", "page")

    page = (tmp_path / "page" / "index.html").read_text()
    assert "Scored from 2021-06-11 00:00 to 2021-07-30 00:00." in page
    assert "50 readings, scored from 2021-06-11 00:00 to 2021-07-20 00:00." in page


def test_the_last_steps_of_each_sensor_are_scored(invoke, flows):
    result = invoke("replay", "flows.csv", *NAIVE, "--last-steps", "7", "--json")

    records = [json.loads(line) for line in lines(result)]
    assert [each["scored"] for each in records] == [7, 7]
    assert [each["scored_from"][:10] for each in records] == ["2021-07-24", "2021-07-14"]
    assert [each["scored_to"][:10] for each in records] == ["2021-07-30", "2021-07-20"]


def test_last_steps_never_reach_into_the_warm_up(invoke, flows):
    flags = ["--sensor", "a", "--warmup", "57", "--last-steps", "7", "--json"]

    (record,) = map(json.loads, lines(invoke("replay", "flows.csv", *NAIVE, *flags)))

    assert record["scored"] == 3


def test_last_steps_and_steps_contradict_each_other(invoke, flows):
    result = invoke("replay", "flows.csv", *NAIVE, "--last-steps", "7", "--steps", "7")

    require_contract(result, 2, "--last-steps (last_steps= in Python) must be left out with --step")


def test_with_several_horizons_the_table_says_which_one_it_shows(invoke, flows):
    flags = ["--sensor", "a", "--warmup", "10"]

    one = invoke("replay", "flows.csv", *NAIVE, *flags)
    several = invoke("replay", "flows.csv", *NAIVE, *flags, "--horizon", "3")

    assert "steps ahead" not in one.stdout
    assert several.stdout.startswith("Errors one step ahead\n")
    _, by_rmse, by_relative = several.stdout.split("\n\n")
    assert by_rmse.startswith("RMSE by the number of steps ahead\n")
    assert by_rmse.split()[-5:] == ["a", "last", "1", "2", "3"]
    heading, *_, row = by_relative.splitlines()
    assert heading == "RMSE relative to the naive forecast, by the number of steps ahead"
    assert row.split() == ["a", "last", "0.143", "0.286", "0.429"]  # a week ago is 7 away


def test_python_scores_the_last_steps_too():
    frame = pd.DataFrame(
        {
            "time": pd.date_range("2021-06-13", periods=5 * DAY, freq="h"),
            "a": daily(5 * DAY),
        }
    )

    run = replay(Forecaster("1h", train_size=48), frame, last_steps=10)
    table = compare(frame, ["last"], last_steps=10)

    assert len(run.times) == len(table.runs[0].times) == 10
    assert run.scored_span == ("2021-06-17T14:00:00", "2021-06-17T23:00:00")
    with pytest.raises(InvalidInputError, match="last_steps must be a whole number of at least 1"):
        compare(frame, ["last"], last_steps=0)
