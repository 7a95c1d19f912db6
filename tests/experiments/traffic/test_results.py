import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge.experiments import outputs
from streamridge.experiments.traffic import results as traffic_results
from streamridge.experiments.traffic.methods import METHODS
from streamridge.experiments.traffic.page import (
    figure_of_errors,
    figure_of_runtimes,
    looks_of,
    write_traffic,
)
from streamridge.experiments.traffic.results import TrafficResults, improvement
from streamridge.learners.base import Costs
from streamridge.runs.run import Run
from tests.support.tiers import tiered

STEP = np.timedelta64(15, "m")


def made(method, sensor, errors, *, total=10.0, tuning=1.0):
    """Return a run with these errors of its forecasts, which took so many seconds."""
    errors = np.asarray(errors, dtype=float)
    times = np.datetime64("2021-06-13", "us") + np.arange(len(errors)) * STEP
    value = np.zeros((len(errors), 1))
    return Run(
        sensor=sensor,
        method=method,
        step=STEP,
        times=times,
        local_times=times,
        actual=errors,
        value=value,
        lower=value - 1,
        upper=value + 1,
        by_model=np.ones(len(errors), dtype=bool),
        steps_done=len(errors),
        path=None,
        refit_times=times[:0],
        hyperparameters={},
        active_bounds={},
        costs=Costs(tuning=tuning),
        seconds=total,
        counts={"fits": 3, "tuning_fits": 4, "gradients": 2},
        level=0.9,
    )


@pytest.fixture(scope="module")
def results():
    """Return two detectors by three methods, whose figures can be worked by hand."""
    return TrafficResults(
        (
            made("FIXED", "a", [10, 10, 10, 10], total=5, tuning=0),
            made("OHL", "a", [8, 8, 6, 6], total=10, tuning=2),
            made("HOAG", "a", [5, 5, 5, 5], total=50, tuning=30),
            made("FIXED", "b", [4, 4, 4, 4], total=5, tuning=0),
            made("OHL", "b", [4, 4, 4, 4], total=30, tuning=6),
            made("HOAG", "b", [3, 3, 5, 5], total=70, tuning=50),
        )
    )


def test_improvements_are_percent_of_the_error_of_fixed(results):
    at_end = 100 * (1 - np.sqrt(50) / 10)

    assert results.improvements("OHL") == {
        "a": (pytest.approx(20), pytest.approx(at_end)),
        "b": (0, 0),
    }
    assert results.improvements("HOAG")["b"][0] == pytest.approx(25)
    assert results.improvements("FIXED") == {"a": (0, 0), "b": (0, 0)}


def test_mean_improvements_are_means_over_detectors(results):
    early, final = results.mean_improvements("OHL")

    assert early == pytest.approx(10)
    assert final == pytest.approx(50 * (1 - np.sqrt(50) / 10))


def test_mean_seconds_are_in_total_and_of_tuning(results):
    assert results.mean_seconds("HOAG") == (60, 40)
    assert np.isnan(results.mean_seconds("RDS")).all()


def test_ratios_are_ratios_of_total_seconds(results):
    assert results.ratios("HOAG") == (120 / 40, 80 / 8)
    assert results.ratios("FIXED") == (10 / 40, 0)
    assert results.ratios("OHL", to="HOAG") == (40 / 120, 8 / 80)


def test_only_detectors_with_runs_of_both_methods_are_compared(results):
    stopped = TrafficResults(results.runs[:5])

    assert stopped.ratios("HOAG") == (50 / 10, 30 / 2)
    assert stopped.mean_improvements("OHL", other="HOAG")[0] == pytest.approx(20)
    assert stopped.mean_improvements("OHL")[0] == pytest.approx(10)


def test_results_of_missing_runs_are_nan(results):
    alone = TrafficResults(results.runs[1:2])

    assert np.isnan(alone.ratios("OHL", to="RDS")).all()
    assert np.isnan(alone.mean_improvements("OHL")).all()
    assert alone.improvements("OHL") == {}


@pytest.mark.parametrize(
    ("scored", "early"), [(4, 2), (5, 3), (4000, 2000), (4001, 4000), (7296, 4000)]
)
def test_early_is_after_4000_steps_or_half_of_a_shorter_run(scored, early):
    runs = (made("OHL", "a", np.ones(scored)), made("OHL", "b", np.ones(9000)))

    assert TrafficResults(runs).early == early


def test_missing_readings_do_not_count():
    run = made("OHL", "a", [3, np.nan, -4, np.nan, 7])

    assert run.rmse_until(4) == np.sqrt((3**2 + 4**2) / 2)
    assert run.rmse_until(None) == np.sqrt((3**2 + 4**2 + 7**2) / 3)


