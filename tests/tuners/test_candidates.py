"""Tuners that compare candidates: fixed, grid and random search."""

from itertools import product

import numpy as np
import pytest

from streamridge import (
    ARD,
    Box,
    Drifting,
    InvalidInputError,
    KernelRidge,
    Linear,
    Mixture,
    Periodic,
)
from streamridge.hyperparameters.space import Group, Space, positive_group
from streamridge.tuners import Fixed, Grid, RandomSearch
from streamridge.tuners.base import Backtest
from streamridge.tuners.candidates import draw
from tests.support.samples import make_samples
from tests.support.toy_models import Quadratic, Watched, search, toy_backtest
from tests.support.uniformity import p_value_of_uniform


def test_fixed_fits_nothing_and_changes_nothing():
    model = Watched(Quadratic(np.array([30.0]), np.ones(1)))

    found = search(Fixed(), toy_backtest(model), start=[5.0])

    assert found.lam.tolist() == [5.0]
    assert np.isnan(found.loss)
    assert (found.fits, found.gradients, Fixed().trials(model.space)) == (0, 0, 0)
    assert not model.fitted


MODEL = KernelRidge(ARD([0.3] * 5) + Linear(), regularization=0.5)

NESTED = KernelRidge(Drifting(ARD([0.1, 0.2]) + Linear()) + Periodic(9.0, period_bounds=(5, 10)))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (
            KernelRidge(Mixture([ARD([0.1, 0.2]), ARD([0.3, 0.4])])),
            ["weight", "ard1.inverse_scales", "ard2.inverse_scales", "regularization"],
        ),
        (
            NESTED,
            [
                "weight",
                "drifting.rate",
                "drifting.weight",
                "drifting.ard.inverse_scales",
                "periodic.period",
                "periodic.inverse_scale",
                "regularization",
            ],
        ),
    ],
)
def test_a_group_has_the_common_prefix_of_its_names(model, names):
    assert [group.name for group in model.space.groups] == names


def make_backtest(model, space=None):
    rng = np.random.default_rng(5)
    return Backtest(model, make_samples(rng, 40), make_samples(rng, 20, start=40.0), space)


