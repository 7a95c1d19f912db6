import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_hex

from streamridge.metrics import (
    rmse_by_hour,
    rmse_by_weekday,
)
from streamridge.plots.axes import COLORS, method_look, new_figure
from streamridge.plots.figures import (
    plot_band,
    plot_costs,
    plot_error_by_hour,
    plot_error_by_weekday,
    plot_hyperparameter,
    plot_paths,
    plot_rolling_coverage,
    plot_running_rmse,
    plot_scales,
    plot_shares,
)
from tests.support.samples import HOURLY_DAY as DAY
from tests.support.samples import HOURLY_TIMES as TIMES

# Every twelve hours.
REFITS = np.datetime64("2021-06-13T00:00", "us") + np.arange(10) * np.timedelta64(12, "h")


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
    return plot_rolling_coverage(axes, {"ohl": (TIMES, rng.random(len(TIMES)))}, levels=(0.9,))


def draw_costs(axes, rng, actual):
    kinds = {"tuning": 1.0, "fitting": 2.0, "predicting": 0.5}
    return plot_costs(axes, {"ohl": kinds, "fixed": {**kinds, "tuning": 0.0}})


DRAWINGS = [
    draw_band,
    draw_running_rmse,
    draw_hours,
    draw_weekdays,
    draw_coverage,
    draw_costs,
]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_every_figure_labels_its_axes_and_returns_them(draw, axes, rng, actual):
    drawn = draw(axes, rng, actual)

    axes.figure.draw_without_rendering()
    assert drawn is axes
    assert axes.get_xlabel()
    assert axes.get_ylabel()


def test_gaps_are_shaded_and_interrupt_the_line_of_actual_values(axes, rng, actual):
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
    assert labels == ["actual", "forecast", "interval"]


def test_the_level_is_drawn_across_the_coverage(axes, rng, actual):
    draw_coverage(axes, rng, actual)

    level = next(each for each in axes.lines if each.get_label() == "level 90%")
    assert set(level.get_ydata()) == {0.9}


def test_narrow_bands_are_darker_than_wide_ones(axes):
    value = np.full(len(TIMES), 100.0)
    reach = np.array([10.0, 30.0, 20.0])

    plot_band(
        *(axes, TIMES, value, value, value[:, None] - reach, value[:, None] + reach),
        levels=(0.5, 0.975, 0.8),
    )

    drawn = [each for each in axes.collections if str(each.get_label()).endswith("interval")]
    assert [each.get_label() for each in drawn] == [
        "97.5% interval",
        "80% interval",
        "50% interval",
    ]
    tints = [each.get_alpha() for each in drawn]
    assert tints == sorted(set(tints))
    heights = [each.get_datalim(axes.transData).height for each in drawn]
    assert heights == pytest.approx([60.0, 40.0, 20.0])


def test_the_coverage_of_each_level_is_a_line_of_the_same_style(axes, rng):
    plot_rolling_coverage(axes, {"ohl": (TIMES, rng.random((len(TIMES), 2)))}, levels=(0.5, 0.8))

    assert axes.get_legend_handles_labels()[1] == ["ohl", "level 50%", "level 80%"]
    one, other = axes.lines[:2]
    assert (one.get_color(), one.get_linestyle()) == (other.get_color(), other.get_linestyle())


def test_costs_are_stacked_by_kind(axes, rng, actual):
    draw_costs(axes, rng, actual)

    fitting = axes.containers[1]
    assert [bar.get_x() for bar in fitting] == [1.0, 0.0]
    assert fitting.get_label() == "fitting"


def test_dollar_signs_in_a_name_are_not_a_formula(axes, actual):
    plot_running_rmse(axes, {"$x^": actual, "a $ b $": actual}, steps_a_day=DAY, unit="$ $")

    axes.figure.draw_without_rendering()
    texts = [each.get_text() for each in axes.get_legend().get_texts()] + [axes.get_ylabel()]
    assert texts == [r"\$x^", r"a \$ b \$", r"RMSE(t), \$ \$"]
    assert not any(map(is_math_text, texts))


def test_many_methods_get_a_legend_in_rows_above_the_data(axes, actual):
    methods = {f"method {i}": actual - 100 for i in range(len(COLORS))}

    plot_running_rmse(axes, methods, steps_a_day=DAY)

    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    top = max(each.get_ydata().max() for each in axes.lines)
    assert legend.y0 > axes.transData.transform((0, top))[1]


