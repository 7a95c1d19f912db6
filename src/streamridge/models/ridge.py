r"""Parts shared by kernel ridge regression and its low-rank approximation.

Both predict by $k_t^T \theta$, eq. (12). The row $k_t$ holds the kernel between an input and some
training samples.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_number, require_shape
from streamridge.hyperparameters.space import (
    Bounds,
    Space,
    positive_group,
    require_values,
    require_within,
)
from streamridge.kernels.base import Arena, Embedding, Evaluation, Kernel, WeightedSum
from streamridge.models.base import Arrays, FitT, Model, ModelFit
from streamridge.models.systems import Ridge, no_factor
from streamridge.samples import Inputs, Samples

# Attributes of a fit that are recomputed when needed.
RECOMPUTED = ("system", "embedding", "one_input", "jacobian")


@dataclass(frozen=True)
class RidgeModel(Model[FitT], Generic[FitT]):
    """The base of ridge regressions in the feature space of a kernel; see `KernelRidge`."""

    kernel: Kernel
    regularization: float = 0.3
    regularization_bounds: Bounds = (1e-3, 1e2)
    centered: bool = True

    def __post_init__(self) -> None:
        require_number("regularization", self.regularization)
        require_within("regularization", self.regularization, self.regularization_bounds)

    @cached_property
    def space(self) -> Space:
        """Return the hyperparameters of the kernel, and the ridge constant after them."""
        value, bounds = self.regularization, self.regularization_bounds
        lam_R = positive_group("regularization", "ridge", value, bounds)
        return Space((*self.kernel.groups, lam_R))

    def starting_at(self, lam: Vector) -> Self:
        kernel = self.kernel.replace(lam[:-1])
        return replace(self, kernel=kernel, regularization=float(lam[-1]))

    def _ridge(self, lam: Vector | None, dtype: DTypeLike = np.float64) -> Ridge:
        values = self.space.values if lam is None else lam
        lam = require_values(values, len(self.space.names))
        bounds = self.regularization_bounds or (self.regularization, self.regularization)
        return Ridge(self.kernel.at(lam[:-1]), float(lam[-1]), bounds[0], np.dtype(dtype))


@dataclass(frozen=True)
class Center:
    """The origin of x and y in a fit: the means of its training set, or zero."""

    x: Vector  # (p,)
    y: Vector  # (H,)
    share: float  # one for the means, zero for zero

    @classmethod
    def of(cls, samples: Samples, centered: bool = True) -> Center:
        """Return the means of x and y, or zero if they are not centered."""
        x, y = samples.inputs.x, samples.y
        if centered:
            return cls(x.mean(axis=0), y.mean(axis=0), share=1.0)
        return cls(np.zeros(x.shape[1]), np.zeros(y.shape[1]), share=0.0)

    def inputs(self, inputs: Inputs) -> Inputs:
        """Return inputs relative to this origin."""
        return Inputs(inputs.t, inputs.x - self.x, inputs.layout)


@dataclass(frozen=True)
class Spread:
    r"""The size of a fit's errors as a function of the input.

    The training residuals are $r = y - K\theta = \lambda_R \theta$. The logarithm of
    their size is regressed on the same inputs with the same factor,
    $\varphi = A^{-1} (\log|r| - c)$, where $c$ is the mean of $\log|r|$. The expected size at an
    input with row $k$ is $\exp(c + k^T \varphi)$, limited to the range of the sizes seen.
    """

    phi: NDArray[np.float32]  # (N, H), the dual weights; a size of error needs no more digits
    mean: Vector  # (H,), of log |r| over the training set, like its minimum and maximum
    least: Vector
    most: Vector

    @classmethod
    def over(cls, sizes: Matrix, phi: Matrix) -> Spread:
        """Return the spread with weights phi, within the range of the sizes log |r|, (N, H)."""
        single = phi.astype(np.float32)
        return cls(single, sizes.mean(axis=0), sizes.min(axis=0), sizes.max(axis=0))

    def at(self, sums: Matrix) -> Matrix:
        """Return the size of error at n inputs with the sums k^T phi, shape (n, H)."""
        return np.exp(np.minimum(np.maximum(self.mean + sums, self.least), self.most))


def log_sizes(residuals: Matrix) -> Matrix:
    """Return log |r| of residuals r, (N, H), with |r| at least 0.001 of its median."""
    sizes = np.abs(residuals)
    least = np.maximum(1e-3 * np.median(sizes, axis=0), np.finfo(float).tiny)
    return np.log(np.maximum(sizes, least))


@dataclass(frozen=True)
class KernelPredictor:
    """The prediction of one input: the embedded inputs of the weights, without the samples."""

    center: Center
    spread: Spread | None
    # The function of one input that gives k^T theta, and k^T phi after it if there is a spread.
    weighted_sum: WeightedSum

    def predict(self, inputs: Inputs) -> Matrix:
        return (self.center.y + self._sums(inputs)[: len(self.center.y)])[None, :]

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix] | None:
        if self.spread is None:
            return None
        sums, H = self._sums(inputs), len(self.center.y)
        return (self.center.y + sums[:H])[None, :], self.spread.at(sums[None, H:])

    def _sums(self, inputs: Inputs) -> Vector:
        return self.weighted_sum(float(inputs.t[0]), inputs.x[0] - self.center.x)


@dataclass
class KernelFit(ModelFit):
    """A fit that predicts by k_t^T theta, with rows k_t of the kernel against some inputs.

    The solved system, these inputs as embedded, and the prediction of a single input are dropped by
    `release` and recomputed when needed.
    """

    ridge: Ridge
    samples: Samples
    center: Center  # subtracted from x and y before the fit, and added back to predictions
    theta: Matrix  # the weights, one column per horizon
    spread: Spread | None = None  # None before `learn_spread`
    _spare: Arena | None = field(default=None, repr=False)  # memory for the system

    @cached_property
    @abstractmethod
    def system(self) -> Any:
        """Return the solved system."""

    def weighted(self, theta: Matrix) -> Self:
        """Return the fit with its weights; raise if they are not finite."""
        if not np.isfinite(theta).all():
            raise no_factor(self.ridge, float(self.samples.t[-1]))
        self.theta = theta
        return self

    @abstractmethod
    def _learned_spread(self) -> Spread:
        """Return the size of the residuals as a function of the input, by one solve."""

    def learn_spread(self) -> Spread:
        """Return the size of the residuals as a function of the input, learned once by one solve.

        Call it while the factor is still there: with several horizons, a factor that is recomputed
        elsewhere in memory gives different last bits.
        """
        if self.spread is None:
            self.spread = self._learned_spread()
            vars(self).pop("one_input", None)
        return self.spread

    @cached_property
    @abstractmethod
    def embedding(self) -> Embedding:
        """Return the inputs that the weights belong to, as the kernel embeds them."""

    @cached_property
    def one_input(self) -> KernelPredictor:
        """Return the prediction of one input."""
        spread, layout = self.spread, self.samples.inputs.layout
        weights = self.theta if spread is None else np.hstack([self.theta, spread.phi])
        summed = self.ridge.kernel.weighted_sum(self.embedding, weights, layout)
        return KernelPredictor(self.center, spread, summed)

    def predictor(self) -> KernelPredictor:
        return self.one_input

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state: everything that cannot be recomputed."""
        kept = {name: value for name, value in vars(self).items() if name not in RECOMPUTED}
        return kept | {"_spare": None}

    def release(self) -> Arena:
        """Drop the system and the embedding, and return their memory for reuse."""
        system = vars(self).get("system")
        memory: Arena = system.memory if system else self.take_memory()
        for name in RECOMPUTED:
            vars(self).pop(name, None)
        memory.rewind()
        return memory

    def take_over(self, before: KernelFit) -> None:
        """Use the memory of a fit that is no longer needed, if it has the right dtype."""
        memory = before.release()
        self._spare = memory if memory.dtype == self.ridge.dtype else None

    def take_memory(self) -> Arena:
        """Return memory for the system: the memory that was taken over, or new memory."""
        memory, self._spare = self._spare or Arena(self.ridge.dtype), None
        return memory

    def rows(self, inputs: Inputs) -> Evaluation:
        """Return the rows k_t: the kernel between n inputs and the inputs of the weights."""
        kernel = self.ridge.kernel
        return kernel.evaluate(kernel.embed(self.center.inputs(inputs)), self.embedding)

    def predict(self, inputs: Inputs) -> Matrix:
        """Return k_t^T theta for n inputs, eq. (12), plus the center of y; shape (n, H)."""
        if len(inputs.t) == 1:
            return self.one_input.predict(inputs)
        return self.center.y + self.rows(inputs).value @ self.theta

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix] | None:
        spread = self.spread or self.learn_spread()
        if len(inputs.t) == 1:
            return self.one_input.predict_with_spread(inputs)
        k = self.rows(inputs).value
        return self.center.y + k @ self.theta, spread.at(k @ spread.phi)

    def window_loss(self, window: Samples) -> float:
        return float(np.sum((window.y - self.predict(window.inputs)) ** 2))


def require_weights(name: str, state: Arrays, shape: tuple[int, ...]) -> Matrix:
    """Return an array of a saved state; raise unless it is finite and has this shape."""
    weights = require_finite(name, state[name])
    require_shape(name, weights, shape)
    return weights
