import json

import numpy as np
import pytest

from streamridge.experiments import outputs
from streamridge.experiments.outputs import table_of, write_json
from streamridge.experiments.regret.page import write_regret
from streamridge.experiments.regret.study import run_regret
from streamridge.experiments.synthetic.page import write_synthetic
from streamridge.experiments.synthetic.panels import OTHER_PANELS, PANELS
from streamridge.experiments.synthetic.study import run_synthetic
from streamridge.report.html_tables import document
from streamridge.report.page import page
from tests.support.studies import TOY_REGRET


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Let pictures be quick to draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "DOTS_PER_INCH", 20)
        yield


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """Return the folder of a short synthetic study of both panels and another reading."""
    folder = tmp_path_factory.mktemp("synthetic")
    results = run_synthetic([0, 1], 30, panels=(*PANELS, OTHER_PANELS[1]))
    command = "streamridge reproduce synthetic --quick"
    write_synthetic(results, folder, command=command, requested=8)
    return folder


@pytest.fixture(scope="module")
def regret(tmp_path_factory):
    """Return the folder of a tiny experiment on regret."""
    folder = tmp_path_factory.mktemp("regret")
    write_regret(run_regret(TOY_REGRET, seed=3), folder, command="streamridge reproduce regret")
    return folder


def test_the_synthetic_study_writes_tables_figures_and_a_page(synthetic):
    assert {path.name for path in synthetic.iterdir()} == {
        *("results.json", "runs.csv", "readings.csv"),
        *("forecasts.png", "learning.png", "index.html"),
    }
    content = json.loads(synthetic.joinpath("results.json").read_text())
    assert len(content["runs"]) == 6
    assert len(synthetic.joinpath("runs.csv").read_text().splitlines()) == 1 + 6
    assert len(synthetic.joinpath("readings.csv").read_text().splitlines()) == 1 + 3


def test_the_synthetic_page_has_the_medians_of_every_interpretation(synthetic):
    text = synthetic.joinpath("index.html").read_text()
    content = json.loads(synthetic.joinpath("results.json").read_text())

    for record in content["readings"]:
        assert f">{record['panel']}<" in text
        assert f">{record['rmse']['OHL']['last']['median']:.3f}<" in text
    assert "squared exponential, noise 0.1" in text


def test_the_regret_study_writes_tables_figures_and_a_page(regret):
    assert {path.name for path in regret.iterdir()} == {
        *("results.json", "methods.csv", "regret.png", "refits.png", "index.html"),
    }
    content = json.loads(regret.joinpath("results.json").read_text(), parse_constant=pytest.fail)
    kinds = [record["kind"] for record in content["records"]]
    assert kinds == ["method"] * 4 + ["constants"] + ["bounds"] * 2


def test_the_regret_page_describes_constants_and_bounds_in_words(regret):
    text = regret.joinpath("index.html").read_text()
    content = json.loads(regret.joinpath("results.json").read_text())
    (constants,) = [each for each in content["records"] if each["kind"] == "constants"]
    bounds = [each for each in content["records"] if each["kind"] == "bounds"]

    for name in {*constants, *bounds[0]} - {"kind", "variation", "proposition", "theorem"}:
        assert f">{name}<" not in text
        assert f">{name.replace('_', ' ')}<" not in text
    for number in (constants["lipschitz"], constants["diameter"], bounds[1]["variation"]):
        assert f">{number:.3g}<" in text
    lazy = next(each for each in content["records"] if each["name"] == "lazy, m = 4")
    assert f">{1e3 * lazy['fresh_regret'][-1]:.3f}<" in text
    assert text.count("as printed") == 2
    assert "nan" not in text.lower()


def test_figures_are_hidden_without_scripts_only_if_a_script_draws_them():
    hidden = "<noscript><style>figure {display: none}</style></noscript>"

    assert hidden in page("drawn", [])
    assert hidden not in document("pictures", [])


def test_a_bound_that_does_not_exist_is_a_dash():
    cells = table_of(["m", "bound"], [["1", np.nan], ["2", np.inf], ["3", -3.0]], ".3g")

    assert cells.count('<td class="">\N{EN DASH}</td>') == 2
    assert "\N{MINUS SIGN}3" in cells


def test_a_line_separates_summary_rows():
    table = table_of(
        ["of", "x"], [["a", 1.0], ["b", 3.0], ["mean", 2.0], ["paper", 9.0]], summary_rows=2
    )

    rows = table.split("<tbody>")[1].split("<tr")[1:]
    assert ["first" in row for row in rows] == [False, False, True, False]


def test_text_in_tables_is_escaped():
    table = table_of(["<h>", "<i>"], [["<a>", "<b>"]])

    for tag in ("<h>", "<i>", "<a>", "<b>"):
        assert tag not in table


def test_nested_values_become_plain_json(tmp_path):
    write_json(tmp_path / "a.json", {"a": [np.nan, {"b": (np.inf, 1.5)}], "c": "x", "d": None})

    text = (tmp_path / "a.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": [None, {"b": [None, 1.5]}],
        "c": "x",
        "d": None,
    }


def test_an_interrupted_synthetic_study_shows_its_finished_runs(tmp_path):
    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    results = run_synthetic([0, 1, 2], 30, panels=PANELS, progress=stop)

    page = write_synthetic(
        results, tmp_path, command="streamridge reproduce synthetic", requested=6
    )
    assert len(results) == 2
    assert "Stopped early: 4 of 6 runs are missing." in page.read_text()
