r"""Hyper-gradients: how the losses of a window move with the hyperparameters, eqs (14)-(17).

There are two ways to the same sum. The forward way is the paper's: compute the Jacobian
$J = \partial\theta/\partial\lambda$ once per refit, then one gradient per step. The adjoint way
needs one solve per window for any number of hyperparameters: with $u = \sum_t e_t k_t$ and
$v = A^{-1} u$,

$$\sum_t \nabla f_t = -2 \Big( \sum_t e_t\, \partial k_t^T\, \theta
    - v^T\, \partial A\, \theta \Big).$$

The loss of a step is the sum of its squared errors over the horizons. Of any other loss of the
errors, its residuals stand in for the errors $e_t$.

Rows may depend on numbers themselves. Such a number has a derivative $\partial K$ as well: that of
the kernel as its rows move along their tangents. Forward it costs one more column of $J$. The
adjoint gathers what a move of every single row would change, and then follows any number of
tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Embedding, Evaluation, Kernel, Slopes, Weights
from streamridge.memory import Arena
from streamridge.models.base import Tangents, WindowLoss
from streamridge.models.ridge import Center, Fit
from streamridge.samples import Inputs, Samples

# Rows of a window taken at a time: 32 rows of 2880 float64 stay within one core's cache.
WINDOW_ROWS = 32
# The kernel of a window of so many rows is kept for its second use; a longer one is made again.
HELD_ROWS = 288
# Rows of the Jacobian taken at a time: fewer would prepare its right-hand sides too often.
JACOBIAN_ROWS = 384


class Predictor(Protocol):
    """A fit that predicts by k_t^T theta, whatever its rows k_t are taken against."""

    @property
    def center(self) -> Center:
        """Return what is subtracted from x and y before the fit."""

    @property
    def theta(self) -> Matrix:
        """Return the weights, one column per horizon."""

    def rows(self, inputs: Inputs) -> Evaluation:
        """Return the kernel between n inputs and what the weights belong to."""


@dataclass(frozen=True)
class MovingRows:
    """The tangents of a fit's rows as its kernel embeds them, one embedding per number.

    Parameters
    ----------
    training, window
        Those of the training set, and those of the rows that the fit has predicted.
    """

    training: tuple[Embedding, ...] = ()
    window: tuple[Embedding, ...] = ()

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        center: Center,
        training: Inputs,
        window: Inputs,
        tangents: Tangents | None,
    ) -> Self:
        """Return the tangents of a fit and of a window; where rows are centred, so are they."""
        if tangents is None:
            return cls()
        means = center.share * tangents.training.mean(axis=1, keepdims=True)

        def embedded(rows: Inputs, each: NDArray[np.float64]) -> tuple[Embedding, ...]:
            return tuple(kernel.embed_tangent(Inputs(rows.t, x, rows.layout)) for x in each)

        return cls(
            embedded(training, tangents.training - means), embedded(window, tangents.window - means)
        )


STILL = MovingRows()


@dataclass(frozen=True)
class RowGradients:
    """What a move of every single row would change; the adjoint adds to it, block by block.

    Parameters
    ----------
    moving
        The tangents along which rows move.
    training, window
        What moves of the training set and of the window change.
    """

    moving: MovingRows
    training: Embedding
    window: Embedding

    @classmethod
    def zero(cls, moving: MovingRows) -> RowGradients | None:
        """Return gradients to add to; None where no row moves."""
        if not moving.training:
            return None
        return cls(moving, moving.training[0].zeros(), moving.window[0].zeros())

    def direct(self, rows: slice) -> Slopes:
        """Return where some rows of the window against the whole training set add to."""
        return Slopes(self.window.rows(rows), self.training)

    def indirect(self, rows: slice) -> Slopes:
        """Return where a block of the training set's upper triangle subtracts from."""
        return Slopes(
            self.training.rows(rows), self.training.rows(slice(rows.start, None)), share=-1.0
        )

    @property
    def along(self) -> Vector:
        """Return what a move along each of the tangents changes, shape (q,)."""
        pairs = zip(self.moving.training, self.moving.window, strict=True)
        return np.array([self.training.dot(each) + self.window.dot(row) for each, row in pairs])


def dual_jacobian(fit: Fit, moving: MovingRows = STILL) -> Matrix:
    r"""Return how the dual weights move with each hyperparameter.

    Differentiating $A\theta = y$ with $y$ held fixed gives, for coordinate $i$,

    $$\frac{\partial\theta}{\partial\lambda_i}
        = -A^{-1}\frac{\partial A}{\partial\lambda_i}\theta .$$

    Parameters
    ----------
    fit
        A solved ridge system on $N$ samples; its factor of $A$ is reused.
    moving
        How its rows move, if they do.

    Returns
    -------
    (H, N, d)
        Column $i$ is $\partial\theta/\partial\lambda_i$; $\lambda_R$ comes last, and the numbers
        that rows move with come after it.

    Notes
    -----
    Paper: eq. (17), the matrix $J$ of Algorithm 2. Cost: $O(N^2 d)$, no new factorization.
    """
    N, H = fit.theta.shape
    d = len(fit.ridge.kernel.values) + 1
    dA_theta = np.empty((H, N, d + len(moving.training)))
    dA_theta[:, :, d - 1] = fit.theta.T  # dA/d(lambda_R) is the identity
    for start in range(0, N, JACOBIAN_ROWS):
        part = slice(start, start + JACOBIAN_ROWS)
        rows = fit.rows(fit.samples.inputs[part])
        for h, theta in enumerate(fit.theta.T):
            dA_theta[h, part, : d - 1] = rows.gradient_dot(theta)
            for i, each in enumerate(moving.training):
                dA_theta[h, part, d + i] = rows.tangent_dot(theta, each.rows(part), each)
    return -np.stack([fit.system.solve(columns) for columns in dA_theta])


