r"""Hyper-gradients: derivatives of window losses in the hyperparameters, eqs (14)-(17).

There are two ways to compute the same sum. The forward way is the paper's: compute the Jacobian
$J = \partial\theta/\partial\lambda$ once per refit, then one gradient per step. The adjoint way
needs one solve per window for any number of hyperparameters: with $u = \sum_t e_t k_t$ and
$v = A^{-1} u$,

$$\sum_t \nabla f_t = -2 \Big( \sum_t e_t\, \partial k_t^T\, \theta
    - v^T\, \partial A\, \theta \Big).$$

The loss of a step is the sum of its squared errors over the horizons. For any other loss, its
residuals replace the errors $e_t$.

Rows may depend on parameters of their features. Such a parameter has a derivative $\partial K$ too:
the derivative of the kernel as its rows move along their tangents. The forward way needs one more
column of $J$ for it. The adjoint way first sums up the derivatives with respect to the entries of
all rows, and then multiplies them with any number of tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Arena, Embedding, Slopes, Weights
from streamridge.models.base import Tangents, WindowLoss
from streamridge.models.ridge import KernelFit
from streamridge.samples import Inputs, Samples

# Rows of a window taken at a time: 32 rows of 2880 float64 stay within one core's cache.
WINDOW_ROWS = 32
# The kernel of a window with at most this many rows is kept for its second use.
HELD_ROWS = 288
# Rows of the Jacobian taken at a time: fewer would prepare its right-hand sides too often.
JACOBIAN_ROWS = 384


@dataclass(frozen=True)
class EmbeddedTangents:
    """The tangents of a fit's rows as its kernel embeds them, one embedding per parameter."""

    training: tuple[Embedding, ...] = ()
    window: tuple[Embedding, ...] = ()


NO_TANGENTS = EmbeddedTangents()


def embedded_tangents(
    fit: KernelFit, window: Samples, tangents: Tangents | None
) -> EmbeddedTangents:
    """Return the tangents of a fit and of a window, centred if the rows are centred."""
    if tangents is None:
        return NO_TANGENTS
    means = fit.center.share * tangents.training.mean(axis=1, keepdims=True)
    embedded = []
    pairs = ((fit.samples.inputs, tangents.training), (window.inputs, tangents.window))
    for rows, each in pairs:
        of_rows = []
        for x in each - means:
            of_rows.append(fit.ridge.kernel.embed_tangent(Inputs(rows.t, x, rows.layout)))
        embedded.append(tuple(of_rows))
    return EmbeddedTangents(*embedded)


@dataclass(frozen=True)
class RowGradients:
    """The derivatives of a loss in the entries of all rows; the adjoint adds to them by blocks."""

    tangents: EmbeddedTangents
    training: Embedding
    window: Embedding

    @classmethod
    def zero(cls, tangents: EmbeddedTangents) -> RowGradients | None:
        """Return gradients of zero; None if no row moves."""
        if not tangents.training:
            return None
        return cls(tangents, tangents.training[0].zeros(), tangents.window[0].zeros())

    def direct(self, rows: slice) -> Slopes:
        """Return the target of some rows of the window against the whole training set."""
        return Slopes(self.window.rows(rows), self.training)

    @property
    def along(self) -> Vector:
        """Return the derivative along each of the tangents, shape (q,)."""
        pairs = zip(self.tangents.training, self.tangents.window, strict=True)
        return np.array([self.training.dot(each) + self.window.dot(row) for each, row in pairs])


def dual_jacobian(fit: KernelFit, tangents: EmbeddedTangents = NO_TANGENTS) -> Matrix:
    r"""Return how the dual weights move with each hyperparameter.

    Differentiating $A\theta = y$ with $y$ held fixed gives, for coordinate $i$,

    $$\frac{\partial\theta}{\partial\lambda_i}
        = -A^{-1}\frac{\partial A}{\partial\lambda_i}\theta .$$

    The shape is (H, N, d): $\lambda_R$ comes last, and the parameters of the rows after it.

    Notes
    -----
    Paper: eq. (17), the matrix $J$ of Algorithm 2. Cost: $O(N^2 d)$, no new factorization.
    """
    N, H = fit.theta.shape
    d = len(fit.ridge.kernel.values) + 1
    dA_theta = np.empty((H, N, d + len(tangents.training)))
    dA_theta[:, :, d - 1] = fit.theta.T  # dA/d(lambda_R) is the identity
    for start in range(0, N, JACOBIAN_ROWS):
        part = slice(start, start + JACOBIAN_ROWS)
        rows = fit.rows(fit.samples.inputs[part])
        for h, theta in enumerate(fit.theta.T):
            dA_theta[h, part, : d - 1] = rows.gradient_dot(theta)
            for i, each in enumerate(tangents.training):
                dA_theta[h, part, d + i] = rows.tangent_dot(theta, each.rows(part), each)
    return -np.stack([fit.system.solve(columns) for columns in dA_theta])


