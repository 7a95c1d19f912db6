r"""Ridge regression on landmarks: a low-rank approximation of kernel ridge regression.

A training set of N rows has m landmarks Z. The prediction is a sum over the landmarks only,
$k_Z(x)^T \theta$, fitted to all N rows:

$$\min_\theta\ \lvert y - K_{NZ}\,\theta\rvert^2 + \lambda_R\, \theta^T K_{ZZ}\, \theta
    \quad\Longrightarrow\quad B\,\theta = K_{ZN}\, y, \qquad
    B = K_{ZN} K_{NZ} + \lambda_R K_{ZZ} .$$

If every row is a landmark, this is kernel ridge regression. A fit costs $O(N m^2)$; a forecast and
the stored state cost $O(m)$.

The squared kernel in B would lose half of all digits. B is therefore solved in coordinates in which
$K_{ZZ} = L L^T$ is the identity: $L^{-1} B L^{-T}$ has no eigenvalue below $\lambda_R$.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs, solve_triangular

from streamridge.arrays import Block, Matrix, Vector, require_count
from streamridge.errors import InvalidInputError
from streamridge.kernels.base import Arena, Embedding, Evaluation, Slopes, Weights
from streamridge.models.base import Arrays, Tangents, WindowLoss, require_samples
from streamridge.models.hypergradient import (
    EmbeddedTangents,
    embedded_tangents,
    step_gradients,
    window_terms,
)
from streamridge.models.landmarks import (
    CANDIDATES,
    HALF_LIFE,
    Indices,
    chosen,
    drawn,
    independent,
)
from streamridge.models.ridge import (
    Center,
    KernelFit,
    RidgeModel,
    Spread,
    log_sizes,
    require_weights,
)
from streamridge.models.systems import Blocks, Ridge, no_factor
from streamridge.samples import Samples

# Rows of K_NZ computed at a time: with 250 landmarks a block takes 0.4 MB, which a cache holds.
BLOCK_ROWS = 192
# The evaluations of a kernel with at most this many entries are kept for its gradient: at 2880 rows
# and 250 landmarks they take 30 MB, and save a third of the gradient's time. Larger ones are
# recomputed.
HELD = 1_000_000


@dataclass(frozen=True)
class NystromRidge(RidgeModel["NystromRidgeFit"]):
    """Kernel ridge regression on a few landmarks, fitted to all rows.

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
    landmarks
        Largest number of landmarks.
    known
        Times of samples. Those that a fit is made to are its landmarks; if there are none, it
        chooses them.

    Examples
    --------
    >>> from streamridge.kernels.radial import SquaredExponential
    >>> from streamridge.samples import Inputs
    >>> t = np.arange(400.0)
    >>> samples = Samples.of(t, np.sin(t)[:, None], np.cos(t) ** 2)
    >>> fit = NystromRidge(SquaredExponential(), regularization=1e-3, landmarks=20).fit(samples)
    >>> fit.predict(Inputs.of([0.0], [[0.6]])).round(2)
    array([[0.64]])
    """

    landmarks: int = 500
    known: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "landmarks", require_count("landmarks", self.landmarks))
        super().__post_init__()

    def fit(
        self, samples: Samples, lam: Vector | None = None, before: NystromRidgeFit | None = None
    ) -> NystromRidgeFit:
        """Return the model fitted to N samples, at its initial hyperparameters by default."""
        require_samples(samples)
        memory = before.release() if before else Arena()
        ridge, center = self._ridge(lam), Center.of(samples, self.centered)
        try:
            places = self._chosen(samples, center)
            return NystromRidgeFit.to_landmarks(ridge, samples, center, places, memory)
        except (np.linalg.LinAlgError, ValueError):  # entries that overflowed
            raise no_factor(ridge, float(samples.t[-1])) from None

    def thinned(self, share: int, landmarks: Vector) -> NystromRidge:
        few, known = -(-self.landmarks // share), tuple(landmarks.tolist())
        return replace(self, landmarks=few, known=known)

    def _chosen(self, samples: Samples, center: Center) -> Indices:
        """Return the rows of the samples that are landmarks.

        They are chosen by the kernel at its initial hyperparameters. If the choice depended on the
        current ones, the loss would jump, and a gradient does not see jumps.
        """
        places = np.flatnonzero(np.isin(samples.t, self.known))
        if len(places):
            return np.sort(places[drawn(samples.t[places], self.landmarks)])
        candidates = drawn(samples.t, CANDIDATES * self.landmarks, HALF_LIFE)
        rows = self.kernel.embed(center.inputs(samples.inputs[candidates]))
        return np.sort(candidates[chosen(self.kernel, rows, self.landmarks)])

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> NystromRidgeFit:
        places = np.asarray(state["landmarks"], dtype=np.intp)
        within = places.ndim == 1 and ((places >= 0) & (places < len(samples))).all()
        if not within or (np.diff(places) < 1).any():
            raise InvalidInputError(f"landmarks must be rows of the samples, got {places}.")
        theta = require_weights("weights", state, (len(places), samples.y.shape[1]))
        ridge, center = self._ridge(lam), Center.of(samples, self.centered)
        fit = NystromRidgeFit(ridge, samples, center, theta, places=places)
        if "spread_weights" in state:
            phi = require_weights("spread_weights", state, theta.shape)
            mean, least, most = require_weights("spread_range", state, (3, samples.y.shape[1]))
            fit.spread = Spread(phi.astype(np.float32), mean, least, most)
        return fit


@dataclass(frozen=True)
class LandmarkSystem:
    """The matrix B of a fit, solved in the coordinates of its landmarks."""

    whitening: Block  # (m, m), lower: L with K_ZZ = L L^T
    factor: Block  # (m, m), lower: the factor of L^-1 B L^-T
    rows: Block  # (N, m), the kernel K_NZ between the training set and the landmarks
    among: Evaluation  # between landmarks
    blocks: Blocks  # evaluations of K_NZ by rows for its gradients; empty if too large to keep
    memory: Arena

    def solve(self, b: Matrix) -> Matrix:
        """Return B^-1 b for right-hand sides b of shape (m, k)."""
        if not len(b):  # the kernel of all rows is zero
            return b
        x = solve_triangular(self.whitening, b, lower=True)
        x = solve_triangular(self.factor, x, lower=True)
        x = solve_triangular(self.factor, x, lower=True, trans=1)
        return np.ascontiguousarray(solve_triangular(self.whitening, x, lower=True, trans=1))


@dataclass
class NystromRidgeFit(KernelFit):
    """Ridge regression on landmarks fitted to one training set, with its hyper-gradients.

    The weights theta, (m, H), are the weights of the landmarks.
    """

    places: Indices = field(kw_only=True)  # (m,), the rows of the samples that are landmarks

    @classmethod
    def to_landmarks(
        cls, ridge: Ridge, samples: Samples, center: Center, places: Indices, memory: Arena
    ) -> NystromRidgeFit:
        """Return the fit to N samples; redundant landmarks are left out."""
        rows = ridge.kernel.embed(center.inputs(samples.inputs[places]))
        kept = independent(ridge.kernel.evaluate(rows, rows).value)
        fit = cls(ridge, samples, center, np.empty((0, 0)), places=np.sort(places[kept]))
        fit.system = fit._factored(memory)
        return fit.weighted(fit.system.solve(fit.system.rows.T @ (samples.y - center.y)))

    @cached_property
    def embedding(self) -> Embedding:
        landmarks = self.samples.inputs[self.places]
        return self.ridge.kernel.embed(self.center.inputs(landmarks))

    @cached_property
    def system(self) -> LandmarkSystem:
        return self._factored(self.take_memory())

    def _learned_spread(self) -> Spread:
        # Logarithms of the sizes are regressed on the same landmarks, by the same system.
        sizes = log_sizes(self._residuals())
        phi = self.system.solve(self.system.rows.T @ (sizes - sizes.mean(axis=0)))
        return Spread.over(sizes, phi)

    def loss_and_gradient(
        self, window: Samples, tangents: Tangents | None = None, loss: WindowLoss | None = None
    ) -> tuple[float, Vector]:
        r"""Return the loss of a window, and its gradient by one adjoint solve in m dimensions.

        With $v = B^{-1} u$, training residuals $r$ and $g = K_{NZ} v$, differentiating
        $B\theta = K_{ZN} y$ gives $v^T B\, \partial\theta = v^T \partial K_{ZN}\, r
        - g^T \partial K_{NZ}\, \theta - \lambda_R v^T \partial K_{ZZ}\, \theta
        - \partial\lambda_R\, v^T K_{ZZ}\, \theta$.
        """
        in_rows = _RowGradients.zero(embedded_tangents(self, window, tangents), self.places)
        terms = window_terms(self, window, loss, None if in_rows is None else in_rows.of_window)
        v, system = self.system.solve(terms.u), self.system
        left = np.hstack([self._residuals(), -(system.rows @ v)])
        right = np.hstack([v, self.theta])
        in_kernel = terms.in_kernel
        for rows, evaluation in self._blocks:
            end = system.memory.mark()
            slopes = None if in_rows is None else in_rows.of_training(rows)
            weights = Weights(left[rows], right, memory=system.memory)
            in_kernel = in_kernel + evaluation.inner(weights, slopes)[1]
            system.memory.rewind(end)
        slopes = None if in_rows is None else in_rows.among_landmarks()
        lam_R = self.ridge.regularization
        among, in_among = system.among.inner(Weights(-lam_R * v, self.theta), slopes)
        in_lam = np.append(-2 * (in_kernel + in_among), -2 * among / lam_R)
        gradient = in_lam if in_rows is None else np.append(in_lam, -2 * in_rows.along)
        return terms.loss, gradient

    def step_gradients(self, window: Samples, tangents: Tangents | None = None) -> Matrix:
        moving = embedded_tangents(self, window, tangents)
        at_landmarks = tuple(each.rows(self.places) for each in moving.training)
        J = self._jacobian(moving.training, at_landmarks)
        return step_gradients(self, J, window, EmbeddedTangents(at_landmarks, moving.window))

    def state(self) -> Arrays:
        state: dict[str, NDArray[Any]] = {"landmarks": self.places, "weights": self.theta}
        if self.spread is not None:
            spread = self.spread
            state["spread_weights"] = spread.phi
            state["spread_range"] = np.stack([spread.mean, spread.least, spread.most])
        return state

    def _factored(self, memory: Arena) -> LandmarkSystem:
        """Return the system B: K_NZ block by block, and two factors of m rows."""
        kernel, m = self.ridge.kernel, len(self.places)
        K, held = memory.empty((len(self.samples), m)), []
        for rows, evaluation in self._evaluated(memory):
            evaluation.write_to(K[rows])
            if self._is_held:
                held.append((rows, evaluation))
        among = kernel.evaluate(self.embedding, self.embedding)
        if not m:  # the kernel of all rows is zero: there is nothing to solve
            return LandmarkSystem(np.empty((0, 0)), np.empty((0, 0)), K, among, (), memory)
        L = self._cholesky(among.value)
        syrk, sygst = get_blas_funcs(("syrk",), (K,))[0], get_lapack_funcs(("sygst",), (K,))[0]
        # Row-major K is column-major K^T. Only lower triangles of symmetric matrices are used.
        whitened, _ = sygst(syrk(1.0, K.T, lower=1), L, lower=1)
        whitened[np.diag_indices(m)] += self.ridge.regularization
        return LandmarkSystem(L, self._cholesky(whitened), K, among, tuple(held), memory)

    @property
    def _blocks(self) -> Iterable[tuple[slice, Evaluation]]:
        """Return the kernel between rows of the training set and the landmarks, block by block."""
        return self.system.blocks or self._evaluated(self.system.memory)

    def _evaluated(self, memory: Arena) -> Iterator[tuple[slice, Evaluation]]:
        """Yield the kernel between blocks of the training set and the landmarks."""
        kernel, end = self.ridge.kernel, memory.mark()
        embedding = kernel.embed(self.center.inputs(self.samples.inputs))
        for start in range(0, len(embedding), BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, len(embedding)))
            yield rows, kernel.evaluate(embedding.rows(rows), self.embedding, memory)
            if not self._is_held:  # the next block reuses the memory
                memory.rewind(end)

    @property
    def _is_held(self) -> bool:
        """Return whether all blocks of the kernel are kept in memory."""
        return len(self.samples) * len(self.places) <= HELD

    def _cholesky(self, A: Matrix) -> Matrix:
        (potrf,) = get_lapack_funcs(("potrf",), (A,))
        L, failed = potrf(A, lower=1)
        if failed:
            raise no_factor(self.ridge, float(self.samples.t[-1]))
        return np.tril(L)

    def _residuals(self) -> Matrix:
        """Return the errors on the training set, shape (N, H)."""
        return self.samples.y - self.center.y - self.system.rows @ self.theta

    def _jacobian(
        self, training: tuple[Embedding, ...], at_landmarks: tuple[Embedding, ...]
    ) -> Matrix:
        """Return the derivatives of the weights, (H, m, d); feature parameters come last."""
        system, residuals = self.system, self._residuals()
        among, lam_R = system.among, self.ridge.regularization
        embedding = self.ridge.kernel.embed(self.center.inputs(self.samples.inputs))
        columns = []
        for theta, r in zip(self.theta.T, residuals.T, strict=True):
            total = -lam_R * self._moved(among, theta, at_landmarks, at_landmarks)
            for rows, evaluation in self._blocks:
                mirrored = self.ridge.kernel.evaluate(self.embedding, embedding.rows(rows))
                parts = tuple(each.rows(rows) for each in training)
                total += self._moved(mirrored, r[rows], at_landmarks, parts)
                moved = self._moved(evaluation, theta, parts, at_landmarks)
                total -= system.rows[rows].T @ moved
            in_lam_R = -(among.value @ theta)
            d = total.shape[1] - len(training)
            columns.append(np.column_stack([total[:, :d], in_lam_R, total[:, d:]]))
        return np.stack([system.solve(each) for each in columns])

    @staticmethod
    def _moved(
        rows: Evaluation, v: Vector, a: tuple[Embedding, ...], b: tuple[Embedding, ...]
    ) -> Matrix:
        """Return the derivatives of K v in the kernel's hyperparameters and along the tangents."""
        along = [rows.tangent_dot(v, *each) for each in zip(a, b, strict=True)]
        return np.column_stack([rows.gradient_dot(v), *along])


