import json
from functools import partialmethod

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from streamridge.cli.main import app
from tests.support.figures import save_blank
from tests.support.hostile_files import column, require_contract

SMALL = ["demo", "--days", "2", "--warmup-days", "2", "--train-size", "96", "--jobs", "1"]


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


def test_without_matplotlib_there_is_no_report_and_the_extra_is_named(
    invoke, monkeypatch, tmp_path
):
    monkeypatch.setattr("streamridge.cli.commands.find_spec", lambda name: None)
    monkeypatch.setattr("streamridge.cli.demo.METHODS", ["last"])

    result = invoke(*SMALL)

    assert result.exit_code == 0, result.output
    assert "There is no report: matplotlib and plotly must be installed" in result.stderr
    assert "pip install 'streamridge[plot]' (in a checkout: pip install '.[plot]')" in result.stderr
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"roads.csv", "predictions.csv"}


def test_a_report_without_matplotlib_is_refused_before_any_work(invoke, monkeypatch, tmp_path):
    monkeypatch.setattr("streamridge.cli.commands.find_spec", lambda name: None)
    (tmp_path / "flow.csv").write_text(column(1, 2, 3))

    result = invoke("replay", "flow.csv", "--report", "page", "--predictions", "p.csv")

    assert result.exit_code == 1
    assert "error: matplotlib must be installed for this. Install it with: pip" in result.stderr
    assert not (tmp_path / "p.csv").exists()


def test_the_report_of_the_demo_explains_itself(shown):
    _, folder = shown

    page = (folder / "index.html").read_text()
    assert page.count("roadworks begin") >= 3 * 5  # in the figures over time of three sensors
    assert "online hyperparameter learning" in page
    assert "day, 1 step ago" in page
    assert "day lags" not in page


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("2017-01-06", "--event must be a time and a text, such as '2021-06-13T08:00=roadworks'"),
        ("soon=works", "--event must be a time and a text"),
        ("7=works", "--event must be at a time, as the readings are, got '7=works'"),
    ],
)
def test_an_event_that_cannot_be_marked_is_refused(event, said, invoke, tmp_path):
    (tmp_path / "flow.csv").write_text(column(1, 2, 3))

    result = invoke("replay", "flow.csv", "--method", "last", "--warmup", "0", "--event", event)

    require_contract(result, 2, said)


def test_the_demo_writes_a_picture_and_prints_the_start_of_the_roadworks(shown):
    result, folder = shown

    assert "Roadworks begin on 2017-01-04." in " ".join(result.stderr.split())
    assert 20_000 < (folder / "demo.png").stat().st_size < 300_000
