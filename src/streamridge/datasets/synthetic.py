"""The synthetic series of section 6.1 of the paper, whose formula has two interpretations.

AR(20) may be a separate process, or the weighted sum of the last 20 values of y itself. The first
gives a stationary series. The second, with the Euclidean norm, gives the slow drift that the
paper's text mentions.
"""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Vector, require_count, require_positive
from streamridge.errors import InvalidInputError

ORDER = 20


def ar_coefficients(norm: int = 1) -> Vector:
    r"""Return the autoregressive coefficients $\alpha_i / 2\|\alpha\|$ with $\alpha_i = i$.

    Norm 1 is the sum of absolute values: the process is stable (spectral radius 0.95). Norm 2 is
    the Euclidean norm, as elsewhere in the paper: the process explodes (1.05).
    """
    if norm not in (1, 2):
        raise InvalidInputError(f"norm must be 1 or 2, got {norm}.")
    alpha = np.arange(1.0, ORDER + 1)
    return alpha / (2 * np.linalg.norm(alpha, ord=norm))


def synthetic_series(
    steps: int,
    rng: np.random.Generator,
    *,
    norm: int = 1,
    period: float = 10 * np.pi,
    noise: float = 0.1,
) -> Vector:
    r"""Return a series with a periodic part and an autoregressive drift.

    $$y(t) = 1 + \tfrac12 \mathrm{AR}(20)_t + \tfrac12 \sin(2 \pi t / \mathrm{period})$$

    Parameters
    ----------
    steps
        T, the number of values.
    rng
        Source of the noise that drives the autoregressive part.
    norm
        Reading of the norm in the coefficients, see `ar_coefficients`.
    period
        Period of the sine, in steps. The paper's sin(t / 5) has the period 10 pi.
    noise
        Standard deviation of the noise that drives the autoregressive part.

    Notes
    -----
    Paper: section 6.1. The values before the first one are one.

    Examples
    --------
    >>> synthetic_series(3, np.random.default_rng(0), noise=1e-9).round(3)
    array([1.25 , 1.349, 1.443])
    """
    require_count("steps", steps)
    require_positive("period", period)
    require_positive("noise", noise)
    alpha = ar_coefficients(norm)
    shocks = noise * rng.standard_normal(steps)
    drift = np.concatenate([np.ones(ORDER), shocks])
    for t in range(ORDER, len(drift)):
        drift[t] += alpha @ drift[t - ORDER : t][::-1]
    return 1 + 0.5 * drift[ORDER:] + 0.5 * np.sin(2 * np.pi * np.arange(steps) / period)


def drifting_series(
    steps: int,
    rng: np.random.Generator,
    *,
    norm: int = 2,
    period: float = 10 * np.pi,
    noise: float = 0.02,
) -> Vector:
    r"""Return a series with a periodic part that drifts upwards, driven by its own past.

    $$y(t) = 1 + \tfrac12 \sum_{i=1}^{20} \alpha_i y(t - i)
        + \tfrac12 \sin(2 \pi t / \mathrm{period}) + \varepsilon_t$$

    Parameters
    ----------
    steps, rng, period, noise
        See `synthetic_series`.
    norm
        Reading of the norm in the coefficients, see `ar_coefficients`. With 2, half their sum is
        0.98: the series climbs from zero towards 50, and is halfway after about 460 steps. With 1,
        half their sum is 0.25 and nothing drifts.

    Notes
    -----
    Paper: section 6.1. The values before the first one are zero.

    Examples
    --------
    >>> drifting_series(500, np.random.default_rng(0), noise=1e-9)[[0, 100, 499]].round(2)
    array([ 1.  ,  7.81, 26.2 ])
    """
    require_count("steps", steps)
    require_positive("period", period)
    require_positive("noise", noise)
    alpha = ar_coefficients(norm)
    sine = np.sin(2 * np.pi * np.arange(steps) / period)
    own = 1 + 0.5 * sine + noise * rng.standard_normal(steps)
    y = np.concatenate([np.zeros(ORDER), own])
    for t in range(ORDER, len(y)):
        y[t] += 0.5 * alpha @ y[t - ORDER : t][::-1]
    return y[ORDER:]
