import json
from functools import partialmethod

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from streamridge.cli.main import app
from tests.support.figures import save_blank

SMALL = ["demo", "--days", "2", "--warmup-days", "4", "--train-size", "192", "--jobs", "1"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return the output of the demo and its folder."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.delenv("COLUMNS", raising=False)
        patched.setattr(Figure, "savefig", partialmethod(save_blank, drawn=["demo.png"]))
        return CliRunner().invoke(app, [*SMALL, "--out", "here"]), folder / "here"


def test_the_demo_writes_a_report_and_prints_its_path(shown):
    result, folder = shown

    assert result.exit_code == 0, result.output
    for word in ("mainline-1", "mainline-5", "ramp-3", "fixed", "ohl", "RMSE", "against fixed"):
        assert word in result.stdout
    assert "here/index.html" in result.stderr
    page = (folder / "index.html").read_text()
    assert "ramp-3" in page
    assert (folder / "roads.csv").read_text().startswith("time,mainline-1,")
    assert len((folder / "predictions.csv").read_text().splitlines()) == 1 + 12 * 192
    assert list(folder.glob("*.png"))


@pytest.mark.slow
def test_json_is_one_object_per_sensor_and_method_and_nothing_else(invoke):
    result = invoke(*SMALL, "--json")

    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["method"] for record in records] == ["ohl", "fixed", "last", "week"] * 3
    assert all(record["rmse"] > 0 and record["scored"] == 192 for record in records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--days", "1"], "--days"),
        (["demo", "--train-size", "5"], "--train-size"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--colour", "red"], "No such option"),
        (["foretell"], "No such command"),
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
    assert "error: out must be a folder that can be written, got 'taken': " in result.stderr


def test_without_matplotlib_the_extra_is_named_before_any_work(invoke, monkeypatch, tmp_path):
    monkeypatch.setattr("streamridge.cli.commands.find_spec", lambda name: None)

    result = invoke(*SMALL)

    assert result.exit_code == 1
    assert "pip install 'streamridge[plot]'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_demo_writes_a_picture_and_prints_the_start_of_the_roadworks(shown):
    result, folder = shown

    assert "Roadworks begin on 2017-01-06." in " ".join(result.stderr.split())
    assert 20_000 < (folder / "demo.png").stat().st_size < 300_000
