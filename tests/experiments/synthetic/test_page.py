import numpy as np
import pytest

from streamridge.experiments.synthetic.page import (
    figure_of_forecasts,
    figure_of_learning,
    plot_path,
    sliding_rmse,
)
from streamridge.experiments.synthetic.study import PanelResult
from streamridge.metrics import rmse


@pytest.fixture
def result():
    steps = np.arange(500.0)
    path = {"inverse_scale": 0.1 * 0.9 ** (steps // 10), "regularization": np.full(500, 1e-3)}
    actual = np.sin(steps / 5)
    return PanelResult("a $ kernel", 0, steps, actual, actual - 1, actual - 0.9**steps, path)


def test_forecasts_are_drawn_early_and_late_for_every_panel(result):
    figure = figure_of_forecasts([result, result])

    early, _, late, _ = figure.axes
    truth, fixed, ohl = late.lines
    np.testing.assert_array_equal(truth.get_data(), [np.arange(400, 480), result.actual[400:480]])
    np.testing.assert_array_equal(fixed.get_ydata(), result.fixed[400:480])
    np.testing.assert_array_equal(ohl.get_ydata(), result.ohl[400:480])
    assert early.lines[0].get_xdata()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["truth", "FIXED", "OHL"]
    figure.canvas.draw()


def test_a_short_run_is_drawn_to_its_end(result):
    short = PanelResult(
        "short", 0, *(result.times[:30], result.actual[:30], result.fixed[:30], result.ohl[:30]), {}
    )

    forecasts, learning = figure_of_forecasts([short]), figure_of_learning([short])

    early, late = forecasts.axes
    errors, path = learning.axes
    assert [len(line.get_xdata()) for line in early.lines] == [30, 30, 30]
    assert [len(line.get_xdata()) for line in late.lines] == [0, 0, 0]
    assert [line.get_xdata().tolist() for line in errors.lines] == [[29], [29]]
    assert len(path.lines) == 0
    forecasts.canvas.draw()
    learning.canvas.draw()


def test_learning_shows_sliding_errors_and_changed_hyperparameters(result):
    errors, path = figure_of_learning([result]).axes

    fixed, ohl = errors.lines
    np.testing.assert_allclose(fixed.get_ydata(), 1.0)
    assert ohl.get_xdata()[-1] == 499
    assert [line.get_label() for line in path.lines] == ["inverse scale"]
    assert path.get_yscale() == "log"


def test_a_weight_that_reaches_zero_has_a_linear_axis(result):
    figure = figure_of_learning([result])
    axes = figure.axes[1]
    axes.clear()
    weights = PanelResult(
        "weights", 0, result.times, result.actual, result.fixed, result.ohl,
        {"weight.linear": np.repeat([0.0, 1.0], 250)},
    )  # fmt: skip

    assert plot_path(axes, weights).get_yscale() == "linear"


def test_sliding_rmse_is_the_rmse_of_each_window(rng):
    errors = rng.normal(size=20)

    expected = [rmse(errors[i : i + 7]) for i in range(14)]
    np.testing.assert_allclose(sliding_rmse(errors, 7), expected, rtol=1e-12)
