import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge.datasets import synthetic_series
from streamridge.errors import InvalidInputError
from streamridge.experiments.synthetic.panels import (
    OTHER_PANELS,
    PANELS,
    Interpretation,
    Panel,
    squared_exponential,
)
from streamridge.experiments.synthetic.study import run_panel, run_synthetic, summarize

SMALL = Interpretation(history=60, train_size=50)
LEFT = PANELS[0]
RIGHT = replace(PANELS[1], interpretation=SMALL)


@pytest.fixture(scope="module")
def left():
    return run_panel(LEFT, seed=3, steps=250)


@pytest.fixture(scope="module")
def right():
    return run_panel(RIGHT, seed=3, steps=120)


def test_both_panels_start_as_in_the_paper():
    starts = [panel.model.space.named(panel.model.space.values) for panel in PANELS]

    assert starts[0]["inverse_scale"] == 0.1
    assert (starts[1]["weight.periodic"], starts[1]["weight.linear"]) == (1.0, 0.0)
    assert starts[1]["periodic.inverse_scale"] == 10.0


@pytest.mark.parametrize("name", ["left", "right"])
def test_the_methods_agree_until_the_first_move(name, request):
    result = request.getfixturevalue(name)

    np.testing.assert_array_equal(result.fixed[:10], result.ohl[:10])
    assert (result.fixed[10:20] != result.ohl[10:20]).all()


def test_the_first_move_is_a_thousandth_of_the_mean_gradient(left):
    samples = LEFT.interpretation.samples(seed=3, steps=10)
    training, window = samples[300:400], samples[400:]

    def loss(nu):
        fit = LEFT.model.fit(training, np.array([nu, LEFT.model.regularization]))
        return np.mean((window.y - fit.predict(window.inputs)) ** 2)

    h = 1e-6
    gradient = (loss(0.1 + h) - loss(0.1 - h)) / (2 * h)
    move = left.path["inverse_scale"][10] - 0.1
    np.testing.assert_allclose(move, -0.001 * gradient, rtol=1e-5)


def test_hyperparameters_move_every_tenth_step_only(left):
    moved = np.flatnonzero(np.diff(left.path["inverse_scale"])) + 1

    np.testing.assert_array_equal(moved, np.arange(10, 250, 10))
    assert np.ptp(left.path["regularization"]) == 0


def test_fixed_returns_to_the_truth_at_every_refit(left):
    misses = np.abs(left.actual - left.fixed).reshape(-1, 10).mean(axis=0)

    assert misses[0] < 0.15 * misses[-1]


def test_ohl_widens_the_kernel_and_beats_fixed(left):
    nu = left.path["inverse_scale"]

    assert 0.01 < nu[-1] < 0.5 * nu[0]
    assert left.scores["OHL"]["last"] < 0.6 * left.scores["FIXED"]["last"]


def test_fixed_has_a_constant_offset_that_ohl_removes(right):
    assert right.gap["deviation"] < 0.2 * right.gap["mean"]
    assert right.scores["OHL"]["last"] < 0.05 * right.scores["FIXED"]["last"]
    assert right.path["weight.linear"][-1] > 0.9


def test_without_a_drift_the_start_is_already_optimal():
    interpretation = replace(SMALL, make_series=synthetic_series)

    result = run_panel(Panel("apart", squared_exponential(), interpretation), seed=0, steps=120)

    # Half of the process is in the series, so half of its noise.
    assert result.scores["FIXED"]["last"] < 1.5 * interpretation.noise / 2
    np.testing.assert_allclose(result.path["inverse_scale"], 0.1, rtol=1e-3)


def test_scores_are_of_the_first_and_the_last_hundred_steps(left):
    errors = left.actual - left.ohl

    assert left.scores["OHL"]["first"] == np.sqrt(np.mean(errors[:100] ** 2))
    assert left.scores["OHL"]["last"] == np.sqrt(np.mean(errors[150:] ** 2))


def test_equal_seeds_give_equal_bits_and_others_do_not(right):
    same, other = (run_panel(RIGHT, seed, steps=30) for seed in (3, 4))

    np.testing.assert_array_equal(same.ohl, right.ohl[:30])
    np.testing.assert_array_equal(same.path["weight.linear"], right.path["weight.linear"][:30])
    assert (other.actual != same.actual).all()


def test_panels_run_on_all_seeds_and_report_progress():
    calls = []

    results = run_synthetic(
        [7, 8], 20, panels=(LEFT, RIGHT), progress=lambda *done: calls.append(done)
    )

    assert [(result.panel, result.seed) for result in results] == [
        (panel.name, seed) for panel in (LEFT, RIGHT) for seed in (7, 8)
    ]
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_records_pass_through_json_unchanged(left, right):
    records = [left.record(), *summarize([left, right])]

    assert json.loads(json.dumps(records)) == records


def test_a_summary_is_the_median_and_the_range_over_seeds(left):
    scaled = [replace(left, ohl=left.actual + size) for size in (1.0, 2.0, 9.0)]

    (summary,) = summarize(scaled)

    assert summary["seeds"] == 3
    spread = summary["rmse"]["OHL"]["last"]
    np.testing.assert_allclose([spread[key] for key in ("median", "least", "most")], [2, 1, 9])


def test_all_panels_have_different_names():
    names = [panel.name for panel in (*PANELS, *OTHER_PANELS)]

    assert len(set(names)) == len(names)


def test_zero_results_and_zero_steps_are_refused():
    with pytest.raises(InvalidInputError, match="results must hold at least one run, got none"):
        summarize([])
    with pytest.raises(
        InvalidInputError, match="steps must be a whole number of at least 1, got 0"
    ):
        run_panel(LEFT, seed=0, steps=0)
