"""Flags that make no sense, and names of sensors that no terminal or disk was made for."""

import json
import re

import pytest

from streamridge import Forecaster
from streamridge.errors import visible
from tests.support.hostile_files import (
    SHOWN,
    Row,
    column,
    named,
    refused,
    require_contract,
    require_readings,
    stamps,
    written,
)

GOOD = column(1, 2, 3)
LONG = column(*[1, 2, 3] * 20)
INDEX = stamps(0, 1, 2)
# The time of the reading that is too large, as messages say it.
LARGE = "2021-07-21T00:00:00"

FLAGS = {
    "a sensor that is not there": refused(
        GOOD, "sensors must be among 'a', got 'b'", "--sensor", "b"
    ),
    "a sensor without a name": refused(GOOD, "sensors must be among 'a', got ''", "--sensor", ""),
    "an end before the start": refused(
        GOOD,
        "--to (to= in Python) must not be before --from (from_= in Python), got '2021-06-01', "
        "which is before '2021-06-03'",
        *("--from", "2021-06-03", "--to", "2021-06-01"),
    ),
    "an end before the start of an index": refused(
        INDEX, "must not be before --from", "--from", "2", "--to", "1"
    ),
    "a start that is no time": refused(
        GOOD, "--from (from_= in Python) must be an ISO 8601 time", "--from", "yesterday"
    ),
    "an end that is no time": refused(
        GOOD, "--to (to= in Python) must be an ISO 8601 time", "--to", "2021-02-30"
    ),
    "a start behind all readings": refused(
        GOOD, "must hold at least one value, got none", "--from", "2031-01-01"
    ),
    "a time to exclude, not a span": refused(
        GOOD, "exclude must be START/END", "--exclude", "2021-06-01"
    ),
    "words to exclude": refused(GOOD, "exclude must be START/END", "--exclude", "b/a"),
    "a span that ends before it starts": refused(
        GOOD, "exclude must not end before it starts", "--exclude", "2021-06-02/2021-06-01"
    ),
    "a level above all": refused(GOOD, "level must lie between 0 and 1, got 1.5", "--level", "1.5"),
    "a level in percent": refused(GOOD, "Write 0.9 for 90 %", "--level", "90"),
    "a level that is no number": refused(GOOD, "level must be", "--level", "nan"),
    "a level of nothing": refused(GOOD, "--level must be numbers", "--level", ""),
    "bounds in the wrong order": refused(
        GOOD, "bounds must have the lower below the upper, got (5.0, 1.0)", "--bounds", "5,1"
    ),
    "three bounds": refused(GOOD, "--bounds must be two numbers", "--bounds", "1,2,3"),
    "bounds that are no numbers": refused(GOOD, "bounds must be finite", "--bounds", "nan,1"),
    "more lags than can be": refused(
        GOOD, "lags must be at most 3000, got 1000000000", "--lags", "1000000000"
    ),
    "no lags": refused(GOOD, "Invalid value for '--lags'", "--lags", "0"),
    "lags in words": refused(GOOD, "Invalid value for '--lags'", "--lags", "few"),
    "one row to fit": refused(GOOD, "Invalid value for '--train-size'", "--train-size", "1"),
    "seasons in words": refused(GOOD, "season must be a time such as", "--seasons", "x"),
    "seasons of nothing": refused(GOOD, "season must be positive", "--seasons", "0d"),
    "seasons below a step": refused(GOOD, "season must be 2 to 20160 steps", "--seasons", "1h"),
    "a zone of another planet": refused(
        GOOD, "tz must be the name of a time zone such as Europe/London, got 'Mars'", "--tz", "Mars"
    ),
    "a zone that is a path": refused(GOOD, "tz must be", "--tz", "../../etc/passwd"),
    "a zone without a name": refused(GOOD, "tz must be", "--tz", ""),
    "a zone for an index": refused(INDEX, "tz must be left out", "--tz", "Europe/London"),
    "holidays of no country": refused(GOOD, "holidays must be a country", "--holidays", "XX"),
    "holidays in no file": refused(GOOD, "holidays must be a country", "--holidays", "no.txt"),
    "holidays in a file of readings": refused(
        GOOD, "flow.csv line 1: a holiday must be a date", "--holidays", "flow.csv"
    ),
    "a method that nobody knows": refused(
        GOOD, "method must be one of 'ohl', 'ohl+', 'hoag'", "--methods", "foo"
    ),
    "an engine that nobody knows": refused(GOOD, "Invalid value for '--engine'", "--engine", "bar"),
    "no processes": refused(GOOD, "Invalid value for '--jobs'", "--jobs", "0"),
    "steps below zero": refused(GOOD, "Invalid value for '--steps'", "--steps", "-1"),
    "more steps than any machine counts": refused(
        GOOD, "steps must be a whole number of at least 1 and below 2e+19", "--steps", "9" * 30
    ),
    "a seed that no machine holds": refused(
        GOOD, "seed must be a whole number of at least 0 and below 2e+19", "--seed", "9" * 30
    ),
    "a warm-up below zero": refused(GOOD, "Invalid value for '--warmup'", "--warmup", "-1"),
    "a warm-up beyond the file": refused(
        GOOD, "more than the 500 steps of the warm-up, got 3. Pass a smaller", "--warmup", "500"
    ),
    "no steps ahead": refused(GOOD, "Invalid value for '--horizon'", "--horizon", "0"),
    "more steps ahead than between refits": refused(
        LONG,
        "horizon must be at most update_every (5), got 30",
        *("--model", "paper", "--horizon", "30", "--update-every", "5"),
    ),
    "a model that nobody knows": refused(GOOD, "Invalid value for '--model'", "--model", "foo"),
    "a layout that nobody knows": refused(GOOD, "Invalid value for '--layout'", "--layout", "x"),
    "a long layout of a wide file": refused(
        GOOD, "flow.csv must have a column named one of 'unique_id'", "--layout", "long"
    ),
    "a station file that is none": refused(
        GOOD, "flow.csv must be a PeMS station file", "--layout", "pems"
    ),
    "a decimal mark that is none": refused(GOOD, "Invalid value for '--decimal'", "--decimal", ";"),
    "a date format in words": refused(
        GOOD, "date_format must be a pattern with a year", "--date-format", "yyyy-mm-dd"
    ),
    "a date format with a part twice": refused(
        GOOD, "date_format must be a pattern with a year", "--date-format", "%Y-%m-%d %d"
    ),
    "a date format that does not fit": refused(
        GOOD,
        "flow.csv line 2, column time: must be a time written as %d/%m/%Y",
        *("--date-format", "%d/%m/%Y"),
    ),
    "a size in words": refused(GOOD, "largest must be a size such as", "--largest", "much"),
    "a way to aggregate that is none": refused(
        GOOD, "Invalid value for '--aggregate'", "--aggregate", "median"
    ),
    "a step of nothing": refused(GOOD, "step must be positive", "--step", "0min"),
    "a step below zero": refused(GOOD, "step must be a time such as", "--step", "-1h"),
    "a step in words": refused(GOOD, "step must be a time such as", "--step", "fortnight"),
    "a step of an index for times": refused(GOOD, "step must be a time such as", "--step", "1"),
    "every number missing": refused(
        column(1, 1), "at least one sensor must have values, got none in 'a'", "--missing", "1"
    ),
    "a hyperparameter that is none": refused(
        GOOD, "hyperparameter must be one of 'weight", "--hyperparameter", "x=1"
    ),
    "a hyperparameter without a number": refused(
        GOOD, "--hyperparameter must be a name and a number", "--hyperparameter", "x"
    ),
    "a hyperparameter out of bounds": refused(
        GOOD, "got regularization = -1", "--hyperparameter", "regularization=-1"
    ),
    "an extra that is not there": refused(
        GOOD, "extras must be columns of flow.csv, got 'rain'", "--extra", "rain"
    ),
    "the only sensor as an extra": refused(GOOD, "flow.csv must have a time", "--extra", "a"),
    "a scheduler at no address": refused(
        GOOD, "scheduler must be an address", "--scheduler", "nonsense"
    ),
    "a flag that nobody knows": refused(GOOD, "No such option: --frobnicate", "--frobnicate"),
    "nothing to save": refused(
        GOOD, "save must be left out if no method has a forecaster to save", "--save", "models"
    ),
}