def test_a_detector_without_readings_is_left_out_of_means():
    runs = [made("FIXED", "a", [2, 2]), made("OHL", "a", [1, 1])]
    runs += [made("FIXED", "dead", [0, 0]), made("OHL", "dead", [0, 0])]
    runs += [made("FIXED", "silent", [np.nan] * 2), made("OHL", "silent", [np.nan] * 2)]

    results = TrafficResults(tuple(runs))

    assert np.isnan(improvement(runs[3], runs[2], None))
    assert results.mean_improvements("OHL") == (50, 50)


def test_rows_have_the_numbers_of_every_run(results):
    row = results.rows()[1]

    assert (row["detector"], row["method"], row["scored"]) == ("a", "OHL", 4)
    assert (row["rmse_2"], row["rmse"]) == (8, pytest.approx(np.sqrt(50)))
    assert row["improvement_2"] == pytest.approx(20)
    assert (row["seconds_total"], row["seconds_tuning"]) == (10, 2)
    assert (row["fits"], row["gradients"]) == (7, 2)


def test_the_summary_includes_the_numbers_of_the_paper(results):
    fixed, ohl, hoag = results.summary()

    assert (hoag["method"], hoag["detectors"]) == ("HOAG", 2)
    assert (hoag["total_over_ohl"], hoag["tuning_over_ohl"]) == (3, 10)
    assert (hoag["paper_minutes_total"], hoag["paper_minutes_tuning"]) == (138, 120)
    assert round(ohl["paper_improvement"], 1) == 9.7
    assert np.isnan(fixed["paper_improvement"])


@pytest.mark.parametrize(
    ("method", "early", "final"), [("OHL", 9.0, 9.7), ("HOAG", 9.2, 10.1), ("RDS", 6.1, 6.0)]
)
def test_the_papers_table_has_the_papers_means_over_13_detectors(method, early, final):
    assert {len(column) for column in traffic_results.IMPROVEMENTS[method]} == {13}
    assert [round(mean, 1) for mean in traffic_results.paper_improvements(method)] == [early, final]


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_runtimes_are_bars_of_seconds_ordered_by_the_total_of_ohl(results):
    swapped = TrafficResults(results.runs[3:] + results.runs[:3])

    figure = figure_of_runtimes(swapped)

    total, tuning = figure.axes
    assert [[bar.get_height() for bar in bars] for bars in total.containers] == [
        *([5, 5], [10, 30], [50, 70]),
    ]
    assert [[bar.get_height() for bar in bars] for bars in tuning.containers] == [[2, 6], [30, 50]]
    assert texts(total) == ["FIXED, mean 5 s", "OHL, mean 20 s", "HOAG, mean 60 s"]
    assert texts(tuning) == ["OHL, mean 4 s", "HOAG, mean 40 s"]
    for axes in (total, tuning):
        assert axes.get_ylabel() == "seconds"
        assert axes.get_xlabel() == "detector, ordered by total time of OHL"
    figure.canvas.draw()


def test_ticks_of_seconds_are_plain_numbers(results):
    figure = figure_of_runtimes(results)
    figure.canvas.draw()

    for axes in figure.axes:
        labels = [text.get_text() for text in axes.get_yticklabels(which="both")]
        assert all(label.replace(".", "").isdigit() for label in labels if label)
        assert sum(map(bool, labels)) >= 2


def test_runtimes_of_fixed_have_no_axes_of_tuning(results):
    alone = TrafficResults(results.runs[:1])

    figure = figure_of_runtimes(alone)

    assert [axes.get_title() for axes in figure.axes] == ["whole run"]


def test_a_missing_run_has_no_bar(results):
    figure = figure_of_runtimes(TrafficResults(results.runs[:5]))

    heights = [bar.get_height() for bar in figure.axes[0].containers[2]]
    assert heights[0] == 50
    assert np.isnan(heights[1])


def test_each_detector_has_axes_of_errors_with_labels_and_a_legend(results):
    figure = figure_of_errors(results, unit="vehicles / 15 min")

    one, other = figure.axes
    assert (one.get_title(), other.get_title()) == ("a", "b")
    assert figure.get_supxlabel() == "prediction step t"
    assert figure.get_supylabel() == "RMSE(t), vehicles / 15 min"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["FIXED", "OHL", "HOAG"]
    np.testing.assert_allclose(one.lines[1].get_ydata()[[0, -1]], [8, np.sqrt(50)])
    np.testing.assert_array_equal(one.lines[1].get_xdata()[[0, -1]], [1, 4])
    figure.canvas.draw()


def test_the_lowest_axes_of_every_column_have_ticks():
    runs = [made(method, f"d{i}", [1, 2, 3, 4]) for i in range(6) for method in ("FIXED", "OHL")]

    figure = figure_of_errors(TrafficResults(tuple(runs)))
    figure.canvas.draw()

    shown = [
        any(text.get_text() and text.get_visible() for text in axes.get_xticklabels())
        and axes.xaxis.get_tick_params()["labelbottom"]
        for axes in figure.axes
    ]
    assert shown == [False, False, True, True, True, True]


