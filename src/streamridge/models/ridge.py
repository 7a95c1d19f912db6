r"""Kernel ridge regression: solve $A \theta = y$ once, then predict; eqs (6) and (12).

Whatever can be recomputed from the samples (the factor, the kernel's evaluations) is held in a
`System`, which a `Fit` may drop at any time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Embedding, Evaluation
from streamridge.memory import Arena
from streamridge.models.iterated import Guesses, IteratedSystem
from streamridge.models.pointwise import Pointwise
from streamridge.models.solving import ready
from streamridge.models.systems import Ridge, System, fill, no_factor
from streamridge.samples import Inputs, Samples


@dataclass(frozen=True)
class Center:
    """The origin of x and y in a fit: the means of its training set, or zero.

    Parameters
    ----------
    x, y
        (p,) and (H,), the origin.
    share
        The share of the means that it is: one or zero.
    """

    x: Vector
    y: Vector
    share: float

    @classmethod
    def of(cls, samples: Samples) -> Center:
        """Return the means of x and y."""
        return cls(samples.x.mean(axis=0), samples.y.mean(axis=0), share=1.0)

    @classmethod
    def zero(cls, samples: Samples) -> Center:
        """Return an origin at zero."""
        return cls(np.zeros(samples.x.shape[1]), np.zeros(samples.y.shape[1]), share=0.0)

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

    Parameters
    ----------
    phi
        (N, H), the dual weights; single precision, since a size of error needs no more digits.
    mean, least, most
        (H,), mean, minimum and maximum of $\log|r|$ over the training set.
    """

    phi: NDArray[np.float32]
    mean: Vector
    least: Vector
    most: Vector

    @classmethod
    def over(cls, sizes: Matrix, phi: Matrix) -> Spread:
        """Return the spread with weights phi, within the range of some sizes log |r|, (N, H)."""
        single = phi.astype(np.float32)
        return cls(single, sizes.mean(axis=0), sizes.min(axis=0), sizes.max(axis=0))

    def at(self, k: Matrix) -> Matrix:
        """Return the size of error at n inputs with the rows k, shape (n, H)."""
        return self.of(k @ self.phi)

    def of(self, sums: Matrix) -> Matrix:
        """Return the size of error at n inputs whose rows have the sums k^T phi, shape (n, H)."""
        return np.exp(np.minimum(np.maximum(self.mean + sums, self.least), self.most))


def log_sizes(residuals: Matrix) -> Matrix:
    """Return log |r| of residuals r, (N, H), with |r| at least 0.001 of its median."""
    sizes = np.abs(residuals)
    least = np.maximum(1e-3 * np.median(sizes, axis=0), np.finfo(float).tiny)
    return np.log(np.maximum(sizes, least))