def step_gradients(
    fit: KernelFit, J: Matrix, window: Samples, tangents: EmbeddedTangents = NO_TANGENTS
) -> Matrix:
    r"""Return the gradient of every step's loss, shape (m, d), by eqs (14) and (15).

    $$\nabla f_t = -2 e_t (\partial k_t^T\, \theta + k_t^T J)$$

    J is the dual Jacobian of the fit, (H, N, d), computed with the same tangents.

    Notes
    -----
    Paper: Algorithm 2, line 13. Cost: $O(N d)$ per step.
    """
    rows = fit.rows(window.inputs)
    k = rows.value
    errors = window.y - fit.center.y - k @ fit.theta
    total = np.zeros((len(window), J.shape[2]))
    for e, theta, J_h in zip(errors.T, fit.theta.T, J, strict=True):
        in_kernel = rows.gradient_dot(theta)
        pairs = zip(tangents.window, tangents.training, strict=True)
        in_rows = [rows.tangent_dot(theta, row, each) for row, each in pairs]
        direct = np.column_stack([in_kernel, np.zeros(len(window)), *in_rows])
        total -= 2 * e[:, None] * (direct + k @ J_h)
    return total


@dataclass(frozen=True)
class WindowTerms:
    """The terms of a window's gradient that need no solve."""

    loss: float
    u: Matrix  # sum_t e_t k_t, of the shape of the weights: the right-hand side of the adjoint
    in_kernel: Vector  # sum_t e_t dk_t^T theta, shape (d - 1,)


def window_terms(
    fit: KernelFit,
    window: Samples,
    loss: WindowLoss | None = None,
    slopes_of: Callable[[slice], Slopes] | None = None,
) -> WindowTerms:
    """Return the terms of a window's gradient that need no solve.

    `slopes_of` returns the target of the derivatives in the entries of some rows of the window.
    """
    parts = [slice(start, start + WINDOW_ROWS) for start in range(0, len(window), WINDOW_ROWS)]
    total, residuals, held = 0.0, None, []
    if loss is not None:
        predicted = []
        for part in parts:
            rows = fit.rows(window.inputs[part])
            predicted.append(rows.value @ fit.theta)
            held += [rows] if len(window) <= HELD_ROWS else []
        total, residuals = loss.of(window.y - fit.center.y - np.concatenate(predicted))
    in_kernel = []
    u = np.zeros_like(fit.theta)
    memory = Arena()  # without it, every block would take new pages: 8 ms instead of 4
    for i, part in enumerate(parts):
        rows = held[i] if held else fit.rows(window.inputs[part])
        k = rows.value
        if residuals is None:
            e = window.y[part] - fit.center.y - k @ fit.theta
            total += float(np.sum(e * e))
        else:
            e = residuals[part]
        u += k.T @ e
        slopes = None if slopes_of is None else slopes_of(part)
        in_kernel.append(rows.inner(Weights(e, fit.theta, memory=memory), slopes)[1])
        memory.rewind()
    return WindowTerms(total, u, reduce(np.add, in_kernel))


def symmetric_inner(fit: KernelFit, v: Matrix, in_rows: Embedding | None) -> Vector:
    """Return v^T (dK/dlam_i) theta, summed over the horizons, from half of K; shape (d - 1,).

    The derivatives in the entries of rows are subtracted from `in_rows`, unless it is None.
    """
    left = np.hstack([v, fit.theta]).astype(fit.ridge.dtype, copy=False)
    right = np.hstack([fit.theta, v]).astype(fit.ridge.dtype, copy=False)
    parts = []
    memory = fit.system.memory
    end = memory.mark()
    for rows, evaluation in fit.system.blocks:
        # An entry right of the diagonal square also counts for its mirror image below it.
        mirrored = right[rows.start :].copy()
        mirrored[: rows.stop - rows.start, v.shape[1] :] = 0.0
        slopes = None
        if in_rows is not None:
            own, later = in_rows.rows(rows), in_rows.rows(slice(rows.start, None))
            slopes = Slopes(own, later, share=-1.0)
        parts.append(evaluation.inner(Weights(left[rows], mirrored, memory=memory), slopes)[1])
        memory.rewind(end)
    return reduce(np.add, parts)
