import numpy as np

from streamridge.metrics import rmse, running_rmse


def test_running_rmse_is_the_rmse_of_every_prefix(rng):
    errors = rng.normal(size=30)

    curve = running_rmse(errors)

    np.testing.assert_allclose(curve, [rmse(errors[: t + 1]) for t in range(30)])
