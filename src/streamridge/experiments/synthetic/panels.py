"""The panels of section 6.1: models at their start, and choices that the paper leaves open.

All panels use the values that the paper states: c_1 = c_2 = 0.5, sin(t / 5), 20 coefficients, the
kernels and their start. `PANELS` reproduce its claims; `OTHER_PANELS` show other choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.datasets.synthetic import drifting_series, synthetic_series
from streamridge.features.lags import Features
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import SquaredExponential
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.samples import Samples

LAGS = 20
# The period of sin(t / 5), in steps.
SINE_PERIOD = 10 * np.pi


class SeriesMaker(Protocol):
    """A function that makes a random series."""

    def __call__(self, steps: int, rng: np.random.Generator, *, noise: float) -> Vector:
        """Return the values, shape (steps,)."""


@dataclass(frozen=True)
class Interpretation:
    """The choices that section 6.1 leaves open, apart from the model."""

    # AR(20) is the past of y in `drifting_series`, a separate process in `synthetic_series`
    make_series: SeriesMaker = drifting_series
    noise: float = 0.02  # standard deviation of the noise in the series
    history: int = 400  # number of samples before the first forecast
    train_size: int = 100  # N

    def samples(self, seed: int, steps: int) -> Samples:
        """Return the samples of the history and of `steps` steps after it, with 20 lags."""
        values = LAGS + self.history + require_count("steps", steps)
        series = self.make_series(values, np.random.default_rng(seed), noise=self.noise)
        return Features(LAGS).samples(series)


@dataclass(frozen=True)
class Panel:
    """A panel of the figure: a model at its start, and an interpretation of the paper."""

    name: str
    model: KernelRidge
    interpretation: Interpretation = Interpretation()


def squared_exponential(
    *, centered: bool = True, bounds: tuple[float, float] = (1e-3, 1.0)
) -> KernelRidge:
    r"""Return the model of the left panel: nu = 0.1, and a small constant regularization.

    Eq. (6) as printed has no mean: `centered` subtracts it. The paper does not state bounds of nu.

    Notes
    -----
    If the mean loss $F$ behaves like $\nu^s$, a move changes $\nu$ by the share
    $\eta s F(\nu) / \nu^2$. The share grows as $\nu$ falls, unless $s \ge 2$. Measured on 200
    steps of one series it is 0.05 near the start and 0.26 at $\nu$ = 0.004: learning is gradual.
    With noise of 0.1, or a regularization of 1, it exceeds one at $\nu$ = 0.01; without a mean it
    is 7 at the start. Such a move overshoots zero, and only a bound stops it. Far above the start
    K is the identity, and no gradient leads back.
    """
    kernel = SquaredExponential(0.1, inverse_scale_bounds=bounds)
    return KernelRidge(kernel, 1e-3, regularization_bounds=None, centered=centered)


def periodic_linear(*, period: float = SINE_PERIOD) -> KernelRidge:
    """Return the model of the right panel: all weight on the periodic kernel, with nu = 10.

    The paper's period 5 is the omega of sin(t / omega); a kernel with the period 5 cannot reproduce
    that sine.
    """
    parts = [Periodic(period, inverse_scale=10.0), Linear()]
    kernel = Mixture(parts, weights=[1.0, 0.0])
    return KernelRidge(kernel, 1e-3, regularization_bounds=None)


APART = Interpretation(make_series=synthetic_series)
NOISY = Interpretation(noise=0.1)
NARROW, WIDE = (0.01, 1.0), (1e-6, 100.0)

PANELS = (
    Panel("squared exponential", squared_exponential()),
    Panel("periodic + linear", periodic_linear()),
)
OTHER_PANELS = (
    Panel("squared exponential, no mean", squared_exponential(centered=False, bounds=NARROW)),
    Panel("squared exponential, noise 0.1", squared_exponential(), NOISY),
    Panel("squared exponential, noise 0.1, wide C", squared_exponential(bounds=WIDE), NOISY),
    Panel("squared exponential, AR apart", squared_exponential(), APART),
    Panel("periodic + linear, period 5", periodic_linear(period=5.0)),
    Panel("periodic + linear, AR apart", periodic_linear(), APART),
    Panel("periodic + linear, period 5, AR apart", periodic_linear(period=5.0), APART),
)