def test_steps_of_a_day_or_longer_are_counted_instead_of_days():
    axes = new_figure(1).axes[0]

    plot_running_rmse(axes, {"ohl": np.ones(60)}, steps_a_day=DAY, in_days=False)

    assert axes.get_xlabel() == "steps since the first forecast"
    assert axes.lines[0].get_xdata()[-1] == 60


def test_integers_are_not_drawn_as_dates():
    axes, times = new_figure(1).axes[0], np.arange(100, 150)
    flat = np.ones(len(times))

    plot_band(axes, times, flat, flat, flat - 1, flat + 1)
    axes.figure.canvas.draw()

    assert axes.get_xticklabels()[0].get_text() == "100"


def test_days_without_an_error_are_included(axes):
    errors = np.array([1.0, 2.0, np.nan, np.nan, np.nan, np.nan, np.nan])

    plot_error_by_weekday(axes, {"ohl": errors})

    assert axes.get_xlim() == (-0.5, 6.5)


def draw_weights(axes, rng):
    share = rng.random(len(REFITS))
    shares = {"matern": share, "linear": 1 - share}
    return plot_shares(axes, REFITS, shares, label="weight of the kernel", step="post")


def draw_expert_weights(axes, rng):
    share = rng.random(len(REFITS))
    shares = {"model": share, "last reading": 1 - share}
    return plot_shares(axes, REFITS, shares, label="weight in the forecast")


def draw_scales(axes, rng):
    return plot_scales(axes, REFITS, 10 ** rng.normal(size=(len(REFITS), 3)), ["a", "b", "c"])


def draw_hyperparameter(axes, rng):
    return plot_hyperparameter(axes, REFITS, 1 + rng.random(len(REFITS)), name="rate")


def draw_paths(axes, rng):
    return plot_paths(axes, {"ohl": (REFITS, 1 + rng.random(len(REFITS)))}, name="rate")


@pytest.mark.parametrize(
    "draw", [draw_weights, draw_expert_weights, draw_scales, draw_hyperparameter, draw_paths]
)
def test_every_figure_of_tuning_labels_its_axes_and_returns_them(draw, axes, rng):
    drawn = draw(axes, rng)

    axes.figure.draw_without_rendering()
    assert drawn is axes
    assert axes.get_xlabel() == "time"
    assert axes.get_ylabel()


@pytest.mark.parametrize(("lowest", "scale"), [(1e-4, "log"), (0.0, "linear")])
def test_a_positive_hyperparameter_has_a_logarithmic_axis(axes, lowest, scale):
    values = np.linspace(lowest, 1.0, len(REFITS))

    plot_hyperparameter(axes, REFITS, values, name="rate")

    assert axes.get_yscale() == scale


@pytest.mark.parametrize("top", [1.01, 3.0, 1e6])
def test_a_logarithmic_axis_has_labels_for_any_range(axes, top):
    plot_hyperparameter(axes, REFITS, np.geomspace(1.0, top, len(REFITS)), name="rate")

    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 2


@pytest.mark.parametrize(("bound", "marker"), [("lower", "v"), ("upper", "^")])
def test_a_hyperparameter_at_a_bound_is_marked(axes, bound, marker):
    plot_hyperparameter(axes, REFITS, np.ones(len(REFITS)), name="rate", bound=bound)

    assert axes.lines[-1].get_marker() == marker
    assert axes.lines[-1].get_label() == f"at its {bound} bound"


def test_weights_are_stacked_to_one(axes, rng):
    draw_weights(axes, rng)

    tops = [each.get_paths()[0].vertices[:, 1].max() for each in axes.collections]
    assert tops[-1] == pytest.approx(1.0)


def test_the_heat_map_has_a_row_per_feature_with_the_first_on_top(axes, rng):
    draw_scales(axes, rng)

    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["a", "b", "c"]
    assert axes.yaxis_inverted()


def test_a_hyperparameter_has_the_colour_of_its_method(axes):
    plot_hyperparameter(axes, REFITS, np.ones(len(REFITS)), name="rate", method="fixed")
    plot_paths(axes, {"ohl": (REFITS, np.ones(len(REFITS)))}, name="rate")

    assert [line.get_color() for line in axes.get_lines()] == [
        method_look("fixed")[0],
        method_look("ohl")[0],
    ]


def test_kernels_do_not_have_the_colours_of_ohl_and_fixed(axes, rng):
    draw_weights(axes, rng)

    colors = {to_hex(area.get_facecolor()[0]).upper() for area in axes.collections}
    assert colors.isdisjoint({method_look(name)[0].upper() for name in ("ohl", "fixed")})
