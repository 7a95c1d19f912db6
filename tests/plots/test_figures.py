import subprocess
import sys

import numpy as np
import pytest

from streamridge.errors import MissingExtraError
from streamridge.metrics import (
    coverage,
    coverage_window,
    gap_spans,
    rmse,
    rmse_by_hour,
    rmse_by_weekday,
    rolling_coverage,
    running_curve,
)
from streamridge.plots.axes import COLORS, new_figure
from streamridge.plots.figures import (
    plot_band,
    plot_costs,
    plot_error_by_hour,
    plot_error_by_weekday,
    plot_rolling_coverage,
    plot_running_rmse,
)
from streamridge.plots.tuning import (
    NameGroups,
    feature_labels,
    plot_hyperparameter,
    plot_scales,
    plot_weights,
)

DAY = 24
TIMES = np.datetime64("2021-06-13T00:00", "us") + np.arange(5 * DAY) * np.timedelta64(1, "h")
# A Monday, Tuesday and so on at noon.
REFITS = TIMES[:: DAY // 2]


@pytest.fixture
def actual(rng):
    values = 100 + rng.normal(0, 10, len(TIMES))
    values[[3, 30, 31, 32, 34]] = np.nan
    return values


@pytest.fixture
def axes():
    return new_figure(1).axes[0]


def draw_band(axes, rng, actual):
    value = np.full(len(TIMES), 100.0)
    return plot_band(axes, TIMES, actual, value, value - 20, value + 20, unit="vehicles")


def draw_running_rmse(axes, rng, actual):
    return plot_running_rmse(axes, {"ohl": actual - 100, "fixed": actual - 90}, steps_a_day=DAY)


def draw_hours(axes, rng, actual):
    return plot_error_by_hour(axes, {"ohl": rmse_by_hour(TIMES, actual - 100)}, unit="vehicles")


def draw_weekdays(axes, rng, actual):
    return plot_error_by_weekday(axes, {"ohl": rmse_by_weekday(TIMES, actual - 100)})


def draw_coverage(axes, rng, actual):
    return plot_rolling_coverage(axes, {"ohl": (TIMES, rng.random(len(TIMES)))}, level=0.9)


def draw_costs(axes, rng, actual):
    kinds = {"tuning": 1.0, "fitting": 2.0, "predicting": 0.5}
    return plot_costs(axes, {"ohl": kinds, "fixed": {**kinds, "tuning": 0.0}})


def draw_weights(axes, rng, actual):
    share = rng.random(len(REFITS))
    return plot_weights(axes, REFITS, {"matern": share, "linear": 1 - share})


def draw_scales(axes, rng, actual):
    return plot_scales(axes, REFITS, 10 ** rng.normal(size=(len(REFITS), 3)), ["a", "b", "c"])


def draw_hyperparameter(axes, rng, actual):
    return plot_hyperparameter(axes, REFITS, 1 + rng.random(len(REFITS)), name="rate")


DRAWINGS = [
    draw_band,
    draw_running_rmse,
    draw_hours,
    draw_weekdays,
    draw_coverage,
    draw_costs,
    draw_weights,
    draw_scales,
    draw_hyperparameter,
]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_every_figure_labels_its_axes_and_returns_them(draw, axes, rng, actual):
    drawn = draw(axes, rng, actual)

    axes.figure.draw_without_rendering()
    assert drawn is axes
    assert axes.get_xlabel()
    assert axes.get_ylabel()


def test_importing_the_library_loads_no_plotting_library():
    code = "import sys, streamridge; print({'matplotlib', 'plotly'} & {*sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_a_missing_matplotlib_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(MissingExtraError, match=r"matplotlib must be .* 'streamridge\[plot\]'"):
        new_figure(1)


def test_a_figure_has_the_rows_asked_for():
    figure = new_figure(3, width=5.0, height_per_row=2.0)

    assert len(figure.axes) == 3
    assert tuple(figure.get_size_inches()) == (5.0, 6.0)


def test_gaps_are_shaded_and_the_line_of_actual_values_is_left_open(axes, rng, actual):
    draw_band(axes, rng, actual)

    shaded = [each for each in axes.collections if each.get_label() == "no reading"]
    line = next(each for each in axes.lines if each.get_label() == "actual")
    assert [len(each.get_paths()) for each in shaded] == [3]
    assert np.isnan(line.get_ydata()).sum() == 5


def test_a_reading_between_two_gaps_is_a_dot(axes, rng, actual):
    draw_band(axes, rng, actual)

    dots = next(each for each in axes.lines if each.get_marker() == ".")
    assert dots.get_ydata().tolist() == [actual[33]]


def test_nothing_is_shaded_without_gaps(axes, rng):
    draw_band(axes, rng, np.full(len(TIMES), 100.0))

    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["actual", "forecast", "band"]


def test_a_gap_reaches_half_a_step_beyond_its_steps(actual):
    first = gap_spans(TIMES, actual)[0]

    assert [str(end)[:16] for end in first] == ["2021-06-13T02:30", "2021-06-13T03:30"]


def test_running_rmse_starts_at_the_end_of_the_first_day(actual):
    errors = actual - 100

    at, curve = running_curve(errors, DAY)

    assert at[0] == DAY
    assert curve[-1] == pytest.approx(rmse(errors[~np.isnan(errors)]))


def test_running_rmse_of_a_run_below_two_days_starts_at_a_tenth(rng):
    at, curve = running_curve(rng.normal(size=40), DAY)

    assert at[0] == 4
    assert len(curve) == 36


def test_errors_by_hour_and_weekday_are_those_of_their_steps(actual):
    errors = actual - 100

    by_hour, by_day = rmse_by_hour(TIMES, errors), rmse_by_weekday(TIMES, errors)

    at_seven, on_sunday = errors[7::DAY], errors[:DAY]
    assert by_hour[7] == pytest.approx(rmse(at_seven[~np.isnan(at_seven)]))
    assert by_day[6] == pytest.approx(rmse(on_sunday[~np.isnan(on_sunday)]))
    assert np.isnan(by_day[4:6]).all()


def test_rolling_coverage_is_the_coverage_of_every_window(actual):
    lower, upper, window = np.full(len(actual), 90.0), np.full(len(actual), 110.0), 30

    shares = rolling_coverage(actual, lower, upper, window)

    ends = range(window, len(actual) + 1)
    expected = [coverage(actual[i - window : i], lower[:window], upper[:window]) for i in ends]
    assert np.isnan(shares[: window - 1]).all()
    assert shares[window - 1 :] == pytest.approx(expected)


@pytest.mark.parametrize(("steps", "window"), [(1000, 7 * DAY), (40, 20), (1, 1)])
def test_coverage_is_averaged_over_a_week_or_half_of_a_short_run(steps, window):
    assert coverage_window(steps, DAY) == window


def test_the_level_is_drawn_across_the_coverage(axes, rng, actual):
    draw_coverage(axes, rng, actual)

    level = next(each for each in axes.lines if each.get_label() == "level 0.9")
    assert set(level.get_ydata()) == {0.9}


def test_costs_are_stacked_by_kind(axes, rng, actual):
    draw_costs(axes, rng, actual)

    fitting = axes.containers[1]
    assert [bar.get_x() for bar in fitting] == [1.0, 0.0]
    assert fitting.get_label() == "fitting"


def test_dollars_in_a_name_are_no_formula(axes, actual):
    plot_running_rmse(axes, {"$x^": actual, "a $ b $": actual}, steps_a_day=DAY, unit="$")

    axes.figure.draw_without_rendering()


def test_many_methods_get_a_legend_in_rows_above_the_data(axes, actual):
    methods = {f"method {i}": actual - 100 for i in range(len(COLORS))}

    plot_running_rmse(axes, methods, steps_a_day=DAY)

    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    top = max(each.get_ydata().max() for each in axes.lines)
    assert legend.y0 > axes.transData.transform((0, top))[1]


def test_methods_have_colours_of_their_own():
    assert len(set(COLORS)) == len(COLORS) == 8


@pytest.mark.parametrize(("lowest", "scale"), [(1e-4, "log"), (0.0, "linear")])
def test_a_positive_hyperparameter_has_a_logarithmic_axis(axes, lowest, scale):
    values = np.linspace(lowest, 1.0, len(REFITS))

    plot_hyperparameter(axes, REFITS, values, name="rate")

    assert axes.get_yscale() == scale


@pytest.mark.parametrize("top", [1.01, 3.0, 1e6])
def test_a_logarithmic_axis_has_labels_at_any_spread(axes, top):
    plot_hyperparameter(axes, REFITS, np.geomspace(1.0, top, len(REFITS)), name="rate")

    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 2


@pytest.mark.parametrize(("bound", "marker"), [("lower", "v"), ("upper", "^")])
def test_a_hyperparameter_at_a_bound_is_marked(axes, bound, marker):
    plot_hyperparameter(axes, REFITS, np.ones(len(REFITS)), name="rate", bound=bound)

    assert axes.lines[-1].get_marker() == marker
    assert axes.lines[-1].get_label() == f"at its {bound} bound"


def test_weights_are_stacked_to_one(axes, rng, actual):
    draw_weights(axes, rng, actual)

    tops = [each.get_paths()[0].vertices[:, 1].max() for each in axes.collections]
    assert tops[-1] == pytest.approx(1.0)


def test_the_heat_map_has_a_row_per_feature_with_the_first_on_top(axes, rng, actual):
    draw_scales(axes, rng, actual)

    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["a", "b", "c"]
    assert axes.yaxis_inverted()


def test_names_are_grouped_by_how_they_are_shown():
    names = ["weight.matern", "weight.linear", "matern.inverse_scales[0]", "rate", "inner.weight.a"]

    groups = NameGroups.of(names)

    assert groups.weights == {
        "weight": ("weight.matern", "weight.linear"),
        "inner.weight": ("inner.weight.a",),
    }
    assert groups.indexed == {"matern.inverse_scales": ("matern.inverse_scales[0]",)}
    assert groups.others == ("rate",)


def test_features_are_numbered_where_names_are_not_as_many():
    assert feature_labels(1, ["a", "b"]) == ("feature 1",)
