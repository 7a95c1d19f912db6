"""Random samples, and hourly times."""

import numpy as np

from streamridge import Layout, Samples

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
