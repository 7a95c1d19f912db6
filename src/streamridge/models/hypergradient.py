r"""Hyper-gradients: how the losses of a window move with the hyperparameters, eqs (14)-(17).

There are two ways to the same sum. The forward way is the paper's: compute the Jacobian
$J = \partial\theta/\partial\lambda$ once per refit, then one gradient per step. The adjoint way
needs one solve per window for any number of hyperparameters: with $u = \sum_t e_t k_t$ and
$v = A^{-1} u$,

$$\sum_t \nabla f_t = -2 \Big( \sum_t e_t\, \partial k_t^T\, \theta
    - v^T\, \partial A\, \theta \Big).$$

The loss of a step is the sum of its squared errors over the horizons. Of any other loss of the
errors, its residuals stand in for the errors $e_t$.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Weights
from streamridge.models.base import WindowLoss
from streamridge.models.ridge import Fit
from streamridge.samples import Samples

# Rows of a window taken at a time: 32 rows of 2880 float64 stay within one core's cache.
WINDOW_ROWS = 32
# Rows of the Jacobian taken at a time: fewer would prepare its right-hand sides too often.
JACOBIAN_ROWS = 384


def dual_jacobian(fit: Fit) -> Matrix:
    r"""Return how the dual weights move with each hyperparameter.

    Differentiating $A\theta = y$ with $y$ held fixed gives, for coordinate $i$,

    $$\frac{\partial\theta}{\partial\lambda_i}
        = -A^{-1}\frac{\partial A}{\partial\lambda_i}\theta .$$

    Parameters
    ----------
    fit
        A solved ridge system on $N$ samples; its factor of $A$ is reused.

    Returns
    -------
    (H, N, d)
        Column $i$ is $\partial\theta/\partial\lambda_i$; $\lambda_R$ comes last.

    Notes
    -----
    Paper: eq. (17), the matrix $J$ of Algorithm 2. Cost: $O(N^2 d)$, no new factorization.
    """
    N, H = fit.theta.shape
    dA_theta = np.empty((H, N, len(fit.ridge.kernel.values) + 1))
    dA_theta[:, :, -1] = fit.theta.T  # dA/d(lambda_R) is the identity
    for start in range(0, N, JACOBIAN_ROWS):
        part = slice(start, start + JACOBIAN_ROWS)
        rows = fit.rows(fit.samples.inputs[part])
        for h, theta in enumerate(fit.theta.T):
            dA_theta[h, part, :-1] = rows.gradient_dot(theta)
    return -np.stack([fit.system.solve(columns) for columns in dA_theta])


def step_gradients(fit: Fit, J: Matrix, window: Samples) -> Matrix:
    r"""Return the gradient of every step's loss, shape (m, d), by eqs (14) and (15).

    $$\nabla f_t = -2 e_t (\partial k_t^T\, \theta + k_t^T J)$$

    Parameters
    ----------
    fit
        The model that made the predictions.
    J
        (H, N, d), its dual Jacobian.
    window
        The m inputs that were predicted, with their labels.

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
        direct = np.column_stack([in_kernel, np.zeros(len(window))])
        total -= 2 * e[:, None] * (direct + k @ J_h)
    return total


def loss_and_gradient(
    fit: Fit, window: Samples, loss: WindowLoss | None = None
) -> tuple[float, Vector]:
    """Return the summed losses of a window, and their gradient by one adjoint solve, shape (d,).

    Parameters
    ----------
    fit
        The model that made the predictions.
    window
        The m inputs that were predicted, with their labels.
    loss
        A loss of the errors; None is the sum of their squares.

    Notes
    -----
    The gradient of squared errors equals
    `step_gradients(fit, dual_jacobian(fit), window).sum(axis=0)`. Cost: one solve and one pass over
    the kernel's blocks, whatever d is.
    """
    total, residuals = (0.0, None) if loss is None else loss.of(_errors(fit, window))
    direct = []
    u = np.zeros_like(fit.theta)
    for start in range(0, len(window), WINDOW_ROWS):
        part = slice(start, start + WINDOW_ROWS)
        rows = fit.rows(window.inputs[part])
        k = rows.value
        if residuals is None:
            e = window.y[part] - fit.center.y - k @ fit.theta
            total += float(np.sum(e * e))
        else:
            e = residuals[part]
        u += k.T @ e
        direct.append(rows.inner(Weights(e, fit.theta))[1])
    # Refining v would not help: the products below are no more precise than the factor.
    v = fit.system.solve_once(u)
    indirect = _symmetric_inner(fit, v)
    in_kernel = reduce(np.add, direct) - indirect
    return total, np.append(-2 * in_kernel, 2 * np.sum(v * fit.theta))


def _errors(fit: Fit, window: Samples) -> Matrix:
    """Return the errors of a window, shape (m, H)."""
    starts = range(0, len(window), WINDOW_ROWS)
    parts = [fit.predict(window.inputs[start : start + WINDOW_ROWS]) for start in starts]
    return window.y - np.concatenate(parts)


def _symmetric_inner(fit: Fit, v: Matrix) -> Vector:
    """Return v^T (dK/dlam_i) theta, summed over the horizons, from half of K; shape (d - 1,)."""
    left = np.hstack([v, fit.theta]).astype(fit.ridge.dtype, copy=False)
    right = np.hstack([fit.theta, v]).astype(fit.ridge.dtype, copy=False)
    parts = []
    memory = fit.system.memory
    end = memory.mark()
    for rows, evaluation in fit.system.blocks:
        # An entry right of the diagonal square also stands for its mirror image below it.
        mirrored = right[rows.start :].copy()
        mirrored[: rows.stop - rows.start, v.shape[1] :] = 0.0
        parts.append(evaluation.inner(Weights(left[rows], mirrored, memory=memory))[1])
        memory.rewind(end)
    return reduce(np.add, parts)