def test_the_result_is_the_best_of_all_combinations():
    weights = [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    scales = MODEL.space.groups[1].feasible
    shared = np.geomspace(scales.low[0], scales.high[0], 3)
    points = [MODEL.space.values] + [
        np.array([*beta, *[nu] * 5, lam_R])
        for beta, nu, lam_R in product(weights, shared, np.geomspace(1e-3, 1e2, 3))
    ]
    losses = [make_backtest(MODEL).loss(lam) for lam in points]

    model = Watched(MODEL)
    found = search(Grid(3), make_backtest(model))

    np.testing.assert_allclose(found.lam, points[np.argmin(losses)], rtol=1e-12)
    np.testing.assert_allclose(found.loss, min(losses), rtol=1e-9)
    np.testing.assert_allclose(np.sort(model.fitted, axis=0), np.sort(points, axis=0), rtol=1e-12)


def test_the_scales_of_a_group_are_tied():
    model = Watched(MODEL)

    search(Grid(4), make_backtest(model))

    scales = np.array(model.fitted)[:, 2:7]
    assert (scales == scales[:, :1]).all()
    assert len(np.unique(scales[1:, 0])) == 4


def test_groups_that_are_not_searched_keep_their_values():
    model = Watched(MODEL)
    tuner = Grid(3, over=["regularization"])

    search(tuner, make_backtest(model))

    fitted = np.array(model.fitted)
    np.testing.assert_array_equal(fitted[:, :-1], np.tile(MODEL.space.values[:-1], (4, 1)))
    np.testing.assert_allclose(fitted[1:, -1], np.geomspace(1e-3, 1e2, 3))
    assert tuner.trials(MODEL.space) == 4
    assert tuner == Grid(3, over=("regularization",))


def test_groups_that_are_not_searched_keep_the_start():
    model = Watched(MODEL)
    start = np.array([0.1, 0.9, *np.full(5, 0.7), 2.0])

    search(Grid(2, over=("weight",)), make_backtest(model), start)

    np.testing.assert_array_equal(np.array(model.fitted)[:, 2:], np.tile(start[2:], (3, 1)))


def test_constants_take_one_value():
    space = MODEL.space.holding(MODEL.space.values, np.arange(8) < 7)

    assert Grid(3).trials(space) == 1 + 3


def test_the_weights_within_a_kernel_are_searched_by_their_own_name():
    tuner = Grid(3, over=("drifting.weight",))

    assert tuner.trials(NESTED.space) == 1 + 3


def test_groups_that_do_not_exist_are_refused():
    message = (
        r"^over must be among 'weight', 'ard\.inverse_scales', 'regularization', "
        r"got 'scales'\.$"
    )
    tuner = Grid(over=("regularization", "scales"))

    with pytest.raises(InvalidInputError, match=message):
        tuner.trials(MODEL.space)
    with pytest.raises(InvalidInputError, match=message):
        search(tuner, make_backtest(MODEL))


@pytest.mark.parametrize(("points", "count"), [(2, 3), (3, 6), (4, 10)])
def test_weights_are_spaced_evenly_on_their_simplex(points, count):
    model = Watched(KernelRidge(Mixture([ARD([0.3] * 5), Linear(), Periodic(9.0)])))

    search(Grid(points, over=("weight",)), make_backtest(model))

    weights = np.array(model.fitted)[1:, :3]
    assert len(np.unique(weights, axis=0)) == len(weights) == count
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(weights * (points - 1), np.rint(weights * (points - 1)), atol=1e-12)
    assert weights.min() == 0


def test_a_single_kernel_has_all_the_weight():
    model = Watched(KernelRidge(Mixture([Linear()])))

    search(Grid(3, over=("weight",)), make_backtest(model))

    assert [lam[0] for lam in model.fitted] == [1.0, 1.0]


def test_an_interval_that_reaches_zero_is_spaced_evenly():
    class Shifted(Quadratic):
        @property
        def space(self):
            return Space((Group("shift", "scale", ("shift",), np.array([1.0]), Box([0.0], [4.0])),))

        def fit(self, samples, lam, retired=None):
            return super().fit(samples, lam + 1.0)

    model = Watched(Shifted(np.array([4.0]), np.ones(1)))

    found = search(Grid(5), toy_backtest(model))

    assert [lam[0] for lam in model.fitted] == [1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    assert found.lam.tolist() == [3.0]


def test_members_with_different_bounds_stay_within_them():
    model = Watched(Quadratic(np.array([1.0, 1.0]), np.ones(2)))
    space = model.space.holding(np.array([7.0, 1.0]), np.array([True, False]))

    search(Grid(3), toy_backtest(model, space), start=[7.0, 1.0])

    fitted = np.array(model.fitted)
    np.testing.assert_array_equal(fitted[:, 0], 7.0)
    np.testing.assert_allclose(fitted[1:, 1], [1e-3, 1.0, 1e3])


def test_the_start_wins_a_tie():
    model = Quadratic(np.ones(2), np.zeros(2))

    found = search(Grid(3), toy_backtest(model), start=[5.0, 6.0])

    assert found.lam.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("points", [1, 2.5])
def test_a_grid_needs_two_points(points):
    with pytest.raises(
        InvalidInputError, match=rf"^points must be a whole number of at least 2, got {points}\.$"
    ):
        Grid(points)


@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_the_best_of_the_start_and_its_own_draws(seed):
    plain = Quadratic(np.array([3.0, 40.0]), np.array([1.0, 2.0]))
    model = Watched(plain)

    found = search(RandomSearch(9), toy_backtest(model), seed=seed)

    losses = [plain.fit(None, lam).loss for lam in model.fitted]
    assert len(losses) == 10
    np.testing.assert_array_equal(model.fitted[0], plain.space.values)
    np.testing.assert_array_equal(found.lam, model.fitted[np.argmin(losses)])
    np.testing.assert_allclose(found.loss, min(losses))


def test_a_start_better_than_all_draws_stays():
    model = Quadratic(np.array([3.0, 40.0]), np.ones(2))

    found = search(RandomSearch(50), toy_backtest(model), start=[3.0, 40.0])

    assert found.lam.tolist() == [3.0, 40.0]


def test_draws_come_from_the_generator():
    model = Watched(Quadratic(np.ones(2), np.ones(2)))

    search(RandomSearch(3, spacing="uniform"), toy_backtest(model), seed=8)

    rng = np.random.default_rng(8)
    expected = [draw(model.space, rng, "uniform") for _ in range(3)]
    np.testing.assert_array_equal(model.fitted[1:], expected)


def draws(space, spacing, count=2000):
    rng = np.random.default_rng(1)
    return np.array([draw(space, rng, spacing) for _ in range(count)])


def test_logarithms_of_log_uniform_draws_are_uniform():
    space = Space((positive_group("scales", "scale", [1.0, 2.0], (1e-4, 1e2)),))

    drawn = draws(space, "log")

    shares = np.log(drawn / 1e-4) / np.log(1e6)
    assert min(p_value_of_uniform(column) for column in shares.T) > 0.01
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_uniform_draws_are_uniform():
    space = Space((positive_group("scales", "scale", [1.0, 2.0], (1e-4, 1e2)),))

    drawn = draws(space, "uniform")

    shares = (drawn - 1e-4) / (1e2 - 1e-4)
    assert min(p_value_of_uniform(column) for column in shares.T) > 0.01
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_an_interval_that_reaches_zero_is_drawn_evenly_for_any_spacing():
    space = Space((Group("shift", "scale", ("shift",), np.ones(1), Box([0.0], [4.0])),))

    drawn = draws(space, "log")

    assert p_value_of_uniform(drawn[:, 0] / 4) > 0.01


@pytest.mark.parametrize("spacing", ["log", "uniform"])
def test_weights_are_even_on_their_simplex(spacing):
    model = KernelRidge(Mixture([ARD([0.3] * 2), Linear(), Periodic(9.0)]))

    weights = draws(model.space, spacing)[:, :3]

    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    assert weights.min() >= 0
    # Each of three even weights has the distribution Beta(1, 2).
    assert min(p_value_of_uniform(1 - (1 - column) ** 2) for column in weights.T) > 0.01


def test_the_default_is_fifty_draws():
    assert RandomSearch().trials(Quadratic(np.ones(1), np.ones(1)).space) == 51


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draws": 0}, r"^draws must be a whole number of at least 1, got 0\.$"),
        ({"spacing": "even"}, r"^spacing must be 'log' or 'uniform', got 'even'\.$"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        RandomSearch(**settings)
