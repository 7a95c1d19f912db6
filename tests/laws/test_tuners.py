"""Laws that every tuner must pass."""

from time import thread_time

import numpy as np
import pytest

from streamridge import (
    ARD,
    AutoregressiveRidge,
    Box,
    KernelRidge,
    Linear,
    Matern,
    Periodic,
    Standardized,
)
from streamridge.tuners import HOAG, Bayesian, Fixed, Grid, RandomSearch
from streamridge.tuners.base import Backtest
from tests.support.samples import make_samples
from tests.support.toy_models import Watched, search

SCALES = [0.3, 0.05, 0.7, 0.2, 0.4]

PROBLEMS = {
    "autoregressive": AutoregressiveRidge([30.0, 1.0, 2.0, 0.1, 3.0]),
    "mixture": KernelRidge(Periodic(7.3) + ARD(SCALES) + Linear(("lags",)), regularization=1.0),
    "standardized": Standardized(KernelRidge(Matern(SCALES) + Linear(("lags",)))),
}
DRAWING = {
    "random, log": RandomSearch(6),
    "random, uniform": RandomSearch(6, spacing="uniform"),
    "bayesian": Bayesian(4),
}
TUNERS = {
    "fixed": Fixed(),
    "grid": Grid(2),
    **DRAWING,
    "hoag, quadratic": HOAG(6),
    "hoag, cubic": HOAG(6, schedule="cubic"),
    "hoag, exponential": HOAG(6, schedule="exponential"),
    "hoag, natural": HOAG(6, coordinates="natural"),
    "hoag, two gradients": HOAG(6, gradients=2),
}

every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
every_tuner = pytest.mark.parametrize("tuner", TUNERS.values(), ids=TUNERS)
drawing_tuners = pytest.mark.parametrize("tuner", DRAWING.values(), ids=DRAWING)


def make_backtest(model, space=None, *, horizon=1):
    rng = np.random.default_rng(7)
    training = make_samples(rng, 40, horizon=horizon)
    return Backtest(model, training, make_samples(rng, 20, horizon=horizon, start=40.0), space)


def exact_loss(model, lam, *, horizon=1):
    return make_backtest(model, horizon=horizon).loss(lam)


def at_bounds(space, side):
    """Return the corner of C at all lower or upper bounds; one kernel has all the weight."""
    corners = [
        getattr(group.feasible, side)
        if isinstance(group.feasible, Box)
        else np.eye(len(group.names))[0 if side == "low" else -1]
        for group in space.groups
    ]
    return np.concatenate(corners)


@every_tuner
@every_problem
def test_the_result_is_feasible_and_no_worse_than_the_start(problem, tuner):
    found = search(tuner, make_backtest(problem))

    start = problem.space.values
    assert found.lam.shape == start.shape
    assert problem.space.feasible.contains(found.lam)
    assert exact_loss(problem, found.lam) <= exact_loss(problem, start)


@every_tuner
@every_problem
@pytest.mark.parametrize("side", ["low", "high"])
def test_a_search_may_start_at_the_bounds(problem, tuner, side):
    start = at_bounds(problem.space, side)

    found = search(tuner, make_backtest(problem), start)

    assert problem.space.feasible.contains(found.lam)
    assert exact_loss(problem, found.lam) <= exact_loss(problem, start)


@every_tuner
def test_several_horizons_are_searched_together(tuner):
    model = PROBLEMS["mixture"]

    found = search(tuner, make_backtest(model, horizon=3))

    least = exact_loss(model, model.space.values, horizon=3)
    assert exact_loss(model, found.lam, horizon=3) <= least


@every_tuner
@every_problem
def test_the_reported_loss_belongs_to_the_result(problem, tuner):
    found = search(tuner, make_backtest(problem))

    expected = np.nan if isinstance(tuner, Fixed) else exact_loss(problem, found.lam)
    np.testing.assert_equal(found.loss, expected)