def test_the_legend_of_many_methods_stays_within_the_figure(results):
    labels = [method.label for method in METHODS.values()]
    runs = [made(label, f"d{i}", np.arange(1.0, 9.0)) for i in range(2) for label in labels]

    figure = figure_of_errors(TrafficResults(tuple(runs)))
    figure.canvas.draw()

    assert figure.legends[0].get_window_extent().width <= figure.bbox.width
    figure_of_runtimes(TrafficResults(tuple(runs))).canvas.draw()


def test_all_methods_have_different_styles():
    labels = [method.label for method in METHODS.values()]

    looks = looks_of(labels)

    assert len({(look["color"], look["ls"]) for look in looks.values()}) == len(labels)


def test_a_name_with_dollar_signs_is_not_a_formula(results):
    paid = TrafficResults(tuple(replace(run, sensor="$a$") for run in results.runs[:3]))

    assert figure_of_errors(paid).axes[0].get_title() == r"\$a\$"


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Let pictures be quick to draw."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "DOTS_PER_INCH", 20)
        yield


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    """Return a folder with the files of the study, one detector of which has an odd name."""
    path = tmp_path_factory.mktemp("study")
    runs = [replace(run, sensor="<b>x</b>") if run.sensor == "b" else run for run in results.runs]
    write_traffic(runs, path, command="streamridge reproduce traffic --data 'a&b.csv'")
    return path


def test_a_study_writes_tables_figures_and_a_page(folder):
    assert {path.name for path in folder.iterdir()} == {
        *("results.json", "cells.csv", "methods.csv", "runtime.png", "rmse.png", "index.html"),
    }


def test_json_has_null_for_nan(folder):
    text = folder.joinpath("results.json").read_text()

    content = json.loads(text, parse_constant=pytest.fail)

    assert content["methods"][0]["paper_improvement"] is None
    assert content["cells"][4]["detector"] == "<b>x</b>"
    assert content["cells"][1]["rmse"] == pytest.approx(np.sqrt(50))


def test_csv_has_a_row_per_run_and_empty_cells_for_nan(folder):
    with folder.joinpath("cells.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    with folder.joinpath("methods.csv").open(newline="") as file:
        methods = list(csv.DictReader(file))

    assert [(row["detector"], row["method"]) for row in cells][3] == ("<b>x</b>", "FIXED")
    assert float(cells[1]["improvement_2"]) == pytest.approx(20)
    assert methods[0]["paper_improvement"] == ""


def test_the_page_has_the_tables_and_escapes_names(folder):
    page = folder.joinpath("index.html").read_text()

    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<code>streamridge reproduce traffic --data &#x27;a&amp;b.csv&#x27;</code>" in page
    for words in ("After 2 steps", "At the end", "paper, at the end", "paper: tuning / OHL"):
        assert words in page
    assert page.count(">37.5<") == 2  # HOAG early: mean of 50 and 25; the paper's ratio of tuning
    for image in ("runtime.png", "rmse.png"):
        assert f'<img src="{image}" alt="' in page
    assert "figure {display: none}" not in page  # nothing hides figures that need no script


def test_the_page_compares_other_methods_with_ohl(folder):
    page = folder.joinpath("index.html").read_text()

    assert "HOAG takes 3.0 times as long as OHL in total, and 10.0 times as long to tune; " in page
    assert "it improves RMSE over FIXED by 23.5 %, OHL by 14.6 %." in page
    assert "Not finished" not in page


@pytest.mark.parametrize(
    "kept",
    tiered(
        [("FIXED",), ("OHL",), ("HOAG",), ("FIXED", "HOAG"), ("OHL", "HOAG")],
        quick=lambda kept: kept in (("FIXED",), ("OHL", "HOAG")),
    ),
    ids=lambda kept: "+".join(kept),
)
def test_a_study_without_some_methods_has_a_page_without_their_figures(kept, results, tmp_path):
    runs = [run for run in results.runs if run.method in kept]

    page = write_traffic(runs, tmp_path, command="c").read_text()

    assert "nan" not in page
    assert "takes 3.0 times" in page or kept != ("OHL", "HOAG")


def test_the_page_of_an_unfinished_study_compares_common_detectors(results, tmp_path):
    page = write_traffic(results.runs[:5], tmp_path, command="c", requested=6).read_text()

    assert "Not finished: this page shows 5 of 6 runs." in page
    assert "it improves RMSE over FIXED by 50.0 %, OHL by 29.3 %." in page


def test_ablations_are_in_the_tables_and_not_in_the_headlines(results, tmp_path):
    change = [replace(run, method="OHL, AdaGrad") for run in results.runs if run.method == "OHL"]

    page = write_traffic([*results.runs, *change], tmp_path, command="c").read_text()

    assert page.count("OHL, AdaGrad") >= 4
    assert "OHL, AdaGrad takes" not in page