@pytest.mark.parametrize("row", FLAGS.values(), ids=FLAGS)
def test_a_flag_that_makes_no_sense_is_refused(row, invoke, tmp_path):
    written(row.content, tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *SHOWN, *row.flags)

    require_contract(result, row.code, row.said)


QUICK = ("--train-size", "24", "--warmup", "40", "--steps", "12", "--json")
RUNS = {
    "more lags than readings": Row(
        LONG, ("--lags", "1000"), 3, "warning: a (ohl): no model was fitted"
    ),
    "a reading beyond the largest size": Row(
        column(*[1, 2] * 25, "5e12", 3),
        code=3,
        said=f"at {LARGE}: value must be at most 1e+12 in size, got 5e+12. Pass --exclude {LARGE}",
    ),
    "a reading beyond the largest size, excluded": Row(
        column(*[1, 2] * 25, "5e12", 3), ("--exclude", f"{LARGE}/{LARGE}")
    ),
    "one value throughout": Row(column(*[5] * 60)),
    "zero throughout": Row(column(*[0] * 60)),
    "everything excluded": Row(
        LONG, ("--exclude", "2020-01-01/2022-01-01"), 3, "warning: a (ohl): no step was scored"
    ),
}


@pytest.mark.parametrize("row", RUNS.values(), ids=RUNS)
def test_a_run_ends_with_figures_or_says_what_is_missing(row, invoke, tmp_path):
    written(row.content, tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *QUICK, *row.flags)

    require_contract(result, row.code, row.said)
    if row.code == 0:
        [record] = map(json.loads, result.stdout.splitlines())
        assert 0 <= record["rmse"] < 1
        assert record["scored"] >= 11