@every_tuner
@every_problem
def test_the_same_seed_gives_the_same_result_bit_for_bit(problem, tuner):
    first = search(tuner, make_backtest(problem), seed=3)

    second = search(tuner, make_backtest(problem), seed=3)

    np.testing.assert_array_equal(first.lam, second.lam)
    np.testing.assert_equal(first.loss, second.loss)
    assert (first.fits, first.gradients) == (second.fits, second.gradients)


@drawing_tuners
@every_problem
def test_another_seed_tries_other_candidates(problem, tuner):
    tried = []
    for seed in (3, 4):
        model = Watched(problem)
        search(tuner, make_backtest(model), seed=seed)
        tried.append(model.fitted)

    np.testing.assert_array_equal(tried[0][0], tried[1][0])  # the start
    assert not any(np.array_equal(*pair) for pair in zip(tried[0][1:], tried[1][1:], strict=True))


@every_tuner
@every_problem
def test_held_hyperparameters_are_constant_in_all_trials(problem, tuner):
    model = Watched(problem)
    start = problem.space.values
    held = np.zeros(len(start), dtype=bool)
    held[[0, -2]] = True  # a penalty or a weight, and a penalty or a scale
    in_simplex = np.array([name.startswith("weight.") for name in problem.space.names])
    kept = held | in_simplex

    found = search(tuner, make_backtest(model, problem.space.holding(start, held)))

    tried = np.array([found.lam, *model.fitted, *model.approximated])
    np.testing.assert_array_equal(tried[:, kept], np.tile(start[kept], (len(tried), 1)))
    if not isinstance(tuner, Fixed):
        assert (tried[:, ~kept] != start[~kept]).any()


@every_tuner
@every_problem
def test_with_all_hyperparameters_held_the_start_is_returned(problem, tuner):
    start = problem.space.values
    space = problem.space.holding(start, np.ones(len(start), dtype=bool))

    found = search(tuner, make_backtest(problem, space))

    np.testing.assert_array_equal(found.lam, start)


@every_tuner
@every_problem
def test_all_trials_are_feasible_and_include_the_start(problem, tuner):
    model = Watched(problem)

    search(tuner, make_backtest(model))

    assert all(problem.space.feasible.contains(lam) for lam in model.fitted + model.approximated)
    if not isinstance(tuner, Fixed):
        assert any(np.array_equal(lam, problem.space.values) for lam in model.fitted)


@every_tuner
@every_problem
def test_costs_count_the_fits_and_stay_within_the_announced_trials(problem, tuner):
    model = Watched(problem)

    began = thread_time()
    found = search(tuner, make_backtest(model))
    took = thread_time() - began

    assert 0 < found.seconds <= took
    assert found.fits == len(model.fitted) + len(model.approximated)
    assert found.gradients == model.gradients
    assert found.fits <= tuner.trials(problem.space)
    if not isinstance(tuner, HOAG):
        assert found.fits == tuner.trials(problem.space)


@every_tuner
@every_problem
def test_candidates_without_a_factor_are_skipped(problem, tuner):
    last = problem.space.values[-1]
    model = Watched(problem, refused=lambda lam: lam[-1] < 0.9 * last)

    found = search(tuner, make_backtest(model))

    assert not model.refused(found.lam)
    assert exact_loss(problem, found.lam) <= exact_loss(problem, problem.space.values)
    assert found.fits == len(model.fitted) + len(model.approximated)
    assert found.gradients == model.gradients


@every_tuner
@every_problem
def test_without_any_factor_the_start_is_returned(problem, tuner):
    model = Watched(problem, refused=lambda lam: True)

    found = search(tuner, make_backtest(model))

    np.testing.assert_array_equal(found.lam, problem.space.values)
    np.testing.assert_equal(found.loss, np.nan if isinstance(tuner, Fixed) else np.inf)
    assert found.gradients == 0
