"""The interactive figures of a report."""

import numpy as np

from streamridge.forecaster.methods import METHODS
from streamridge.plots.axes import method_look
from streamridge.report.charts import (
    coverage_figure,
    forecast_figure,
    hours_figure,
    rmse_figure,
)
from streamridge.report.sensor_runs import TuningPath
from streamridge.report.tuning_charts import (
    experts_figure,
    others_figure,
    scales_figure,
    weights_figure,
)
from tests.support.report_runs import (
    DAY,
    NAMES,
    OTHERS,
    SCALES,
    WEIGHTS,
    fixed_run,
    make_run,
    only,
    run_with_experts,
    run_with_glitch,
    run_with_two_levels,
)


def test_gaps_are_shaded_in_the_forecast_figure():
    figure = forecast_figure(only(make_run()))

    (gap,) = figure.layout.shapes
    assert (gap.x0, gap.x1) == ("2021-07-22T18:30:00", "2021-07-22T20:30:00")
    assert "no reading" in [trace.name for trace in figure.data]


def test_the_forecast_figure_shows_at_most_four_weeks():
    figure = forecast_figure(only(make_run(days=40)))

    assert {len(trace.y) for trace in figure.data if trace.mode == "lines"} == {28 * DAY}


def test_the_forecast_figure_shows_one_method_at_first():
    figure = forecast_figure(only(fixed_run(), make_run()))

    shown = {trace.legendgroup for trace in figure.data if trace.visible is True}
    assert shown == {"ohl"}


def test_the_level_is_a_line_in_the_coverage_figure():
    figure = coverage_figure(only(make_run()))

    assert figure.data[-1].name == "level 90%"
    assert set(figure.data[-1].y) == {0.9}


def test_every_level_has_a_band_and_the_widest_is_drawn_first():
    figure = forecast_figure(only(run_with_two_levels()))

    filled = [trace for trace in figure.data if trace.fill == "tonexty"]
    assert [trace.name for trace in filled] == [
        "95% interval, lower limit",
        "80% interval, lower limit",
    ]
    assert "ohl, forecast and 80% and 95% intervals" in [trace.name for trace in figure.data]


def test_hyperparameters_at_a_bound_are_marked_in_every_figure():
    path = TuningPath.of(make_run(active_bounds=dict.fromkeys(NAMES, "upper")))

    shown = [
        *(trace.name for trace in weights_figure(path, WEIGHTS).data),
        *scales_figure(path, SCALES, ("a", "b")).layout.yaxis.ticktext,
        others_figure(path, OTHERS).layout.yaxis2.title.text,
    ]
    assert len(shown) == 5
    assert all(label.endswith("\N{BLACK UP-POINTING TRIANGLE}") for label in shown)


def test_every_other_hyperparameter_has_its_own_logarithmic_axis():
    layout = others_figure(TuningPath.of(make_run()), OTHERS).layout

    assert (layout.yaxis.type, layout.yaxis2.type) == ("log", "log")


def test_weights_of_experts_are_stacked_and_sum_to_one():
    figure = experts_figure(run_with_experts())

    assert [trace.name for trace in figure.data] == ["model", "8h ago"]
    assert [trace.stackgroup for trace in figure.data] == ["shares"] * 2
    np.testing.assert_allclose(np.sum([trace.y for trace in figure.data], axis=0), 1.0)


def test_the_figure_marks_an_implausible_reading_by_a_triangle():
    run = run_with_glitch()

    figure = forecast_figure(only(run))

    low, high = figure.layout.yaxis.range
    actual = next(trace for trace in figure.data if trace.name == "actual")
    (mark,) = [trace for trace in figure.data if trace.name == "beyond the top"]
    assert 0 < low < high < 200
    assert np.nanmax(actual.y) < 200
    assert (mark.marker.symbol, list(mark.customdata)) == ("triangle-up", [9e11])
    assert low < mark.y[0] <= high


def test_a_method_has_the_same_colour_in_every_figure():
    alone, beside = only(run_with_glitch()), only(fixed_run(), run_with_glitch())

    figures = [figure(runs) for runs in (alone, beside) for figure in (rmse_figure, hours_figure)]

    colors = {
        (trace.line.color if trace.type == "scatter" else trace.marker.color)
        for figure in figures
        for trace in figure.data
        if trace.name == "ohl"
    }
    assert colors == {method_look("ohl")[0]}
    assert len({method_look(name) for name in METHODS}) == len(METHODS)
