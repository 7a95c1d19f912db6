import numpy as np
import pytest
from matplotlib.colors import to_hex

from streamridge.hyperparameters.groups import GroupNames
from streamridge.plots.axes import method_look
from streamridge.plots.tuning import (
    NameGroups,
    feature_labels,
    plot_hyperparameter,
    plot_paths,
    plot_scales,
    plot_trust,
    plot_weights,
)

# Every twelve hours.
REFITS = np.datetime64("2021-06-13T00:00", "us") + np.arange(10) * np.timedelta64(12, "h")


def draw_weights(axes, rng):
    share = rng.random(len(REFITS))
    return plot_weights(axes, REFITS, {"matern": share, "linear": 1 - share})


def draw_trust(axes, rng):
    share = rng.random(len(REFITS))
    return plot_trust(axes, REFITS, {"model": share, "last reading": 1 - share})


def draw_scales(axes, rng):
    return plot_scales(axes, REFITS, 10 ** rng.normal(size=(len(REFITS), 3)), ["a", "b", "c"])


def draw_hyperparameter(axes, rng):
    return plot_hyperparameter(axes, REFITS, 1 + rng.random(len(REFITS)), name="rate")


def draw_paths(axes, rng):
    return plot_paths(axes, {"ohl": (REFITS, 1 + rng.random(len(REFITS)))}, name="rate")


@pytest.mark.parametrize(
    "draw", [draw_weights, draw_trust, draw_scales, draw_hyperparameter, draw_paths]
)
def test_every_figure_labels_its_axes_and_returns_them(draw, axes, rng):
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


def test_weights_are_stacked_to_one(axes, rng):
    draw_weights(axes, rng)

    tops = [each.get_paths()[0].vertices[:, 1].max() for each in axes.collections]
    assert tops[-1] == pytest.approx(1.0)


def test_the_heat_map_has_a_row_per_feature_with_the_first_on_top(axes, rng):
    draw_scales(axes, rng)

    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["a", "b", "c"]
    assert axes.yaxis_inverted()


def test_names_are_grouped_by_how_they_are_shown():
    groups = NameGroups.of(
        [
            GroupNames("weight", "weight", ("weight.matern", "weight.linear")),
            GroupNames("matern.inverse_scales", "scale", ("matern.inverse_scales[0]",)),
            GroupNames("rate", "rate", ("rate",)),
            GroupNames("inner.weight", "weight", ("inner.weight.a",)),
        ]
    )

    assert groups.weights == {
        "weight": ("weight.matern", "weight.linear"),
        "inner.weight": ("inner.weight.a",),
    }
    assert groups.indexed == {"matern.inverse_scales": ("matern.inverse_scales[0]",)}
    assert groups.others == ("rate",)


def test_features_are_numbered_where_names_are_not_as_many():
    assert feature_labels(1, ["a", "b"]) == ("feature 1",)


def test_a_hyperparameter_has_the_colour_of_the_method_that_moved_it(axes):
    plot_hyperparameter(axes, REFITS, np.ones(len(REFITS)), name="rate", method="fixed")
    plot_paths(axes, {"ohl": (REFITS, np.ones(len(REFITS)))}, name="rate")

    assert [line.get_color() for line in axes.get_lines()] == [
        method_look("fixed")[0],
        method_look("ohl")[0],
    ]


def test_kernels_do_not_look_like_the_methods_that_are_drawn_most(axes, rng):
    draw_weights(axes, rng)

    colors = {to_hex(area.get_facecolor()[0]).upper() for area in axes.collections}
    assert colors.isdisjoint({method_look(name)[0].upper() for name in ("ohl", "fixed")})
