"""The search for a start: never worse than the given start, and independent of it."""

from functools import cache

import numpy as np
import pytest

from streamridge import ARD, KernelRidge, Linear, Periodic, Samples, SquaredExponential
from streamridge.models.autoregressive import AutoregressiveRidge
from streamridge.tuners.base import Backtest, split
from streamridge.tuners.start import LEAST_ROWS, MARGIN, MOST_ROWS, PART, StartSearch
from tests.support.toy_models import Quadratic

ROWS = 400


@pytest.fixture(scope="module")
def known():
    """Return samples of a smooth function of two features, with noise."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(ROWS, 2))
    y = np.sin(2 * x[:, 0]) + 0.5 * np.cos(2 * x[:, 1]) + 0.1 * rng.normal(size=ROWS)
    return Samples.of(np.arange(ROWS), x, y)


def searched(model, known, *, seed=0, held=(), others=()):
    start = model.space.values
    rng = np.random.default_rng(seed)
    mask = np.isin(np.arange(len(start)), held)
    return StartSearch(model, tuple(others)).tune(known, start, mask, rng)


def latest_loss(model, known, lam):
    return Backtest(model, *split(known, MOST_ROWS, len(known) // PART)).loss(lam)


def ard(scales=(0.5, 0.5), regularization=0.1):
    return KernelRidge(ARD(scales), regularization=regularization)


MODELS = {
    "a good start": ard(),
    "too narrow": ard((50.0, 50.0), 0.01),
    "too wide": ard((1e-5, 1e-5), 50.0),
    "a mixture": KernelRidge(SquaredExponential(20.0) + Linear(), regularization=20.0),
    "a linear filter": AutoregressiveRidge([1e5, 1e-5]),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def search_of(known):
    """Return a function that searches from a model's start, once for each seed."""
    return cache(lambda name, seed=0: searched(MODELS[name], known, seed=seed))


@every_model
@pytest.mark.parametrize("seed", [0, 1])
def test_a_searched_start_is_never_worse_on_the_latest_rows_than_the_given_one(
    name, known, search_of, seed
):
    model, found = MODELS[name], search_of(name, seed)

    given = latest_loss(model, known, model.space.values)
    assert model.space.feasible.contains(found.lam)
    assert found.loss == latest_loss(model, known, found.lam)
    assert (found.lam == model.space.values).all() or found.loss < (1 - MARGIN) * given


@every_model
def test_the_same_seed_gives_the_same_start(name, known, search_of):
    one, other = search_of(name, 1), searched(MODELS[name], known, seed=1)

    assert one.lam.tobytes() == other.lam.tobytes()
    assert (one.loss, one.fits, one.gradients) == (other.loss, other.fits, other.gradients)


def test_a_bad_start_is_replaced(search_of):
    from_good = search_of("a good start").loss

    found = [search_of(name).loss for name in ("too narrow", "too wide")]

    assert max(found) < 1.05 * from_good


@pytest.mark.parametrize("start", [1e-3, 1e3])
def test_a_planted_optimum_is_found_from_either_end(known, start):
    model = Quadratic(best=np.array([10.0, 10.0]), bends=np.array([1.0, 3.0]))
    lam = np.full(2, start)

    found = StartSearch(model).tune(known, lam, np.zeros(2, bool), np.random.default_rng(0))

    assert np.abs(np.log(found.lam / 10.0)).max() < 0.1


def test_a_start_that_is_hardly_beaten_is_kept(known):
    bends = np.full(2, 0.5 * MARGIN)
    model = Quadratic(best=np.exp(np.full(2, 0.9)), bends=bends)  # at its start, the loss is 1.0162

    found = searched(model, known)

    assert (found.lam == model.space.values).all()


def test_another_start_that_is_clearly_better_is_taken(known):
    uneven = np.array([300.0, 0.1])  # no descent by one factor leads there
    model = Quadratic(best=uneven, bends=np.ones(2))

    found = searched(model, known, others=[uneven])

    assert found.lam.tolist() == pytest.approx(uneven.tolist())


def test_held_hyperparameters_stay_constant(known):
    model = ard((50.0, 50.0), 0.01)

    found = searched(model, known, held=[0, 2])

    assert found.lam[[0, 2]].tolist() == [50.0, 0.01]
    assert found.lam[1] != 50.0


def test_periods_are_not_searched(known):
    model = KernelRidge(
        Periodic(24.0, period_bounds=(12.0, 48.0)) + SquaredExponential(50.0), regularization=20.0
    )
    marks = np.array([name.startswith("periodic.") for name in model.space.names])

    found = searched(model, known)

    assert found.lam[marks].tolist() == model.space.values[marks].tolist()
    assert (found.lam != model.space.values)[~marks].any()


def test_few_rows_are_enough(known):
    found = searched(ard((50.0, 50.0), 0.01), known[:LEAST_ROWS])

    assert found.loss < latest_loss(ard(), known[:LEAST_ROWS], np.array([50.0, 50.0, 0.01]))


def test_a_search_takes_few_small_fits(known):
    found = searched(ard(), known)

    assert found.fits <= 64
    assert found.gradients == 40


def test_no_label_of_a_fit_comes_from_the_rows_that_it_forecasts(known):
    y = np.column_stack([known.y[:-2], known.y[1:-1], known.y[2:]])
    ahead = Samples.of(known.t[:-2], known.x[:-2], y)
    seen = []

    class Watching(type(ard())):
        def fit(self, samples, lam=None, before=None):
            seen.append(float(samples.t[-1]) + 2)
            return super().fit(samples, lam, before)

    model = Watching(ARD((50.0, 50.0)), regularization=0.01)
    searched(model, ahead)

    size = len(ahead) // PART
    assert max(seen) < ahead.t[len(ahead) - size]
    assert sum(last < ahead.t[len(ahead) - 2 * size] for last in seen) >= 60
