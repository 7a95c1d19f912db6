"""Corrections by neighbours for one sensor, written as plain loops over all of its past."""

import numpy as np

from streamridge.forecaster import neighbours as fast
from streamridge.forecaster.forecast import gaussian_quantile


def surprises_of(readings, values, sizes):
    """Return the surprises of all sensors at all steps, (T, n)."""
    found = (readings - values[:, :, 0]) / sizes[:, :, 0]
    return np.clip(np.where(np.isnan(found), 0.0, found), -fast.LARGEST, fast.LARGEST)


def columns_at(surprises, t, place, chosen):
    """Return the columns of a forecast made before step t: the latest surprises, (p,)."""

    def latest(sensor):
        found = []
        for lag in range(1, fast.LAGS + 1):
            known = sensor >= 0 and t - lag >= 0
            found.append(np.float32(surprises[t - lag, sensor]) if known else 0.0)
        return found

    return np.array([each for sensor in [*chosen, place] for each in latest(sensor)])


def weights_after(t, place, chosen, readings, values, sizes, day):
    """Return the weights after t steps, (p, H), if neighbours never changed."""
    horizon, surprises = values.shape[2], surprises_of(readings, values, sizes)
    size = (len(chosen) + 1) * fast.LAGS
    gram, products, keep = (
        np.zeros((size, size)),
        np.zeros((size, horizon)),
        1 - 1 / (fast.MEMORY * day),
    )
    for end in range(t - 1):  # readings of the newest step may still come late
        first = end - horizon + 1  # the step that the forecast began with
        if first < 0:
            continue
        gram, products = keep * gram, keep * products
        ahead = readings[first : end + 1, place]
        errors = (ahead - values[first, place]) / sizes[first, place]
        if not np.isnan(errors).any():
            z = columns_at(surprises, first, place, chosen)
            gram += np.outer(z, z)
            products += np.outer(z, np.clip(errors, -fast.LARGEST, fast.LARGEST))
    return np.linalg.solve(gram + fast.RIDGE * fast.MEMORY * day * np.eye(size), products)


def ends_of(values, sizes, level=0.9):
    """Return the ends of intervals with errors of these sizes, (..., H, 1) each."""
    half = gaussian_quantile(level) * sizes
    return (values - half)[..., None], (values + half)[..., None]
