"""Local regret: how far from stationary the iterates were, eqs (20) and (22), and assumption A4."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Vector,
    require_count,
    require_finite,
    require_positive,
    require_shape,
)
from streamridge.hyperparameters.feasible import Feasible


def projected_gradient(z: Vector, g: Vector, learning_rate: float, feasible: Feasible) -> Vector:
    r"""Return the part of a gradient that a projected step can follow.

    $$P(z, g, \eta) = \frac{1}{\eta} \big(z - \Pi_C(z - \eta g)\big)$$

    Notes
    -----
    Paper: eq. (20). It is zero exactly at the stationary points of C.
    """
    eta = learning_rate
    return (z - feasible.project(z - eta * g)) / eta


def local_regret(
    iterates: ArrayLike, gradients: ArrayLike, learning_rate: float, feasible: Feasible
) -> Vector:
    r"""Return the local regret $R_1, \dots, R_T$ of a sequence of iterates.

    $$R_T = \sum_{t<T} \|P(z_t, \nabla f_t(z_t), \eta)\|^2$$

    Parameters
    ----------
    iterates
        (T, d), the points z_t that were played.
    gradients
        (T, d), the gradient of each step's own cost at its own point.
    learning_rate
        $\eta$.
    feasible
        The convex set C.

    Returns
    -------
    (T,)
        The regret up to and including each step; it never falls.

    Notes
    -----
    Paper: eq. (22), Definition 1.

    Examples
    --------
    >>> from streamridge.hyperparameters.box import Box
    >>> local_regret([[0.0], [1.0]], [[2.0], [-2.0]], 0.5, Box([0.0], [1.0]))
    array([0., 0.])
    >>> local_regret([[0.5], [0.5]], [[1.0], [0.0]], 0.5, Box([0.0], [1.0]))
    array([1., 1.])
    """
    z = require_finite("iterates", iterates)
    g = require_finite("gradients", gradients)
    require_shape("iterates", z, (None, feasible.size))
    require_shape("gradients", g, z.shape)
    require_positive("learning_rate", learning_rate)
    P = [projected_gradient(*pair, learning_rate, feasible) for pair in zip(z, g, strict=True)]
    return np.cumsum(np.square(P).sum(axis=1)) if len(P) else np.empty(0)


def gradient_variation(gradients: ArrayLike, update_every: int) -> Vector:
    r"""Return the observed variation of the gradients within each window of m steps.

    $$\sum_{i<m} \|\nabla f_{t+i}(z) - \nabla F_{t,m}(z)\|^2$$

    Its largest entry is the smallest constant $V_m$ for which assumption A4 holds in the run.

    Parameters
    ----------
    gradients
        (T, d), the gradients of each step at the point of its window.
    update_every
        m; an incomplete last window is left out.

    Returns
    -------
    (T // m,)
        The variation of each window.

    Examples
    --------
    >>> gradient_variation([[1.0], [3.0], [5.0], [5.0]], update_every=2)
    array([2., 0.])
    """
    g = require_finite("gradients", gradients)
    require_shape("gradients", g, (None, None))
    m = require_count("update_every", update_every)
    windows = g[: len(g) // m * m].reshape(-1, m, g.shape[1])
    return np.square(windows - windows.mean(axis=1, keepdims=True)).sum(axis=(1, 2))
