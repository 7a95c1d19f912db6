"""The next steps from the command line: of files and saved forecasters; help and versions."""

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, __version__, forecast
from tests.support.commands import press_after

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

    result = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--save", ".")

    assert "ramp: 20 new steps, 1 late, 119 known and skipped" in result.stderr
    assert Forecaster.load(tmp_path / "ramp.sr").counts["late"] == 1


def test_the_forecaster_is_saved_on_request(invoke, saved, tmp_path):
    result = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--save", ".")

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

    inspected = invoke("inspect", "ramp.sr")
    without = invoke("forecast", "ramp.sr", "--readings", "new.csv")
    by_flag = invoke("forecast", "ramp.sr", "--readings", "new.csv", "--extras", "rain=1")
    by_file = invoke("forecast", "ramp.sr", "--readings", "ahead.csv")

    assert "forecast by model, with the last known extras" in inspected.stdout
    assert without.exit_code == 2
    assert "rain must be known at the next step" in without.stderr
    assert by_flag.exit_code == by_file.exit_code == 0, by_flag.output + by_file.output


FLOWS = pd.DataFrame({"time": HOURS, "a": VALUES, "b": 2 * VALUES})
QUICK = ("--horizon", "24", "--train-size", "48")


@pytest.fixture
def flows(tmp_path):
    """Return a table of two sensors, which is also the file flows.csv."""
    FLOWS.to_csv(tmp_path / "flows.csv", index=False)
    return FLOWS


def test_the_next_day_of_every_sensor_of_a_file(invoke, flows):
    result = invoke("forecast", "flows.csv", *QUICK)

    assert result.exit_code == 0, result.output
    assert "b: 140 steps of 1h, 2021-06-13T00:00 to 2021-06-18T19:00" in result.stderr
    for name in "ab":
        assert f"{name}: 24 steps of 1h by the model, 90% intervals\n" in result.stdout
    rows = [line for line in result.stdout.splitlines() if line.startswith("2021-06-1")]
    assert len(rows) == 48
    expected = forecast(flows, horizon=24, train_size=48)
    assert float(rows[24].split()[1]) == pytest.approx(expected["value"][24], rel=1e-5)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_forecasts_go_to_a_file(ending, invoke, flows, tmp_path):
    result = invoke("forecast", "flows.csv", *QUICK, "--out", f"next{ending}")
    again = invoke("forecast", "flows.csv", *QUICK, "--out", f"next{ending}")

    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert f"Forecasts: next{ending}" in result.stderr
    assert again.exit_code == 0, again.output  # it may replace its own file
    read = pd.read_parquet if ending == ".parquet" else pd.read_csv
    written = read(tmp_path / f"next{ending}")
    assert list(written.columns) == ["sensor", "time", "value", "lower", "upper"]
    assert written["value"].tolist() == forecast(flows, horizon=24, train_size=48)["value"].tolist()


def test_a_pipe_is_read_once(invoke, flows):
    read, write = os.pipe()
    with os.fdopen(write, "w") as pipe:
        flows.to_csv(pipe, index=False)

    result = invoke("forecast", f"/dev/fd/{read}", *QUICK, "--json")

    os.close(read)
    assert result.stdout == invoke("forecast", "flows.csv", *QUICK, "--json").stdout != ""


def test_csv_and_json_go_to_standard_output(invoke, flows):
    rows = invoke("forecast", "flows.csv", *QUICK, "--out", "-").stdout.splitlines()
    lines = invoke("forecast", "flows.csv", *QUICK, "--json").stdout.splitlines()

    assert rows[0] == "sensor,time,value,lower,upper"
    assert [float(row.split(",")[2]) for row in rows[1:]] == [
        json.loads(line)["value"] for line in lines
    ]


@pytest.mark.slow
def test_workers_give_the_same_forecasts(invoke, flows):
    alone, several = (
        invoke("forecast", "flows.csv", *QUICK, "--json", "--jobs", jobs) for jobs in ("1", "2")
    )

    assert several.exit_code == 0, several.output
    assert several.stdout == alone.stdout