@dataclass(frozen=True)
class _RowGradients:
    """The derivatives of a loss in the entries of all rows; the adjoint adds to them by blocks."""

    tangents: EmbeddedTangents
    places: Indices
    training: Embedding
    landmarks: Embedding
    window: Embedding

    @classmethod
    def zero(cls, tangents: EmbeddedTangents, places: Indices) -> _RowGradients | None:
        """Return gradients of zero; None if no row moves."""
        if not tangents.training:
            return None
        training, window = tangents.training[0].zeros(), tangents.window[0].zeros()
        return cls(tangents, places, training, training.rows(places), window)

    def of_window(self, rows: slice) -> Slopes:
        return Slopes(self.window.rows(rows), self.landmarks)

    def of_training(self, rows: slice) -> Slopes:
        return Slopes(self.training.rows(rows), self.landmarks)

    def among_landmarks(self) -> Slopes:
        return Slopes(self.landmarks, self.landmarks)

    @property
    def along(self) -> Vector:
        """Return the derivative along each of the tangents, shape (q,)."""
        totals = []
        for each, row in zip(self.tangents.training, self.tangents.window, strict=True):
            at_landmarks = self.landmarks.dot(each.rows(self.places))
            totals.append(self.training.dot(each) + at_landmarks + self.window.dot(row))
        return np.array(totals)
