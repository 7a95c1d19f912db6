import numpy as np
import pytest

from streamridge import Layout, Samples

LAYOUT = Layout((("lags", 3), ("calendar", 2)))


def make_samples(rng, n, *, horizon=1, layout=LAYOUT, start=0.0):
    """Return random samples whose targets depend on their features, as read-only arrays."""
    x = rng.normal(size=(n, layout.width))
    y = np.sin(x[:, :1]) + 0.1 * rng.normal(size=(n, horizon))
    samples = Samples.of(start + np.arange(n), x, y, layout)
    for array in (samples.t, samples.x, samples.y):
        array.flags.writeable = False
    return samples


@pytest.fixture
def rng():
    return np.random.default_rng(20180715)