def step_gradients(
    fit: Predictor, J: Matrix, window: Samples, moving: MovingRows = STILL
) -> Matrix:
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
    moving
        How rows move, as J was made with.

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
        pairs = zip(moving.window, moving.training, strict=True)
        in_rows = [rows.tangent_dot(theta, row, each) for row, each in pairs]
        direct = np.column_stack([in_kernel, np.zeros(len(window)), *in_rows])
        total -= 2 * e[:, None] * (direct + k @ J_h)
    return total


def loss_and_gradient(
    fit: Fit, window: Samples, moving: MovingRows = STILL, loss: WindowLoss | None = None
) -> tuple[float, Vector]:
    """Return the loss of a window, and its gradient by one adjoint solve, shape (d,).

    Parameters
    ----------
    fit
        The model that made the predictions.
    window
        The m inputs that were predicted, with their labels.
    moving
        How rows move, if they do: the gradient in their numbers comes last.
    loss
        A loss of the errors; None is the sum of their squares.

    Notes
    -----
    The gradient of squared errors equals
    `step_gradients(fit, dual_jacobian(fit), window).sum(axis=0)`. Cost: one solve and one pass over
    the kernel's blocks, whatever d is; one more product per block if rows move, with however many
    numbers.
    """
    in_rows = RowGradients.zero(moving)
    direct = direct_part(fit, window, loss, None if in_rows is None else in_rows.direct)
    v = fit.system.solve_adjoint(direct.u)
    in_kernel = direct.in_kernel - _symmetric_inner(fit, v, in_rows)
    in_lam = np.append(-2 * in_kernel, 2 * np.sum(v * fit.theta))
    gradient = in_lam if in_rows is None else np.append(in_lam, -2 * in_rows.along)
    return direct.loss, gradient


@dataclass(frozen=True)
class Direct:
    r"""What a window gives before any system is solved.

    Parameters
    ----------
    loss
        The loss of the window.
    u
        $\sum_t e_t k_t$, of the shape of the weights: what the adjoint is solved for.
    in_kernel
        $\sum_t e_t\, \partial k_t^T\, \theta$, shape (d - 1,).
    """

    loss: float
    u: Matrix
    in_kernel: Vector


def direct_part(
    fit: Predictor,
    window: Samples,
    loss: WindowLoss | None = None,
    slopes_of: Callable[[slice], Slopes] | None = None,
) -> Direct:
    """Return what a window gives before any system is solved.

    Parameters
    ----------
    fit, window, loss
        As in `loss_and_gradient`.
    slopes_of
        Returns where some rows of the window add what their moves change, if rows move.
    """
    rows_from = _rows_of(fit, window, twice=loss is not None)
    total, residuals = (0.0, None) if loss is None else loss.of(_errors(fit, window, rows_from))
    in_kernel = []
    u = np.zeros_like(fit.theta)
    memory = Arena()  # arrays of its own would take new pages in each round: 8 ms instead of 4
    for start in range(0, len(window), WINDOW_ROWS):
        part = slice(start, start + WINDOW_ROWS)
        rows = rows_from(start)
        k = rows.value
        if residuals is None:
            e = window.y[part] - fit.center.y - k @ fit.theta
            total += float(np.sum(e * e))
        else:
            e = residuals[part]
        u += k.T @ e
        slopes = None if slopes_of is None else slopes_of(part)
        in_kernel.append(rows.inner(Weights(e, fit.theta, memory=memory), slopes)[1])
        memory.clear()
    return Direct(total, u, reduce(np.add, in_kernel))


def _rows_of(fit: Predictor, window: Samples, *, twice: bool) -> Callable[[int], Evaluation]:
    """Return what gives the kernel between some rows of a window, from one on, and the history."""

    def rows_from(start: int) -> Evaluation:
        return fit.rows(window.inputs[start : start + WINDOW_ROWS])

    return cache(rows_from) if twice and len(window) <= HELD_ROWS else rows_from


def _errors(fit: Predictor, window: Samples, rows_from: Callable[[int], Evaluation]) -> Matrix:
    """Return the errors of a window, shape (m, H)."""
    starts = range(0, len(window), WINDOW_ROWS)
    predicted = [rows_from(start).value @ fit.theta for start in starts]
    return window.y - fit.center.y - np.concatenate(predicted)


def _symmetric_inner(fit: Fit, v: Matrix, in_rows: RowGradients | None) -> Vector:
    """Return v^T (dK/dlam_i) theta, summed over the horizons, from half of K; shape (d - 1,).

    What moves of the rows change is subtracted from `in_rows`, if rows move.
    """
    left = np.hstack([v, fit.theta]).astype(fit.ridge.dtype, copy=False)
    right = np.hstack([fit.theta, v]).astype(fit.ridge.dtype, copy=False)
    parts = []
    memory = fit.system.memory
    end = memory.mark()
    for rows, evaluation in fit.system.blocks:
        # An entry right of the diagonal square also stands for its mirror image below it.
        mirrored = right[rows.start :].copy()
        mirrored[: rows.stop - rows.start, v.shape[1] :] = 0.0
        slopes = None if in_rows is None else in_rows.indirect(rows)
        parts.append(evaluation.inner(Weights(left[rows], mirrored, memory=memory), slopes)[1])
        memory.rewind(end)
    return reduce(np.add, parts)