def test_a_figure_is_drawn_and_replaces_no_other_file(invoke, flows, tmp_path):
    (tmp_path / "photo.png").write_bytes(b"another picture")
    (tmp_path / "next.png").write_bytes(b"\x89PNG by streamridge")

    figure = ["forecast", "flows.csv", *QUICK, "--plot"]
    result = invoke(*figure, "next.png")

    assert result.exit_code == 0, result.output
    assert "Figure: next.png" in result.stderr
    assert (tmp_path / "next.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "plot must be new" in invoke(*figure, "photo.png").stderr
    assert "--plot must end in .png or .svg, got 'next.gif'" in invoke(*figure, "next.gif").stderr


def test_forecasters_are_saved_and_continue_together(invoke, flows, tmp_path):
    flows[:120].to_csv(tmp_path / "before.csv", index=False)

    first = invoke("forecast", "before.csv", *QUICK, "--save", "models", "--quiet")
    then = ["forecast", "models", "--readings", "flows.csv", "--json"]
    result = invoke(*then, "--save", "models")
    (tmp_path / "models" / "damaged.sr").write_bytes(b"streamridge state file\n")
    one_by_one = invoke("forecast", "models", "--json", "--horizon", "3")

    assert first.exit_code == result.exit_code == 0, result.output
    assert "a: 20 new steps, 120 known and skipped" in result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["sensor"] for line in lines] == 24 * ["a"] + 24 * ["b"]
    assert lines[0]["time"] == "2021-06-18T20:00:00"
    assert one_by_one.exit_code == 3
    assert "error: damaged: models/damaged.sr is damaged" in one_by_one.stderr
    shorter = [json.loads(line) for line in one_by_one.stdout.splitlines()]
    assert shorter == [line for line in lines if line["ahead"] <= 3]


def test_two_forecasters_of_one_sensor_learn_from_the_same_readings(invoke, saved, tmp_path):
    (tmp_path / "copy.sr").write_bytes((tmp_path / "ramp.sr").read_bytes())

    result = invoke("forecast", "ramp.sr", "copy.sr", "--readings", "new.csv", "--json")

    values = [json.loads(line)["value"] for line in result.stdout.splitlines()]
    assert values[:2] == values[2:]


def test_forecasters_of_two_kinds_share_standard_input(invoke, flows, tmp_path):
    for name, tz in (("a", None), ("b", "Europe/London")):
        Forecaster("1h", sensor=name, tz=tz).save(tmp_path / f"{name}.sr")
    rows = flows[:4].to_csv(index=False)

    result = invoke("forecast", "a.sr", "b.sr", "--readings", "-", "--json", input=rows)

    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 2


def test_notes_about_new_readings_are_printed(invoke, tmp_path):
    Forecaster("1h", sensor="a").save(tmp_path / "a.sr")
    rows = FLOWS.melt("time", var_name="sensor", value_name="flow").assign(speed=50.5)
    rows.iloc[:4].to_csv(tmp_path / "rows.csv", index=False)

    result = invoke("forecast", "a.sr", "--readings", "rows.csv")

    assert result.stderr.count("'flow' is read, column 'speed' is left out") == 1
    assert "a: the history is too short for a model, which needs 72 steps" in result.stderr


def test_forecasters_without_a_name_are_called_after_their_files(invoke, tmp_path):
    for name in ("north", "south"):
        forecaster = Forecaster("1h")
        forecaster.observe("2021-06-13T00:00", 5.0)
        forecaster.save(tmp_path / f"{name}.sr")

    shown = invoke("forecast", "north.sr", "south.sr").stdout
    lines = invoke("forecast", "north.sr", "south.sr", "--json").stdout.splitlines()
    rows = invoke("forecast", "north.sr", "south.sr", "--out", "-").stdout.splitlines()

    assert "north: 1 step of 1h" in shown
    assert "south: 1 step of 1h" in shown
    assert [json.loads(line)["sensor"] for line in lines] == ["north", "south"]
    assert [row.split(",")[0] for row in rows] == ["sensor", "north", "south"]


OTHER_KINDS = {
    "levels": ("2021-06-13T00:00", "0.8", "levels must be the same for one table, got 80% for 'x'"),
    "an index": ("0", None, "times must be of one kind for one table, got whole numbers for 'x'"),
    "offsets": ("2021-06-13T00:00+02:00", None, "got dates with an offset for 'x' and dates with"),
}


@pytest.mark.parametrize(("first", "level", "message"), OTHER_KINDS.values(), ids=OTHER_KINDS)
def test_forecasters_of_other_kinds_need_no_joint_table(first, level, message, invoke, tmp_path):
    for name, time, own in (("x", first, level), ("y", "2021-06-13T00:00", None)):
        other = Forecaster(1 if time == "0" else "1h", sensor=name, level=float(own or 0.9))
        other.observe(int(time) if time == "0" else time, 5.0)
        other.save(tmp_path / f"{name}.sr")

    shown = invoke("forecast", "x.sr", "y.sr")
    lines = invoke("forecast", "x.sr", "y.sr", "--json").stdout.splitlines()
    table = invoke("forecast", "x.sr", "y.sr", "--out", "next.csv", "--quiet")

    assert shown.exit_code == 0, shown.output
    assert [json.loads(line)["sensor"] for line in lines] == ["x", "y"]
    assert table.exit_code == 3
    assert message in table.stderr
    assert table.stderr.count("\n") == 1
    assert not (tmp_path / "next.csv").exists()


