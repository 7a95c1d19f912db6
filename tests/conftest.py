import signal

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from streamridge import Layout, Samples

# A shell lets its background jobs ignore Ctrl-C; tests of Ctrl-C are about jobs that do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no counterexample.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# Results repeat to the last bit on one thread only, and two workers share two cores.
threadpool_limits(1)

LAYOUT = Layout((("lags", 3), ("calendar", 2)), unitless=("calendar",))

HOURLY_DAY = 24
# Five days by the hour, from a Sunday on.
HOURLY_TIMES = np.datetime64("2021-06-13T00:00", "us") + np.arange(120) * np.timedelta64(1, "h")


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


@pytest.fixture
def actual(rng):
    """Return a value for each of the hourly times, with gaps."""
    values = 100 + rng.normal(0, 10, len(HOURLY_TIMES))
    values[[3, 30, 31, 32, 34]] = np.nan
    return values