class Expansion(ABC):
    """A fit that predicts by k_t^T theta, with rows k_t of the kernel against some of its samples.

    What can be recomputed is dropped and made again at need: the system that was solved, the
    samples as the kernel embeds them, and the fit as a function of one input.
    """

    ridge: Ridge
    samples: Samples
    center: Center
    theta: Matrix
    spread: Spread | None
    _system: Any
    _embedding: Embedding | None
    _pointwise: Pointwise | None
    _spare: Arena | None  # memory for the system

    @property
    @abstractmethod
    def basis(self) -> Inputs:
        """Return the inputs that the weights belong to."""

    @abstractmethod
    def learn_spread(self) -> Spread:
        """Return the size of the residuals as a function of the input, learned once."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything that cannot be recomputed."""
        dropped = dict.fromkeys(("_system", "_embedding", "_pointwise", "_spare"))
        return self.__dict__ | dropped

    @property
    def embedding(self) -> Embedding:
        """Return the basis as the kernel embeds it, recomputed if it was dropped."""
        if self._embedding is None:
            self._embedding = self.ridge.kernel.embed(self.center.inputs(self.basis))
        return self._embedding

    @property
    def pointwise(self) -> Pointwise:
        """Return the fit as a function of one input, prepared again if it was dropped."""
        if self._pointwise is None:
            self._pointwise = Pointwise.of(
                self.ridge.kernel,
                self.embedding,
                self.samples.inputs.layout,
                origin=self.center.x,
                level=self.center.y,
                theta=self.theta,
                phi=None if self.spread is None else self.spread.phi,
            )
        return self._pointwise

    def release(self) -> Arena:
        """Drop the system and the embedding, and return their memory for reuse."""
        memory: Arena = self._system.memory if self._system else self._memory()
        self._system = None
        self._embedding = None
        self._pointwise = None
        memory.clear()
        return memory

    def take_over(self, before: Expansion) -> None:
        """Use the memory of a fit that is no longer needed for the system, if it fits."""
        memory = before.release()
        self._spare = memory if memory.dtype == self.ridge.dtype else None

    def _memory(self) -> Arena:
        """Return memory for the system: what was taken over, or new."""
        memory, self._spare = self._spare or Arena(self.ridge.dtype), None
        return memory

    def rows(self, inputs: Inputs) -> Evaluation:
        """Return the kernel between n inputs and the basis: the rows k_t."""
        kernel = self.ridge.kernel
        return kernel.evaluate(kernel.embed(self.center.inputs(inputs)), self.embedding)

    def predict(self, inputs: Inputs) -> Matrix:
        """Return k_t^T theta for n inputs, eq. (12), plus the center of y; shape (n, H)."""
        if len(inputs) == 1:
            return self.pointwise.at(inputs)[0]
        return self.center.y + self.rows(inputs).value @ self.theta

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions and the expected size of their errors, shape (n, H) each.

        Notes
        -----
        Cost: O(N) per input in addition to its row k, and one more solve per fit.
        """
        spread = self.learn_spread()
        if len(inputs) == 1:
            predictions, sums = self.pointwise.at(inputs)
            return predictions, spread.of(sums)
        k = self.rows(inputs).value
        return self.center.y + k @ self.theta, spread.at(k)

    def window_loss(self, window: Samples) -> float:
        """Return the sum of squared errors of a window."""
        return float(np.sum((window.y - self.predict(window.inputs)) ** 2))


@dataclass
class Fit(Expansion):
    """A solved ridge system: dual weights for the horizons of y, ready to predict.

    Parameters
    ----------
    ridge
        Kernel, ridge constant and number format.
    samples
        The N training samples.
    center
        What is subtracted from x and y before the fit, and added back to predictions.
    theta
        (N, H), the dual weights.
    spread
        The size of the residuals as a function of the input; None before `learn_spread`.
    """

    ridge: Ridge
    samples: Samples
    center: Center
    theta: Matrix
    spread: Spread | None = None
    _system: System | None = field(default=None, repr=False)
    _embedding: Embedding | None = field(default=None, repr=False)
    _pointwise: Pointwise | None = field(default=None, repr=False)
    _spare: Arena | None = field(default=None, repr=False)  # memory for the system

    @classmethod
    def exact(cls, ridge: Ridge, samples: Samples, center: Center, memory: Arena) -> Self:
        """Return the fit with the dual weights theta = A^-1 y of N samples, eq. (6).

        Notes
        -----
        Cost: at most one Cholesky factorization, N^3 / 3 multiplications, for all horizons.
        """
        embedding = ridge.kernel.embed(center.inputs(samples.inputs))
        system = ready(ridge, embedding, samples.t, memory)
        return cls._solved(ridge, samples, center, embedding, system)

    @classmethod
    def iterated(
        cls,
        ridge: Ridge,
        samples: Samples,
        center: Center,
        memory: Arena,
        *,
        tolerance: float,
        guesses: Guesses,
    ) -> Self:
        """Return the fit with |A theta - y| <= tolerance |y|, found by iteration from a guess.

        Notes
        -----
        Cost: N^2 multiplications per iteration, and no factorization.
        """
        embedding = ridge.kernel.embed(center.inputs(samples.inputs))
        A, blocks = fill(ridge, embedding, memory)
        system = IteratedSystem(A, blocks, memory, tolerance, guesses)
        return cls._solved(ridge, samples, center, embedding, system)

    @classmethod
    def _solved(
        cls, ridge: Ridge, samples: Samples, center: Center, embedding: Embedding, system: System
    ) -> Self:
        theta = system.solve(samples.y - center.y)
        if not np.isfinite(theta).all():
            raise no_factor(ridge, float(samples.t[-1]))
        return cls(ridge, samples, center, theta, _system=system, _embedding=embedding)

    @property
    def basis(self) -> Inputs:
        """Return the training inputs."""
        return self.samples.inputs

    @property
    def system(self) -> System:
        """Return the solved system, recomputed if it was dropped."""
        if self._system is None:
            self._system = ready(self.ridge, self.embedding, self.samples.t, self._memory())
        return self._system

    @property
    def guesses(self) -> Guesses:
        """Return the solutions that the next approximate fit may start from."""
        return self._system.guesses if isinstance(self._system, IteratedSystem) else Guesses()

    def learn_spread(self) -> Spread:
        """Return the size of the residuals as a function of the input, learned once by one solve.

        Call it while the factor is still there: with several horizons, a factor that is recomputed
        elsewhere in memory gives different last bits.
        """
        if self.spread is None:
            sizes = self._log_residuals()
            self.spread = self.spread_of(self.system.solve(sizes - sizes.mean(axis=0)))
            self._pointwise = None
        return self.spread

    def spread_of(self, phi: Matrix) -> Spread:
        """Return the spread of this fit with the weights phi, shape (N, H)."""
        return Spread.over(self._log_residuals(), phi)

    def _log_residuals(self) -> Matrix:
        """Return log |r| of the training set, (N, H)."""
        return log_sizes(self.ridge.regularization * self.theta)

    def deviation(self, inputs: Inputs) -> Matrix:
        r"""Return the predictive standard deviation for n inputs, shape (n, H).

        It is the deviation of a Gaussian process with noise $\lambda_R$:
        $\sigma^2 (k(x, x) + \lambda_R - k^T A^{-1} k)$ with $\sigma^2 = y^T A^{-1} y / N$.

        Notes
        -----
        Cost: O(N^2) per input, with the factor of the fit.
        """
        k = self.rows(inputs).value.T
        lam_R = self.ridge.regularization
        diagonal = self.ridge.kernel.diagonal(self.center.inputs(inputs))
        spread = diagonal + lam_R - (k * self.system.solve(k)).sum(axis=0)
        targets = self.samples.y - self.center.y
        variance = np.maximum((targets * self.theta).mean(axis=0), 0.0)
        return np.sqrt(np.maximum(spread, 0.0)[:, None] * variance)