NAMES = {
    "escape sequences": "a\x1b[31mred\x1b]0;title\x07",
    "a line break": "a\nerror: all is lost",
    "a carriage return": "a\rb",
    "an emoji": "🚗",
    "a mark that turns the direction": "a\u202eb",
    "a character without width": "a\u200b",
    "slashes": "../../etc/passwd",
    "a backslash": "..\\a",
    "a device of Windows": "CON",
    "dots": "..",
    "a dash": "-",
    "a flag": "--force",
    "5000 letters": "x" * 5000,
    "HTML": "<script>alert(1)</script>",
    "markup of the terminal": "[bold]a[/] [red]",
    "a quote": 'a"b',
    "a formula of a spreadsheet": "=cmd|'/c calc'!A1",
    "spaces within": "a  b",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_control_characters_of_a_name_are_escaped(name, invoke, tmp_path):
    written(named(name), tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *SHOWN)

    require_contract(result, 0, " ".join(f"{visible(name)}: 2 steps of 1d".split()))
    require_readings(result, [1, 2])


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_never_leads_outside_the_folder(name, invoke, tmp_path):
    (tmp_path / "here").mkdir()
    written(named(name), tmp_path / "here" / "flow.csv")

    result = invoke("replay", "here/flow.csv", "--warmup", "0", "--save", "here/models", "--quiet")

    require_contract(result, 3)
    [saved] = (tmp_path / "here" / "models").iterdir()
    assert saved.suffix == ".sr"
    assert Forecaster.load(saved).settings.sensor == name
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_names_that_differ_only_in_case_have_distinct_files(invoke, tmp_path):
    written("time,Ramp,ramp\n2021-06-01,1,3\n2021-06-02,2,4\n", tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", "--warmup", "0", "--save", "models", "--quiet")

    require_contract(result, 3)
    files = [path.name.lower() for path in (tmp_path / "models").iterdir()]
    assert len(set(files)) == 2


def test_a_row_that_names_no_sensor_is_refused(invoke, tmp_path):
    written("sensor,time,value\n,2021-06-01,1\n", tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *SHOWN)

    require_contract(result, 2, "flow.csv line 2, column sensor: must be the name of a sensor")


# Commands as they are typed, and a part of what is said.
COMMANDS = {
    "a command that nobody knows": ("frobnicate", "No such command 'frobnicate'"),
    "no file": ("replay", "Missing argument 'FILE'"),
    "no days to simulate": ("simulate --days 0", "Invalid value for '--days'"),
    "days beyond all memory": ("simulate --days 100000000000", "Invalid value for '--days'"),
    "roads in a folder": ("simulate --out here.csv", "out must be a file, got the folder"),
    "roads of an unknown kind": ("simulate --days 1 --out s.xyz", "must end in .csv"),
    "roads over a file of readings": ("simulate --days 1 --out flow.csv", "Pass --force"),
    "a demo within a file": ("demo --out flow.csv", "out must be a folder that can be written"),
    "methods to compare that nobody knows": (
        "compare flow.csv --methods foo",
        "method must be one of 'ohl'",
    ),
    "no methods to compare": ("compare flow.csv --methods ,", "method must be one of .*, got none"),
    "too few readings to compare": ("compare flow.csv", "Pass a smaller --warmup"),
    "a study within a file": ("reproduce synthetic --quick --out flow.csv", "out must be a folder"),
    "a study of no file": (
        "reproduce traffic --quick --out study --data no.csv",
        "no.csv must be a file that can be read",
    ),
}


@pytest.mark.parametrize(("command", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_makes_no_sense_is_refused(command, said, invoke, tmp_path):
    written(GOOD, tmp_path / "flow.csv")
    (tmp_path / "here.csv").mkdir()

    result = invoke(*command.split())

    require_contract(result, 2)
    assert re.search(said, result.stderr)
    assert (tmp_path / "flow.csv").read_text() == GOOD
