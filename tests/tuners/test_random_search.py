import numpy as np
import pytest
from scipy.stats import kstest

from streamridge import ARD, Box, InvalidInputError, KernelRidge, Linear, Mixture, Periodic
from streamridge.hyperparameters.groups import Group, positive_group
from streamridge.hyperparameters.space import Space
from streamridge.tuners import RandomSearch
from streamridge.tuners.random_search import draw
from tests.tuners.toys import Quadratic, Watched, search, toy_backtest


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


def test_draws_are_those_of_the_generator():
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
    assert min(kstest(column, "uniform").pvalue for column in shares.T) > 0.01
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_uniform_draws_are_uniform():
    space = Space((positive_group("scales", "scale", [1.0, 2.0], (1e-4, 1e2)),))

    drawn = draws(space, "uniform")

    shares = (drawn - 1e-4) / (1e2 - 1e-4)
    assert min(kstest(column, "uniform").pvalue for column in shares.T) > 0.01
    assert abs(np.corrcoef(shares.T)[0, 1]) < 0.1


def test_an_interval_that_reaches_zero_is_drawn_evenly_whatever_the_spacing():
    space = Space((Group("shift", "scale", ("shift",), np.ones(1), Box([0.0], [4.0])),))

    drawn = draws(space, "log")

    assert kstest(drawn[:, 0] / 4, "uniform").pvalue > 0.01


@pytest.mark.parametrize("spacing", ["log", "uniform"])
def test_weights_are_even_on_their_simplex(spacing):
    model = KernelRidge(Mixture([ARD([0.3] * 2), Linear(), Periodic(9.0)]))

    weights = draws(model.space, spacing)[:, :3]

    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    assert weights.min() >= 0
    # Each of three even weights has the distribution Beta(1, 2).
    assert min(kstest(column, "beta", (1, 2)).pvalue for column in weights.T) > 0.01


def test_fifty_draws_are_made_unless_told_otherwise():
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
