"""A linear model with one penalty per feature: a second model for Algorithm 2, in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError, NotPositiveDefiniteError
from streamridge.hyperparameters.space import (
    Bounds,
    Space,
    positive_group,
    require_values,
    require_within,
)
from streamridge.models.base import (
    Arrays,
    Model,
    ModelFit,
    Tangents,
    WindowLoss,
    require_samples,
)
from streamridge.samples import Inputs, Samples


@dataclass(frozen=True)
class AutoregressiveRidge(Model["AutoregressiveFit"]):
    r"""A linear filter in which each lag has its own penalty.

    $$w = (X^T X + \mathrm{diag}(\alpha))^{-1} X^T y, \qquad \hat y = x^T w$$

    Parameters
    ----------
    penalties
        Initial $\alpha$, one per feature; a large penalty nearly removes the lag.
    penalties_bounds
        Interval in which they are learned; None keeps them constant.

    Notes
    -----
    Cost: $O(N p^2)$ per fit, so histories may be long.
    """

    penalties: ArrayLike
    penalties_bounds: Bounds = (1e-6, 1e6)

    def __post_init__(self) -> None:
        require_within("penalties", self.penalties, self.penalties_bounds)
        penalties = np.atleast_1d(np.asarray(self.penalties, dtype=np.float64))
        object.__setattr__(self, "penalties", tuple(penalties.tolist()))

    @cached_property
    def space(self) -> Space:
        return Space((positive_group("penalties", "ridge", self.penalties, self.penalties_bounds),))

    def fit(
        self, samples: Samples, lam: Vector | None = None, before: AutoregressiveFit | None = None
    ) -> AutoregressiveFit:
        """Return the filter fitted to N samples, at its initial penalties by default."""
        require_samples(samples)
        factor = self._factor(samples, lam)
        return AutoregressiveFit(factor, cho_solve(factor, samples.x.T @ samples.y), samples)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> AutoregressiveFit:
        w = require_finite("weights", state["weights"])
        require_shape("weights", w, (samples.x.shape[1], samples.y.shape[1]))
        return AutoregressiveFit(self._factor(samples, lam), w, samples)

    def _factor(self, samples: Samples, lam: Vector | None) -> tuple[Matrix, bool]:
        """Return the Cholesky factor of X^T X + diag(alpha)."""
        alpha = require_values(self.space.values if lam is None else lam, len(self.space.names))
        if samples.x.shape[1] != len(alpha):
            raise InvalidInputError(
                f"x must have {len(alpha)} features, one per penalty, got {samples.x.shape[1]}."
            )
        M = samples.x.T @ samples.x + np.diag(alpha)
        try:
            return cho_factor(M)
        except (np.linalg.LinAlgError, ValueError):  # no factor, or entries that overflowed
            least = float(alpha.min())
            raise NotPositiveDefiniteError(
                "X^T X + diag(penalties)", float(samples.t[-1]), "penalties", least, self._lowest
            ) from None

    @property
    def _lowest(self) -> float:
        return (self.penalties_bounds or (min(self.space.values), 0.0))[0]


@dataclass(frozen=True)
class AutoregressiveFit(ModelFit):
    """A linear filter with weights w, shape (p, H), fitted to N samples."""

    factor: tuple[Matrix, bool]  # of M = X^T X + diag(alpha)
    w: Matrix
    samples: Samples

    def predict(self, inputs: Inputs) -> Matrix:
        return inputs.x @ self.w

    def window_loss(self, window: Samples) -> float:
        return float(np.sum(self._errors(window) ** 2))

    def loss_and_gradient(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> tuple[float, Vector]:
        errors = self._errors(window)
        total, residuals = (float(np.sum(errors**2)), errors) if loss is None else loss.of(errors)
        return total, self._gradients(window, residuals, tangents).sum(axis=0)

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        return self._gradients(window, self._errors(window), tangents)

    def _errors(self, samples: Samples) -> Matrix:
        return samples.y - self.predict(samples.inputs)

    def _gradients(self, window: Samples, errors: Matrix, tangents: Tangents | None) -> Matrix:
        # dw/dalpha_i = -w_i M^-1 e_i, so d(y_hat)/dalpha_i = -w_i (M^-1 x)_i.
        in_lam = 2 * cho_solve(self.factor, window.x.T).T * (errors @ self.w.T)
        if tangents is None:
            return in_lam
        return np.column_stack([in_lam, *self._in_rows(window, errors, tangents)])

    def _in_rows(self, window: Samples, errors: Matrix, tangents: Tangents) -> Iterator[Vector]:
        # Along a tangent X' of X: dw = M^-1 (X'^T (y - X w) - X^T X' w).
        X, w, left = self.samples.x, self.w, self._errors(self.samples)
        for dX, dx in zip(tangents.training, tangents.window, strict=True):
            dw = cho_solve(self.factor, dX.T @ left - X.T @ (dX @ w))
            yield -2 * np.sum(errors * (dx @ w + window.x @ dw), axis=1)

    def release(self) -> None:
        """Drop nothing: a fit is only its weights, a p by p system and its samples."""

    def state(self) -> Arrays:
        return {"weights": self.w}
