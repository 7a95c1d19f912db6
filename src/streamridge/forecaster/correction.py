r"""An online correction of forecasts by the model's own last errors.

A fit is up to a window old, and days differ: when the last forecasts were too low, the next ones
tend to be too low as well. So a share of the mean of the last errors is added to a forecast. How
fast errors should fade from that mean, and how far back its share should be learned from, depends
on the stream. So candidates of several half-lives and memories run side by side. Each one learns
its own share by discounted least squares, from how much of its mean came true in later errors. The
correction is their weighted mean: a candidate whose recent squared errors sum up to $L$ in $n$
errors weighs $L^{-n/2}$, the likelihood of Gaussian errors of unknown variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape

# The candidates: errors count half after one of these numbers of steps, (L,), ...
HALF_LIVES = np.array([0.75, 1.5, 3.0, 6.0])
# ... and a share is learned from about so many of the last errors, (M,).
MEMORIES = np.array([32.0, 96.0, 288.0])
# What a step leaves of a mean, and an error of the sums that a share is learned from.
KEEPS = 0.5 ** (1 / HALF_LIVES)
NEWS = 1 - KEEPS
# Arrays of a candidate each, (M, L), are as large as what they multiply: NumPy takes three times as
# long to stretch an array.
FADES = np.repeat((1 - 1 / MEMORIES)[:, None], len(HALF_LIVES), axis=1)
CANDIDATES = np.tile(np.arange(len(HALF_LIVES)), (len(MEMORIES), 1))
# A product with these is a sum over all candidates, or over the memories, in a third of the time.
ONES, SUMMED = np.ones(FADES.size), np.tile(np.eye(len(HALF_LIVES)), (len(MEMORIES), 1))
# Discount, per error, of the squared errors that candidates are weighed by.
WEIGHING = 1 - 1 / 96
# Discount, per error, of the variance of errors.
VARIANCE_MEMORY = 0.995
# Weight of the prior that a share is zero, in errors.
PRIOR = 10.0
# Squared errors that count as none.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class ErrorCorrection:
    """The means of the model's last errors, and how much of each to add per horizon.

    Parameters
    ----------
    means
        (L,), means of the last errors one step ahead, one for each half-life.
    products, squares
        (H, M, L), discounted sums of error times mean, and of the mean squared, one for each
        memory; the mean is the one when the forecast was made.
    losses
        (H, M, L), discounted sums of the squared errors that each candidate has left.
    seen
        (H,), the discounted number of these errors.
    variance
        (H,), variance of recent errors; zero before any error is known.

    Examples
    --------
    >>> correction = ErrorCorrection.start(horizon=1)
    >>> for _ in range(40):  # forecasts that are always 2 too low
    ...     correction = correction.learn(0, 2.0, correction.means).observe(2.0)
    >>> correction.offsets().round(1)
    array([1.6])
    """

    means: Vector
    products: NDArray[np.float64]
    squares: NDArray[np.float64]
    losses: NDArray[np.float64]
    seen: Vector
    variance: Vector

    @classmethod
    def start(cls, horizon: int) -> ErrorCorrection:
        """Return the state before any error is known: no correction."""
        none = np.zeros((horizon, len(MEMORIES), len(HALF_LIVES)))
        return cls(
            np.zeros(len(HALF_LIVES)), none, none, none, np.zeros(horizon), np.zeros(horizon)
        )

    @property
    def half_life(self) -> float:
        """Return after how many steps an error counts half, a mean over the candidates."""
        return float(np.exp(np.sum(self.weights()[0] * np.log(HALF_LIVES))))

    @property
    def share(self) -> float:
        """Return the share of the mean of the last errors that is added one step ahead."""
        return float(np.sum(self.pulls()[0]))

    def offsets(self) -> Vector:
        """Return what to add to the next forecasts, shape (H,)."""
        return self.pulls().dot(self.means)

    def pulls(self) -> Matrix:
        """Return the share of each mean that is added to the next forecasts, shape (H, L)."""
        return self._pulls

    def shares(self) -> NDArray[np.float64]:
        """Return the share of its mean that each candidate would add, shape (H, M, L)."""
        return self._shares

    def weights(self) -> NDArray[np.float64]:
        """Return how much each candidate counts, shape (H, M, L); they sum to one."""
        losses = np.log(_flat(self.losses) + TINY)
        losses -= _column(np.minimum.reduce(losses, axis=1))
        losses *= _column(-0.5 * self.seen)
        weights = np.exp(losses, out=losses)
        weights /= _column(weights.dot(ONES))
        return weights.reshape(self.losses.shape)

    # A step asks for shares twice, and for pulls three times.
    @cached_property
    def _pulls(self) -> Matrix:
        return _flat(self.weights() * self._shares).dot(SUMMED)

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        evidence = _flat(self.squares) + _column(PRIOR * self.variance)
        shares = _flat(self.products) / np.maximum(evidence, TINY, out=evidence)
        np.minimum(np.maximum(shares, 0.0, out=shares), 1.0, out=shares)
        return shares.reshape(self.products.shape)

    def learn(self, horizon: int, error: float, means: Vector) -> ErrorCorrection:
        """Return the state after a forecast's error is known; `means` are from when it was made."""
        each = means[CANDIDATES]
        left = error - self._shares[horizon] * each
        before = float(self.variance[horizon])
        weight = 1 - VARIANCE_MEMORY if before > 0 else 1.0
        return ErrorCorrection(
            self.means,
            _faded(self.products, horizon, FADES, error * each),
            _faded(self.squares, horizon, FADES, each * each),
            _faded(self.losses, horizon, WEIGHING, left * left),
            _faded(self.seen, horizon, WEIGHING, 1.0),
            _faded(self.variance, horizon, 1.0, weight * (error * error - before)),
        )

    def observe(self, error: float) -> ErrorCorrection:
        """Return the state after the error of a forecast one step ahead."""
        return self._with(KEEPS * self.means + NEWS * error)

    def forget(self, steps: int = 1) -> ErrorCorrection:
        """Return the state after steps without a usable error, as if they had come one by one."""
        means = self.means
        for _ in range(steps):
            faded = KEEPS * means
            if (faded == means).all():  # zero, or the smallest of all numbers
                break
            means = faded
        return self._with(means)

    def _with(self, means: Vector) -> ErrorCorrection:
        """Return the state with other means; what was found out of its sums stays known."""
        changed = object.__new__(ErrorCorrection)
        changed.__dict__.update(self.__dict__, means=means)
        return changed

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return everything that changes, for `restore`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> ErrorCorrection:
        """Return the correction with a saved state of the same horizon."""
        arrays = {name: require_finite(name, state[name]) for name in self.state()}
        for name, array in arrays.items():
            require_shape("correction", array, getattr(self, name).shape)
        return ErrorCorrection(**arrays)


def _flat(sums: NDArray[np.float64]) -> Matrix:
    """Return what is known of the candidates, shape (H, M L)."""
    return sums.reshape(len(sums), -1)


def _column(numbers: Vector) -> float | Matrix:
    """Return a number per horizon, for a product with (H, n); of one horizon, the number itself.

    NumPy multiplies by a number in half the time that it takes to stretch a column.
    """
    return numbers.item() if len(numbers) == 1 else numbers[:, None]


def _faded(
    sums: NDArray[np.float64],
    horizon: int,
    keep: float | NDArray[np.float64],
    new: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return discounted sums after something new at a horizon."""
    after = sums.copy()
    after[horizon] = keep * sums[horizon] + new
    return after
