import numpy as np
import pytest

from streamridge import InvalidInputError, KernelRidge, Linear, NotPositiveDefiniteError, Samples
from streamridge.tuners import HOAG
from streamridge.tuners.backtest import Backtest, holding
from tests.tuners.toys import HIGH, LOW, Quadratic, Watched, search, toy_backtest


def test_a_step_to_where_there_is_no_factor_is_taken_back():
    model = Watched(Quadratic(np.array([30.0]), np.ones(1)), refused=lambda lam: lam[0] > 20)

    found = search(HOAG(first_step=0.6), toy_backtest(model))

    assert max(lam[0] for lam in model.approximated) > 20
    assert 10 < found.lam[0] <= 20


def test_a_system_whose_entries_overflow_leaves_the_start():
    x = 1e160 * np.arange(1.0, 41.0)[:, None]
    samples = Samples.of(np.arange(40.0), x, np.arange(40.0))
    model = KernelRidge(Linear())

    with np.errstate(all="ignore"):
        found = search(HOAG(), Backtest(model, samples[:30], samples[30:]))

    np.testing.assert_array_equal(found.lam, model.space.values)
    assert found.loss == np.inf


def test_an_approximate_fit_whose_entries_overflow_is_refused():
    samples = Samples.of([0, 1], [[1e160], [2e160]], [1.0, 2.0])
    model = KernelRidge(Linear())

    with (
        np.errstate(all="ignore"),
        pytest.raises(NotPositiveDefiniteError, match="has no Cholesky factor at t=1 "),
    ):
        model.approximate(samples, model.space.values, 0.01)


def test_a_gradient_that_is_not_finite_is_not_followed():
    class Broken(Quadratic):
        def approximate(self, samples, lam, tolerance, before=None):
            fit = self.fit(samples, lam)
            fit.gradient[:] = np.nan if lam[0] > 1.5 else fit.gradient
            return fit

    found = search(HOAG(), toy_backtest(Broken(np.array([30.0]), np.ones(1))))

    assert 1.2 <= found.lam[0] <= 1.5


def test_a_coordinate_pressed_against_its_bound_does_not_hold_up_the_others():
    model = Quadratic(best=np.array([1e-9, 30.0]), bends=np.array([1e4, 1.0]))

    found = search(HOAG(stop=1e-8), toy_backtest(model), start=[LOW, 1.0])

    np.testing.assert_allclose(found.lam, [LOW, 30.0], rtol=1e-2)


def test_where_nothing_can_move_the_descent_ends_at_once():
    model = Watched(Quadratic(best=np.array([1e-9, 1e9]), bends=np.array([1.0, 1e4])))

    found = search(HOAG(), toy_backtest(model), start=[LOW, HIGH])

    np.testing.assert_array_equal(found.lam, [LOW, HIGH])
    assert len(model.approximated) == 1


def test_where_all_is_held_the_descent_ends_at_once():
    model = Watched(Quadratic(best=np.array([1e-9, 1e9]), bends=np.array([1.0, 1e4])))
    start = model.space.values
    held = holding(model.space, start, np.ones(2, dtype=bool))

    found = search(HOAG(), toy_backtest(model, held))

    np.testing.assert_array_equal(found.lam, start)
    assert len(model.approximated) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": 0}, r"^iterations must be a whole number from 1 on, got 0\.$"),
        ({"coordinates": "polar"}, r"^coordinates must be 'log' or 'natural', got 'polar'\.$"),
        (
            {"schedule": "linear"},
            r"^schedule must be one of 'quadratic', 'cubic', 'exponential', got 'linear'\.$",
        ),
        ({"tolerance": 0.0}, r"^tolerance must be positive, got 0\.0\.$"),
        ({"first_step": -1}, r"^first_step must be positive, got -1\.0\.$"),
        ({"stop": [1, 2]}, r"^stop must be one number, got \[1, 2\]\.$"),
        ({"gradients": 3}, r"^gradients must be 1 or 2, got 3\.$"),
        ({"gradients": 1.0}, r"^gradients must be a whole number from 1 on, got 1\.0\.$"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        HOAG(**settings)