def test_ctrl_c_leaves_what_is_complete(invoke, flows, tmp_path, monkeypatch):
    press_after(monkeypatch, 2)

    result = invoke("forecast", "flows.csv", *QUICK, "--out", "next.csv")

    assert result.exit_code == 130
    assert "Stopped early." in result.stderr
    assert set(pd.read_csv(tmp_path / "next.interrupted.csv")["sensor"]) == {"a"}
    assert not (tmp_path / "next.csv").exists()


def test_a_sensor_that_fails_costs_only_itself(invoke, flows, tmp_path):
    large_b = flows["b"].where(flows.index != 7, 1e13)
    flows.assign(b=large_b).to_csv(tmp_path / "large.csv", index=False)
    invoke("forecast", "flows.csv", *QUICK, "--save", "models", "--quiet")
    flows.rename(columns={"b": "c"}).to_csv(tmp_path / "other.csv", index=False)

    large = invoke("forecast", "large.csv", *QUICK, "--json")
    other = invoke("forecast", "models", "--readings", "other.csv", "--json")

    for result in (large, other):
        assert result.exit_code == 3
        assert {json.loads(line)["sensor"] for line in result.stdout.splitlines()} == {"a"}
    assert "error: b: value must be at most 1e+12 in size, got 1e+13." in large.stderr
    assert "error: b: the readings must have a column 'b', got 'a', 'c'." in other.stderr


def test_extras_of_the_steps_ahead_come_from_later_rows(invoke, tmp_path):
    rain = np.arange(140) % 3
    table = pd.DataFrame({"time": HOURS, "a": VALUES - 9 * rain, "rain": rain})
    table.loc[136:, "a"] = np.nan
    table.to_csv(tmp_path / "rain.csv", index=False)
    table[:138].to_csv(tmp_path / "short.csv", index=False)
    flags = ("--horizon", "4", "--train-size", "96", "--json", "--extras")

    result = invoke("forecast", "rain.csv", *flags, "rain")
    missing = invoke("forecast", "short.csv", *flags, "rain")
    filled = invoke("forecast", "short.csv", *flags, "rain=1")

    values = [json.loads(line)["value"] for line in result.stdout.splitlines()]
    expected = forecast(table, horizon=4, train_size=96, extras=("rain",))
    assert values == expected["value"].tolist()
    assert missing.exit_code == 2
    assert "rain must be known at every step ahead, got none for 2021-06-18T18:00" in missing.stderr
    assert filled.exit_code == 0, filled.output


REFUSED = {
    "both kinds of files": (["flows.csv", "ramp.sr"], "got both: 'ramp.sr', 'flows.csv'"),
    "a folder without forecasters": (["empty"], "must hold saved forecasters (.sr), got none"),
    "more steps than were fitted": (["ramp.sr", "--horizon", "3"], "horizon must be at most 2"),
    "a model of a saved forecaster": (["ramp.sr", "--model", "long"], "--model must be left out"),
    "a start of a saved forecaster": (
        ["ramp.sr", "--hyperparameter", "regularization=1"],
        "--hyperparameter must be left out because the saved forecaster decides it",
    ),
    "a zone of a saved forecaster": (["ramp.sr", "--tz", "UTC"], "--tz must be left out"),
    "readings for a file": (["flows.csv", "--readings", "flows.csv"], "--readings must be left"),
    "unknown extras": (
        ["ramp.sr", "--extras", "rain=1"],
        "extras must be left out, since ramp.sr has no extras",
    ),
    "a flag as a folder": (["ramp.sr", "--save", "--json"], "--save must be a folder"),
    "no such file": (["nothing.csv"], "nothing.csv must be a file that can be read"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused(arguments, message, invoke, flows, saved, tmp_path):
    (tmp_path / "empty").mkdir()

    result = invoke("forecast", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


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
    small = ["--sensor", "ramp-3", "--train-size", "96"]

    forecast = invoke(*examples["forecast"], *small, "--save", "models")
    results = [invoke(*examples["inspect"]), forecast]

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
