import sys

import numpy as np
import optuna
import pytest

from streamridge import ARD, Box, InvalidInputError, KernelRidge, Linear, Mixture, Periodic
from streamridge.errors import MissingExtraError
from streamridge.hyperparameters.space import Group, Space
from streamridge.tuners import Bayesian
from streamridge.tuners.bayesian import _lam
from tests.support.toy_models import Quadratic, QuadraticFit, Watched, search, toy_backtest
from tests.support.uniformity import p_value_of_uniform

MIXTURE = KernelRidge(Mixture([ARD([0.3] * 2), Linear(), Periodic(9.0)], weights=[0.2, 0.7, 0.1]))


class Searched(Watched):
    """A backtest without a model: the loss is the last hyperparameter."""

    def __init__(self, space):
        super().__init__(self)
        self._space = space

    @property
    def space(self):
        return self._space

    def fit(self, samples, lam, retired=None):
        self.fitted.append(lam.copy())
        return QuadraticFit(float(lam[-1]), np.zeros(len(lam)))


@pytest.fixture
def told(monkeypatch):
    """Return the pairs of parameters and loss that studies receive."""
    pairs = []
    tell = optuna.study.Study.tell

    def listen(study, trial, loss):
        pairs.append((dict(trial.params), loss))
        return tell(study, trial, loss)

    monkeypatch.setattr(optuna.study.Study, "tell", listen)
    return pairs


def test_the_start_is_the_first_trial_exactly(told):
    model = Searched(MIXTURE.space)
    start = MIXTURE.space.values

    search(Bayesian(3), toy_backtest(model))

    np.testing.assert_array_equal(model.fitted[0], start)
    params, loss = told[0]
    assert loss == start[-1]
    assert params["regularization"] == start[-1]
    # Optuna receives exp(-weight) for a weight.
    shares = -np.log([params[name] for name in MIXTURE.space.names[:3]])
    np.testing.assert_allclose(shares, start[:3], rtol=1e-12)


def test_proposals_lie_in_their_intervals_and_on_their_simplex():
    model = Searched(MIXTURE.space)

    search(Bayesian(25), toy_backtest(model))

    tried = np.array(model.fitted)
    assert all(MIXTURE.space.feasible.contains(lam) for lam in tried)
    np.testing.assert_allclose(tried[:, :3].sum(axis=1), 1.0, rtol=1e-12)
    assert (tried[1:].std(axis=0) > 0).tolist() == [
        low < high for low, high in zip(*bounds_of(MIXTURE.space), strict=True)
    ]


def bounds_of(space):
    boxes = [
        part if isinstance(part, Box) else Box(np.zeros(part.size), np.ones(part.size))
        for part in space.feasible.parts
    ]
    return np.concatenate([b.low for b in boxes]), np.concatenate([b.high for b in boxes])


def test_first_proposals_are_even_in_logarithms_and_on_the_simplex():
    model = Searched(MIXTURE.space)

    # Up to its tenth trial the sampler draws at random.
    for seed in range(40):
        search(Bayesian(9), toy_backtest(model), seed=seed)

    drawn = np.array([lam for lam in model.fitted if lam[-1] != MIXTURE.space.values[-1]])
    shares = np.log(drawn[:, -1] / 1e-3) / np.log(1e5)
    assert p_value_of_uniform(shares) > 0.01
    # Each of three even weights has the distribution Beta(1, 2).
    assert min(p_value_of_uniform(1 - (1 - column) ** 2) for column in drawn[:, :3].T) > 0.01


def test_an_interval_that_reaches_zero_is_searched_on_a_linear_scale():
    group = Group("shift", "scale", ("shift",), np.array([3.0]), Box([0.0], [4.0]))
    model = Searched(Space((group,)))

    found = search(Bayesian(20), toy_backtest(model))

    assert found.lam[0] < 1.0
    assert np.median(model.fitted) > 0.1


def test_a_single_weight_is_not_searched(told):
    model = KernelRidge(Mixture([Linear()]))
    searched = Searched(model.space)

    search(Bayesian(3), toy_backtest(searched))

    assert [lam[0] for lam in searched.fitted] == [1.0] * 4
    assert all(list(params) == ["regularization"] for params, _ in told)


def test_held_hyperparameters_are_not_proposed(told):
    model = Quadratic(np.ones(2), np.ones(2))
    space = model.space.holding(np.array([5.0, 1.0]), np.array([True, False]))

    search(Bayesian(3), toy_backtest(model, space), start=[5.0, 1.0])

    assert all(list(params) == ["rates[1]"] for params, _ in told)


def test_a_trial_without_a_factor_counts_as_the_worst(told):
    model = Watched(Quadratic(np.ones(1), np.ones(1)), refused=lambda lam: lam[0] > 1)

    search(Bayesian(8), toy_backtest(model))

    refused = [loss for params, loss in told if params["rates[0]"] > 1]
    assert refused
    assert set(refused) == {np.finfo(float).max}


def test_earlier_trials_guide_later_ones():
    model = Watched(Quadratic(np.array([100.0]), np.ones(1)))

    search(Bayesian(60), toy_backtest(model))

    apart = np.abs(np.log(np.array(model.fitted)[:, 0] / 100.0))
    assert np.median(apart[-20:]) < np.median(apart[1:10]) / 2


def test_trials_are_not_logged(caplog):
    optuna.logging.set_verbosity(optuna.logging.INFO)
    optuna.logging.enable_propagation()

    search(Bayesian(2), toy_backtest(Quadratic(np.ones(1), np.ones(1))))

    optuna.logging.disable_propagation()
    assert not caplog.records


@pytest.mark.parametrize(
    ("drawn", "weights"),
    [
        ([1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
        ([0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
        ([np.exp(-0.2), np.exp(-0.7), np.exp(-0.1)], [0.2, 0.7, 0.1]),
    ],
)
def test_any_numbers_from_zero_to_one_give_weights(drawn, weights):
    params = dict(zip(MIXTURE.space.names[:3], drawn, strict=True))

    lam = _lam(MIXTURE.space, params)

    np.testing.assert_allclose(lam[:3], weights, atol=1e-11)


def test_the_error_without_optuna_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)

    with pytest.raises(
        MissingExtraError,
        match=r"^optuna must be installed for Bayesian tuning\. "
        r"Install it with: pip install 'streamridge\[bayes\]'$",
    ):
        Bayesian()


def test_at_least_one_proposal_is_required():
    with pytest.raises(
        InvalidInputError, match=r"^proposals must be a whole number of at least 1, got 0\.$"
    ):
        Bayesian(0)
