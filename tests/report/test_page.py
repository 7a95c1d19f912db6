"""The page of a report: safe, complete, and in plain words."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest

from streamridge.errors import InvalidInputError
from streamridge.report import write_report
from streamridge.report.html_tables import panel
from streamridge.report.page import overview, section
from streamridge.report.sensor_runs import by_sensor
from tests.support.report_runs import (
    HOSTILE,
    Reader,
    fixed_run,
    make_run,
    only,
    run_with_experts,
    words,
)
from tests.support.tiers import tiered


@pytest.fixture(scope="module")
def page(folder):
    return Reader.of((folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_refers_only_to_files_in_its_folder(page, folder):
    addresses = [value for name, value in page.attributes if name in ("src", "href")]
    beside = {each.name for each in folder.iterdir()}

    assert "link" not in page.tags
    assert not [each for each in addresses if re.match(r"(\w+:|//)", each)]
    assert {unquote(each) for each in addresses if each[0] != "#"} == beside - {"index.html"}


def test_the_security_policy_forbids_all_requests(page):
    policy = next(value for name, value in page.attributes if value and "default-src" in value)

    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_the_plotting_library_is_embedded_once(page):
    assert sum("plotly.js v" in text[:200] for _, text in page.scripts) == 1
    assert not [name for name, _ in page.attributes if name == "integrity"]


def test_no_button_uploads_a_figure():
    script = files("streamridge.report").joinpath("page.js").read_text(encoding="utf-8")

    assert "modeBarButtons: [buttons]" in script
    assert "cloud" not in script.lower()
    assert "displaylogo: false" in script


def test_names_are_escaped(page):
    run_here = [text for kind, text in page.scripts if kind is None]

    assert len(run_here) == 2
    assert not [text for text in run_here if text.strip() == "alert(1)"]
    assert page.text.count(HOSTILE) >= 4
    assert "b" not in page.tags


def test_names_in_figures_are_escaped(page):
    texts = json.dumps(page.figures)

    assert "&lt;b&gt;vehicles" in texts
    assert "<b>" not in texts


def test_a_name_cannot_close_the_script_of_a_figure():
    html = section(1, only(make_run(method="</script><script>alert(1)")), [])

    assert len(Reader.of(html).scripts) == html.count('<script type="application/json">')


def test_the_data_of_a_figure_are_escaped():
    figure = SimpleNamespace(layout=SimpleNamespace(height=1), to_json=lambda: '["</script>"]')

    assert Reader.of(panel("caption", figure)).figures == [["</script>"]]


def test_every_interactive_figure_labels_its_axes(page):
    axes = [
        axis
        for figure in page.figures
        for name, axis in figure["layout"].items()
        if re.match(r"[xy]axis", name)
    ]

    assert len(page.figures) == 7 + 3 + 7 + 3
    assert all(axis["title"]["text"] for axis in axes)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInputError, match="report must be a folder that can be written"):
        write_report([make_run(days=2)], tmp_path / "file" / "folder", title="Roads")


def test_a_report_of_nothing_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="runs must hold at least one run, got none"):
        write_report([], tmp_path, title="Roads")


def test_there_is_a_table_of_contents_for_several_sensors_only():
    one, two = by_sensor([make_run(sensor="a"), make_run(sensor="b")])

    assert "<nav" not in overview("Roads", [one])
    assert '<a href="#sensor-2">b</a></li>' in overview("Roads", [one, two])


def test_features_have_the_names_they_are_given():
    html = section(1, only(make_run()), [], feature_names=["lag 1", "lag 2"])

    assert any("lag 1" in json.dumps(figure) for figure in Reader.of(html).figures)


def test_methods_with_constant_hyperparameters_are_named_and_not_drawn():
    html = section(1, only(fixed_run()), [])

    assert "Methods with constant hyperparameters: fixed." in words(html)
    assert len(Reader.of(html).figures) == 7


def test_weights_of_experts_follow_the_hyperparameters():
    html = section(1, only(run_with_experts(), fixed_run(days=5)), [])

    text = words(html)
    assert "Weights of the experts (ohl)A forecast is a weighted mean of experts: the model" in text
    assert text.index("Hyperparameters of ohl") < text.index("Weights of the experts (ohl)")
    assert "Weights of the experts (fixed)" not in text


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_weights_are_not_drawn(count):
    assert "Weights of the experts" not in words(section(1, only(run_with_experts(count)), []))


@pytest.mark.parametrize("steps", tiered([0, 1, 2, 30], quick=lambda steps: steps in (0, 2)))
def test_a_run_of_any_length_has_a_report(steps, tmp_path):
    run = fixed_run()
    parts = {
        name: getattr(run, name)[:steps]
        for name in ("times", "local_times", "actual", "value", "lower", "upper", "by_model")
    }

    path = write_report([replace(run, **parts)], tmp_path, title="Roads")

    assert ("No step was scored." in path.read_text(encoding="utf-8")) == (steps == 0)


def test_a_run_without_a_reading_or_a_model_has_a_report(tmp_path):
    run = make_run(days=3)
    blank = replace(run, actual=np.full(72, np.nan), path=None, refit_times=run.times[:0])

    path = write_report([blank], tmp_path, title="Roads")

    assert [each.name for each in tmp_path.glob("*.png")] == ["ramp-7-costs.png"]
    assert "No step was scored." in path.read_text(encoding="utf-8")


def test_events_are_marked_in_all_figures_over_time():
    run = run_with_experts()
    moment = run.times[100]

    html = section(1, only(run), [], events=[(moment, "works <begin>")])

    figures = [figure["layout"] for figure in Reader.of(html).figures]
    over_time = [each for each in figures if each["xaxis"]["title"]["text"] == "time"]
    assert len(over_time) >= 5
    for layout in figures:
        marks = [each["label"]["text"] for each in layout.get("shapes", ()) if "label" in each]
        assert marks == (["works &lt;begin&gt;"] if layout in over_time else [])
    first, last = over_time[0]["xaxis"]["range"]
    assert first < str(moment) < last


def test_each_method_has_a_sentence():
    text = words(overview("Roads", by_sensor([run_with_experts(), fixed_run()])))

    assert "ohl (online hyperparameter learning) tunes its hyperparameters at every refit" in text
    assert "fixed is the same model without tuning" in text
