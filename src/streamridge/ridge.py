r"""Kernel ridge regression: factor $A = K + \lambda_R I$ once, then solve; eqs (6) and (12).

The upper triangle of K is made in blocks of rows that fit the processor's cache, and the Cholesky
factor takes its place. Whatever can be made again from the samples (the factor, the kernel's
evaluations) is held in a `System`, which a `Fit` may drop at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from streamridge.arrays import Block, Matrix, Vector
from streamridge.errors import NotPositiveDefiniteError
from streamridge.kernels.base import Embedding, Evaluation, Kernel
from streamridge.memory import Arena
from streamridge.samples import Inputs, Samples

# Rows of K made at a time: at N = 2880 their mean block takes 1.1 MB, one core's cache.
BLOCK_ROWS = 96
# Refinement of a float32 factor stops at this relative residual, or gives up after so many rounds.
REFINED = 1e-8
REFINEMENT_ROUNDS = 12


@dataclass(frozen=True)
class Ridge:
    """Says which ridge system to solve.

    Parameters
    ----------
    kernel
        The kernel, at its hyperparameters.
    regularization
        The ridge constant.
    lower_bound
        The least ridge constant that tuning may choose; only the error message needs it.
    dtype
        Number format of the factorization: float64, or float32 refined to float64 solutions.
    """

    kernel: Kernel
    regularization: float
    lower_bound: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Center:
    """Is the origin of x and y in a fit: the means of its training set, or zero."""

    x: Vector
    y: Vector

    @classmethod
    def of(cls, samples: Samples) -> Center:
        """Return the means of x and y."""
        return cls(samples.x.mean(axis=0), samples.y.mean(axis=0))

    @classmethod
    def zero(cls, samples: Samples) -> Center:
        """Return the origin as it is."""
        return cls(np.zeros(samples.x.shape[1]), np.zeros(samples.y.shape[1]))


@dataclass(frozen=True)
class System:
    """Is A = K + lam_R I of N samples, factored.

    Parameters
    ----------
    factor
        (N, N), column-major; its lower triangle L has A = L L^T.
    blocks
        The kernel's evaluations on rows of the upper triangle, for its gradients.
    upper
        A itself from its diagonal squares on, where the factor needs refinement; else None.
    memory
        Where all of them live.
    """

    factor: Block
    blocks: tuple[tuple[slice, Evaluation], ...]
    upper: Block | None
    memory: Arena

    def solve(self, B: Matrix) -> Matrix:
        """Return A^-1 B for right-hand sides B of shape (N, k)."""
        X = self.solve_once(B)
        X = X if self.upper is None else self._refine(X, B, self.upper)
        # One layout, whatever LAPACK returns: products with X repeat to the last bit after a save.
        return np.ascontiguousarray(X)

    def half_solve(self, B: Matrix) -> Matrix:
        """Return L^-1 B, whose squared columns sum to b^T A^-1 b; shape (N, k)."""
        (trsm,) = get_blas_funcs(("trsm",), (self.factor,))
        return trsm(1.0, self.factor, B, lower=1).astype(np.float64, copy=False)

    def solve_once(self, B: Matrix) -> Matrix:
        """Return A^-1 B to the precision of the factor, shape (N, k)."""
        # Measured at N = 2880: potrs takes 8.8 ms for one right-hand side, two trsv take 3.4 ms.
        if B.shape[1] == 1:
            (trsv,) = get_blas_funcs(("trsv",), (self.factor,))
            half = trsv(self.factor, B[:, 0], lower=1)
            x = trsv(self.factor, half, lower=1, trans=1)[:, None]
        else:
            (potrs,) = get_lapack_funcs(("potrs",), (self.factor,))
            x, _ = potrs(self.factor, B, lower=1)
        return x.astype(np.float64, copy=False)

    def _refine(self, X: Matrix, B: Matrix, upper: Block) -> Matrix:
        """Return X with its residual worked off in float64, or NaN where that does not converge.

        Every round shrinks the residual by the same factor, so that the size of one foretells the
        next: the last product, which would only confirm it, is spared.
        """
        last = np.linalg.norm(B, axis=0)
        accepted = REFINED * last
        for _ in range(REFINEMENT_ROUNDS):
            residual = B - _symmetric_product(upper, X)
            size = np.linalg.norm(residual, axis=0)
            X = X + self.solve_once(residual)
            if (size**2 <= accepted * last).all():
                return X
            last = size
        return np.full_like(X, np.nan)


@dataclass(frozen=True)
class Spread:
    r"""Is the size of a fit's errors as a function of the input.

    The training residuals are $r = y - K\theta = \lambda_R \theta$. Their logarithmic size is
    regressed on the same inputs by the same factor, $\varphi = A^{-1} (\log|r| - c)$ with its mean
    $c$; at an input with row $k$ it is $\exp(c + k^T \varphi)$, kept within the sizes seen.

    Parameters
    ----------
    phi
        (N, H), the dual weights.
    mean, least, most
        (H,), of the residuals' logarithmic size.
    """

    phi: Matrix
    mean: Vector
    least: Vector
    most: Vector

    def at(self, k: Matrix) -> Matrix:
        """Return the size of error at n inputs with the rows k, shape (n, H)."""
        return np.exp(np.clip(self.mean + k @ self.phi, self.least, self.most))


@dataclass
class Fit:
    """Is a solved ridge system: dual weights for the horizons of y, ready to predict.

    Parameters
    ----------
    ridge
        Kernel, ridge constant and number format.
    samples
        The N training samples.
    center
        What is taken off x and y before anything else, and put back on predictions.
    theta
        (N, H), the dual weights.
    spread
        How large the residuals are, and where, once `predict_with_spread` has asked for it.
    """

    ridge: Ridge
    samples: Samples
    center: Center
    theta: Matrix
    spread: Spread | None = None
    _system: System | None = field(default=None, repr=False)
    _embedding: Embedding | None = field(default=None, repr=False)

    @property
    def embedding(self) -> Embedding:
        """Return the training inputs as the kernel embeds them, made again when dropped."""
        if self._embedding is None:
            self._embedding = _embed(self.ridge, self.samples.inputs, self.center)
        return self._embedding

    @property
    def system(self) -> System:
        """Return the factored system, made again when it was dropped."""
        if self._system is None:
            self._system = assemble(
                self.ridge, self.embedding, float(self.samples.t[-1]), Arena(self.ridge.dtype)
            )
        return self._system

    def release(self) -> Arena:
        """Drop the system and the embedding, and return the memory they took for another use."""
        memory = self._system.memory if self._system else Arena(self.ridge.dtype)
        self._system = None
        self._embedding = None
        memory.clear()
        return memory

    def rows(self, inputs: Inputs) -> Evaluation:
        """Return the kernel between n inputs and the training inputs: the rows k_t."""
        embedded = _embed(self.ridge, inputs, self.center)
        return self.ridge.kernel.evaluate(embedded, self.embedding)

    def predict(self, inputs: Inputs) -> Matrix:
        """Return k_t^T theta for n inputs, eq. (12), around the center; shape (n, H)."""
        return self.center.y + self.rows(inputs).value @ self.theta

    def predict_with_spread(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        """Return the predictions, and how large their errors are around there; (n, H) each.

        Notes
        -----
        Cost: O(N) per input beside its row k, and one more solve per fit.
        """
        if self.spread is None:
            sizes = self._log_residuals()
            self.spread = self.spread_of(self.system.solve(sizes - sizes.mean(axis=0)))
        k = self.rows(inputs).value
        return self.center.y + k @ self.theta, self.spread.at(k)

    def spread_of(self, phi: Matrix) -> Spread:
        """Return the spread of this fit with the weights phi, shape (N, H)."""
        sizes = self._log_residuals()
        return Spread(phi, sizes.mean(axis=0), sizes.min(axis=0), sizes.max(axis=0))

    def _log_residuals(self) -> Matrix:
        """Return log |r| of the training set, (N, H); residuals near zero are counted as small."""
        sizes = self.ridge.regularization * np.abs(self.theta)
        least = np.maximum(1e-3 * np.median(sizes, axis=0), np.finfo(float).tiny)
        return np.log(np.maximum(sizes, least))

    def deviation(self, inputs: Inputs) -> Matrix:
        r"""Return the predictive standard deviation for n inputs, shape (n, H).

        As a Gaussian process of noise $\lambda_R$ sees it:
        $\sigma^2 (k(x, x) + \lambda_R - k^T A^{-1} k)$ with $\sigma^2 = y^T A^{-1} y / N$.

        Notes
        -----
        Cost: O(N^2) per input, by the factor of the fit.
        """
        half = self.system.half_solve(self.rows(inputs).value.T)
        lam_R = self.ridge.regularization
        diagonal = self.ridge.kernel.diagonal(_centered(inputs, self.center))
        spread = diagonal + lam_R - (half**2).sum(axis=0)
        targets = self.samples.y - self.center.y
        variance = np.maximum((targets * self.theta).mean(axis=0), 0.0)
        return np.sqrt(np.maximum(spread, 0.0)[:, None] * variance)


def fit_ridge(ridge: Ridge, samples: Samples, center: Center, memory: Arena) -> Fit:
    """Return the dual weights theta = A^-1 y of N samples, eq. (6), with their system.

    Notes
    -----
    Cost: one Cholesky factorization, N^3 / 3 multiplications, for all horizons.
    """
    embedding = _embed(ridge, samples.inputs, center)
    time = float(samples.t[-1])
    system = assemble(ridge, embedding, time, memory)
    theta = system.solve(samples.y - center.y)
    if not np.isfinite(theta).all():
        raise _no_factor(ridge, time)
    return Fit(ridge, samples, center, theta, _system=system, _embedding=embedding)


def assemble(ridge: Ridge, embedding: Embedding, time: float, memory: Arena) -> System:
    """Return A = K + lam_R I of the embedded samples, factored in place."""
    N = len(embedding)
    A = memory.empty((N, N))
    upper = memory.empty((N, N)) if ridge.dtype == np.float32 else None
    blocks = []
    for rows, evaluation in upper_blocks(ridge.kernel, embedding, memory):
        block = A[rows, rows.start :]
        evaluation.write_to(block)
        diagonal = slice(rows.start * (N + 1), rows.stop * (N + 1), N + 1)
        A.ravel()[diagonal] += ridge.regularization
        if upper is not None:
            upper[rows, rows.start :] = block
        blocks.append((rows, evaluation))
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    # Row-major A is column-major A^T: its upper triangle is LAPACK's lower one, with no copy.
    factor, failed = potrf(A.T, lower=1, overwrite_a=1, clean=0)
    pivots = np.diagonal(factor)
    # A factor whose pivots differ by more than rounding can resolve says nothing about y.
    least = N * np.finfo(ridge.dtype).eps * pivots.max() ** 2
    if failed or not pivots.min() ** 2 > least:
        raise _no_factor(ridge, time)
    return System(factor, tuple(blocks), upper, memory)


def upper_blocks(
    kernel: Kernel, embedding: Embedding, memory: Arena
) -> Iterator[tuple[slice, Evaluation]]:
    """Yield blocks of rows of the Gram matrix, each from its diagonal square on."""
    for start in range(0, len(embedding), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(embedding)))
        columns = slice(start, len(embedding))
        yield rows, kernel.evaluate(embedding.rows(rows), embedding.rows(columns), memory)


def _symmetric_product(upper: Block, X: Matrix) -> Matrix:
    """Return A X in float64 for A given by its rows from their diagonal squares on."""
    product = np.zeros_like(X)
    for start in range(0, len(X), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(X))
        block = upper[start:stop, start:].astype(np.float64)
        product[start:stop] += block @ X[start:]
        product[stop:] += block[:, stop - start :].T @ X[start:stop]
    return product


def _embed(ridge: Ridge, inputs: Inputs, center: Center) -> Embedding:
    return ridge.kernel.embed(_centered(inputs, center))


def _centered(inputs: Inputs, center: Center) -> Inputs:
    return Inputs(inputs.t, inputs.x - center.x, inputs.layout)


def _no_factor(ridge: Ridge, time: float) -> NotPositiveDefiniteError:
    system = "K + regularization * I"
    if ridge.dtype == np.float32:
        system += " in float32"
    return NotPositiveDefiniteError(
        system, time, "regularization", ridge.regularization, ridge.lower_bound
    )
