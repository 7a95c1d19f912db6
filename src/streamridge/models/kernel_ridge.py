"""Multiple-kernel ridge regression as a model: section 3 of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.memory import Arena
from streamridge.models.base import Arrays, Tangents, WindowLoss, require_samples
from streamridge.models.hypergradient import (
    MovingRows,
    dual_jacobian,
    loss_and_gradient,
    step_gradients,
)
from streamridge.models.iterated import Guesses
from streamridge.models.ridge import Fit
from streamridge.models.ridge_model import RidgeModel
from streamridge.samples import Samples


@dataclass(frozen=True)
class KernelRidge(RidgeModel):
    """Ridge regression in the feature space of a kernel.

    Parameters
    ----------
    kernel
        Any kernel; its values are the initial hyperparameters.
    regularization
        Initial ridge constant.
    regularization_bounds
        Interval in which it is learned; None keeps it constant.
    centered
        Whether x and y are centred on the mean of each training set.
    factor_dtype
        Number format of the matrix: float64, or float32 for a fit in about half the time, whose
        forecasts are within a thousandth of a standard deviation.

    Examples
    --------
    >>> from streamridge.kernels.radial import SquaredExponential
    >>> from streamridge.samples import Inputs
    >>> t = np.arange(40.0)
    >>> samples = Samples.of(t, np.sin(t)[:, None], np.cos(t) ** 2)
    >>> fit = KernelRidge(SquaredExponential(), regularization=1e-3).fit(samples)
    >>> fit.predict(Inputs.of([0.0], [[0.6]])).round(2)
    array([[0.64]])
    """

    factor_dtype: DTypeLike = np.float64

    def __post_init__(self) -> None:
        if self.factor_dtype not in (np.float64, np.float32, "float64", "float32"):
            raise InvalidInputError(
                f"factor_dtype must be float64 or float32, got {self.factor_dtype}."
            )
        object.__setattr__(self, "factor_dtype", np.dtype(self.factor_dtype).name)
        super().__post_init__()

    def fit(
        self,
        samples: Samples,
        lam: Vector | None = None,
        before: KernelRidgeFit | None = None,
    ) -> KernelRidgeFit:
        """Return the model fitted to N samples, at its initial hyperparameters by default."""
        require_samples(samples)
        ridge, center = self._ridge(lam, self.factor_dtype), self._center(samples)
        return KernelRidgeFit.exact(ridge, samples, center, self._memory(before))

    def approximate(
        self,
        samples: Samples,
        lam: Vector,
        tolerance: float,
        before: KernelRidgeFit | None = None,
    ) -> KernelRidgeFit:
        guesses = before.guesses if before else Guesses()
        return KernelRidgeFit.iterated(
            self._ridge(lam, self.factor_dtype),
            samples,
            self._center(samples),
            self._memory(before),
            tolerance=tolerance,
            guesses=guesses,
        )

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> KernelRidgeFit:
        theta = _require_weights("dual_weights", state, samples)
        ridge, center = self._ridge(lam, self.factor_dtype), self._center(samples)
        fit = KernelRidgeFit(ridge, samples, center, theta)
        if "spread_weights" in state:
            fit.spread = fit.spread_of(_require_weights("spread_weights", state, samples))
        return fit

    def _memory(self, before: KernelRidgeFit | None) -> Arena:
        """Return the memory of the fit `before` if it has the right dtype, else new memory."""
        memory = before.release() if before else None
        return memory if memory and memory.dtype == self.factor_dtype else Arena(self.factor_dtype)


@dataclass
class KernelRidgeFit(Fit):
    """Kernel ridge regression fitted to one training set, with its hyper-gradients."""

    _jacobian: Matrix | None = field(default=None, repr=False)

    def loss_and_gradient(self, window: Samples) -> tuple[float, Vector]:
        return loss_and_gradient(self, window)

    def gradient_of(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> Vector:
        return loss_and_gradient(self, window, self._moving(window, tangents), loss)[1]

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        moving = self._moving(window, tangents)
        return step_gradients(self, self._dual_jacobian(moving), window, moving)

    def _moving(self, window: Samples, tangents: Tangents | None) -> MovingRows:
        training = self.samples.inputs
        return MovingRows.of(self.ridge.kernel, self.center, training, window.inputs, tangents)

    def _dual_jacobian(self, moving: MovingRows) -> Matrix:
        """Return the Jacobian; where rows do not move, one serves every window of the fit."""
        if moving.training:
            return dual_jacobian(self, moving)
        if self._jacobian is None:
            self._jacobian = dual_jacobian(self)
        return self._jacobian

    def release(self) -> Arena:
        self._jacobian = None
        return super().release()

    def state(self) -> Arrays:
        state: dict[str, NDArray[Any]] = {"dual_weights": self.theta}
        if self.spread is not None:
            state["spread_weights"] = self.spread.phi
        return state

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_jacobian": None}


def _require_weights(name: str, state: Arrays, samples: Samples) -> Matrix:
    weights = require_finite(name, state[name])
    require_shape(name, weights, samples.y.shape)
    return weights
