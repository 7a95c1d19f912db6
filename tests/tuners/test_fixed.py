import numpy as np

from streamridge.tuners import Fixed
from tests.tuners.toys import Quadratic, Watched, search, toy_backtest


def test_nothing_is_fitted_and_nothing_moves():
    model = Watched(Quadratic(np.array([30.0]), np.ones(1)))

    found = search(Fixed(), toy_backtest(model), start=[5.0])

    assert found.lam.tolist() == [5.0]
    assert np.isnan(found.loss)
    assert (found.fits, found.gradients, Fixed().trials(model.space)) == (0, 0, 0)
    assert not model.fitted
