"""A saved forecaster forecasts from the command line; help, versions and tables fit."""

import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, __version__

HOURS = pd.date_range("2021-06-13", periods=140, freq="h")
VALUES = 100 + 50 * np.sin(2 * np.pi * np.arange(140) / 24)
COMMANDS = ["demo", "replay", "compare", "forecast", "inspect", "simulate"]
COMMANDS += [f"reproduce {study}" for study in ("synthetic", "traffic", "regret")]


@pytest.fixture
def saved(tmp_path):
    """Return a forecaster of 120 hours in ramp.sr, beside new.csv, which goes on for 20."""
    history = pd.Series(VALUES[:120], HOURS[:120], name="ramp")
    forecaster = Forecaster.start(history, train_size=48, horizon=2, tz="Europe/London")
    forecaster.save(tmp_path / "ramp.sr")
    pd.DataFrame({"time": HOURS, "ramp": VALUES}).to_csv(tmp_path / "new.csv", index=False)
    return forecaster


def test_new_readings_are_learned_and_known_readings_are_skipped(invoke, saved, tmp_path):
    before = (tmp_path / "ramp.sr").read_bytes()

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--json")

    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["time"] for line in lines] == [
        "2021-06-18T20:00:00+01:00",
        "2021-06-18T21:00:00+01:00",
    ]
    for time, value in zip(HOURS[120:], VALUES[120:], strict=True):
        saved.observe(time.to_pydatetime(), value)
    assert [line["value"] for line in lines] == saved.predict().value.tolist()
    assert "ramp: 20 new steps, 120 known and skipped" in result.stderr
    assert (tmp_path / "ramp.sr").read_bytes() == before


def test_a_reading_for_an_earlier_gap_counts_as_late(invoke, tmp_path):
    history = pd.Series(VALUES[:120], HOURS[:120], name="ramp")
    history.iloc[110] = np.nan
    Forecaster.start(history, train_size=48).save(tmp_path / "ramp.sr")
    pd.DataFrame({"time": HOURS, "ramp": VALUES}).to_csv(tmp_path / "new.csv", index=False)

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--save")

    assert "ramp: 20 new steps, 1 late, 119 known and skipped" in result.stderr
    assert Forecaster.load(tmp_path / "ramp.sr").counts["late"] == 1


def test_the_forecaster_is_saved_on_request(invoke, saved, tmp_path):
    result = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--save")

    assert "Saved: ramp.sr" in result.stderr
    assert Forecaster.load(tmp_path / "ramp.sr").next_time > saved.next_time
    assert "times in Europe/London" in result.stdout


@pytest.mark.parametrize(("column", "code"), [("flow", 0), ("other", 2)])
def test_the_column_of_another_sensor_is_refused(column, code, invoke, saved, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(path.read_text().replace("ramp", column))

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv")
    named = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--sensor", column)

    assert result.exit_code == code
    assert named.exit_code == 0, named.output
    if code:
        assert "must have a column 'ramp', got 'other'" in result.stderr
        assert "--sensor" in result.stderr


def test_extras_come_from_the_file_or_a_flag(invoke, tmp_path):
    rain = np.arange(140) % 3
    table = pd.DataFrame({"time": HOURS, "ramp": VALUES, "rain": rain})
    Forecaster.start(table[:120], train_size=48, extras=("rain",)).save(tmp_path / "ramp.sr")
    table.iloc[:140].to_csv(tmp_path / "new.csv", index=False)
    table.loc[139, "ramp"] = np.nan
    table.to_csv(tmp_path / "ahead.csv", index=False)

    without = invoke("forecast", "ramp.sr", "--readings", "new.csv")
    by_flag = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--extra", "rain=1")
    by_file = invoke("forecast", "ramp.sr", "--readings", "ahead.csv")

    assert without.exit_code == 2
    assert "rain must be known at the next step" in without.stderr
    assert by_flag.exit_code == by_file.exit_code == 0, by_flag.output + by_file.output


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns_and_ends_with_an_example(command, invoke):
    result = invoke(*command.split(), "--help", env={"COLUMNS": "80"})

    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\u2026" not in result.stdout
    assert f"Example:\n    streamridge {command} " in result.stdout


def test_the_examples_of_simulate_inspect_and_forecast_run(invoke, tmp_path):
    examples = {
        command: shlex.split(invoke(command, "--help").stdout.partition("Example:\n")[2])[1:]
        for command in ("simulate", "inspect", "forecast")
    }
    quick = ["--detectors", "3", "--days", "5"]
    assert invoke(*examples["simulate"], *quick).exit_code == 0
    small = ["--sensor", "ramp-3", "--train-size", "96", "--quiet"]
    assert invoke("replay", "roads.csv", *small, "--save", "models").exit_code == 0
    (tmp_path / "roads.csv").rename(tmp_path / "new.csv")

    results = [invoke(*examples[command]) for command in ("inspect", "forecast")]

    assert [result.exit_code for result in results] == [0, 0], results[1].output


def test_the_version_is_printed(invoke):
    assert invoke("--version").stdout == f"streamridge {__version__}\n"
    assert "--install-completion" in invoke("--help").stdout


def test_the_package_runs_as_a_module():
    said = subprocess.run(
        [sys.executable, "-m", "streamridge", "--version"], capture_output=True, text=True
    )

    assert said.stdout == f"streamridge {__version__}\n"


def test_escape_sequences_in_names_are_made_visible(invoke, tmp_path):
    table = pd.DataFrame({"time": HOURS, "ra\x1b[31mmp": VALUES, "x\u202ey": VALUES})
    table.to_csv(tmp_path / "f.csv", index=False)

    result = invoke("replay", "f.csv", "--train-size", "48", "--save", "models")

    assert result.exit_code == 0, result.output
    for text in (result.stdout, result.stderr):
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
        assert r"ra\x1b[31mmp" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.assign(ramp=1000 * t.ramp),
            "ramp: 5 new steps; 5 implausible, replaced by forecasts",
        ),
        (
            lambda t: t.assign(time=t.time + pd.Timedelta("20min")),
            "ramp: 5 new steps; 5 off the grid, moved to the nearest step",
        ),
        (lambda t: t, "ramp: 5 new steps\n"),
    ],
    ids=["another unit", "another grid", "good"],
)
def test_new_readings_that_were_not_learned_from_are_counted(change, said, saved, invoke, tmp_path):
    table = pd.read_csv(tmp_path / "new.csv", parse_dates=["time"])
    change(table[120:125]).to_csv(tmp_path / "new.csv", index=False)

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv")

    assert result.exit_code == 0, result.output
    assert said in result.stderr


def test_a_reading_that_contradicts_a_known_one_is_counted(saved, invoke, tmp_path):
    time = str(saved.next_time - np.timedelta64(1, "h"))
    (tmp_path / "new.csv").write_text(f"time,ramp\n{time},12345\n")

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv")

    said = "0 new steps, 1 known and skipped; 1 different from a known reading, dropped"
    assert said in result.stderr
