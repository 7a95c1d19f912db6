import json

import pytest
from typer.testing import CliRunner

from streamridge.cli.main import app

SMALL = ["demo", "--days", "3", "--train-size", "192"]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_the_demo_prints_a_table_and_leaves_a_picture(invoke, tmp_path):
    result = invoke(*SMALL, "--out", "here")

    assert result.exit_code == 0, result.output
    for word in ("fixed", "OHL", "RMSE", "tuning", "refits"):
        assert word in result.stdout
    picture = tmp_path / "here" / "demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "demo.png" in result.stderr


def test_json_is_one_object_per_method_and_nothing_else(invoke):
    result = invoke(*SMALL, "--json")

    fixed, learned = (json.loads(line) for line in result.stdout.splitlines())
    assert (fixed["method"], learned["method"]) == ("fixed", "OHL")
    assert fixed["fits"] == learned["fits"] == 4
    assert fixed["seconds_tuning"] == 0.0 < learned["seconds_tuning"]
    assert fixed["rmse"] > 0


def test_the_same_seed_gives_the_same_errors(invoke):
    first, second = (json.loads(invoke(*SMALL, "--json").stdout.splitlines()[1]) for _ in range(2))

    assert first["rmse"] == second["rmse"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--days", "1"], "--days"),
        (["demo", "--train-size", "5"], "--train-size"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--colour", "red"], "No such option"),
        (["forecast"], "No such command"),
    ],
)
def test_a_bad_flag_is_named_and_exits_with_2(arguments, message, invoke):
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_that_cannot_be_written_is_named_before_any_work(invoke, tmp_path):
    (tmp_path / "taken").write_text("a file")

    result = invoke(*SMALL, "--out", "taken")

    assert result.exit_code == 2
    assert "error: out must be a folder that can be written, got 'taken'." in result.stderr
    assert "day 3" not in result.stderr


def test_help_ends_with_an_example_that_runs(invoke):
    result = invoke("demo", "--help")

    assert "Example: streamridge demo --days 10 --out demo" in " ".join(result.stdout.split())


def test_without_matplotlib_the_extra_is_named_before_any_work(invoke, monkeypatch):
    monkeypatch.setattr("streamridge.cli.checks.find_spec", lambda name: None)

    result = invoke(*SMALL)

    assert result.exit_code == 1
    assert "pip install 'streamridge[plot]'" in result.stderr
    assert "day 3" not in result.stderr
