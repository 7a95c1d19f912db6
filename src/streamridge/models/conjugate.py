"""Conjugate gradients: A X = B for a symmetric positive definite A given by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamridge.arrays import Block, Mask, Matrix, Vector

Operator = Callable[[Matrix], Block]


def conjugate_gradients(
    product: Operator,
    B: Matrix,
    start: Matrix | None,
    tolerance: float,
    precondition: Operator | None = None,
    limit: int | None = None,
) -> Matrix:
    """Return X with |A x - b| <= tolerance |b| in every column, found by iteration.

    All columns are iterated side by side, each for itself; one that is solved rests.

    Parameters
    ----------
    product
        Returns A X.
    B
        The right-hand sides, (N, k) or (N,).
    start
        A first guess of X; None is a guess of zero.
    tolerance
        The relative residual to reach.
    precondition
        Returns P^-1 R for a P that is near A; the nearer, the fewer iterations.
    limit
        Iterations after which a column that has not reached the tolerance is given up: X is then
        NaN. None stops after as many iterations as there are unknowns, with the X that was reached;
        in exact arithmetic it would be exact by then.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradients(lambda x: A @ x, A @ [1.0, 2.0], np.zeros(2), 1e-12).round(9)
    array([1., 2.])
    """
    X = np.zeros(B.shape)
    if not B.any():
        return X
    residual = B.copy()
    if start is not None:
        X += np.where(B.any(axis=0), start, 0.0)
        residual -= product(X)
    enough = tolerance**2 * _dots(B, B)
    direction: Block = np.zeros(B.shape)
    size: Vector = np.ones(B.shape[1:])
    for _ in range(len(B) if limit is None else limit):
        unsolved = ~(_dots(residual, residual) <= enough)  # so that NaN is never solved
        if not unsolved.any():
            return X
        ahead: Block = residual if precondition is None else precondition(residual)
        size, before = _dots(residual, ahead), size
        direction = ahead + _ratio(size, before, unsolved) * direction
        A_direction = product(direction)
        step = _ratio(size, _dots(direction, A_direction), unsolved)
        X += step * direction
        residual -= step * A_direction
    solved = (_dots(residual, residual) <= enough).all()
    return X if solved or limit is None else np.full_like(X, np.nan)


def _dots(a: Block, b: Block) -> Vector:
    """Return the scalar product of each column of a with that of b."""
    return np.einsum("i...,i...->...", a, b)


def _ratio(over: Vector, under: Vector, wanted: Mask) -> Vector:
    """Return over / under where it is wanted, else zero."""
    with np.errstate(divide="ignore", invalid="ignore"):  # an A that is singular gives NaN
        return np.divide(over, under, out=np.zeros_like(over), where=wanted)
