"""Conjugate gradients: A x = b for a symmetric positive definite A given by its products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamridge.arrays import Vector


def conjugate_gradients(
    product: Callable[[Vector], Vector], b: Vector, start: Vector, tolerance: float
) -> Vector:
    """Return x with |A x - b| <= tolerance |b|, found by iteration from a first guess.

    It stops after as many iterations as there are unknowns, even if the tolerance is not reached.
    In exact arithmetic x would be exact by then.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradients(lambda x: A @ x, A @ [1.0, 2.0], np.zeros(2), 1e-12).round(9)
    array([1., 2.])
    """
    if not b.any():
        return np.zeros_like(b)
    x = start.copy()
    residual = b - product(x)
    direction = residual.copy()
    size = residual @ residual
    enough = tolerance**2 * (b @ b)
    for _ in range(len(b)):
        if size <= enough:
            break
        A_direction = product(direction)
        step = size / (direction @ A_direction)
        x += step * direction
        residual -= step * A_direction
        size, before = residual @ residual, size
        direction = residual + (size / before) * direction
    return x
