r"""An online correction of forecasts by the model's own last errors, and the loss that includes it.

A fit is up to a window old, and days differ: when the last forecasts were too low, the next ones
tend to be too low as well. So a share of the mean of the last errors is added to a forecast. The
best half-life of this mean, and the best memory for learning the share, depend on the stream. So
several candidates run in parallel. Each learns its own share by discounted least squares, from its
mean and later errors. The correction is their weighted mean: a candidate whose recent squared
errors sum up to $L$ in $n$ errors has the weight $L^{-n/2}$, the likelihood of Gaussian errors of
unknown variance.

A forecast is issued as $f_t = \hat y_t + \sum_l p_{tl} m_{tl}$, with the means $m_{tl}$ of the
model's errors before step $t$. So a model's forecast affects its own loss, and the loss of later
forecasts, whose corrections depend on its error $e_s$ one step ahead:

$$\frac{\partial m_{tl}}{\partial e_s} = (1 - k_l)\, k_l^{t - s - 1}.$$

The pulls $p_{tl}$ of each step and the forecasts of earlier windows count as constants.

The loss is $2n$ times the root mean square of a window's $n$ errors. Its gradient is the gradient
of squared errors divided by their root mean square. When errors become ten times smaller, it
shrinks by ten and not by a hundred, so a step rule that remembers the size of gradients still
works. A gradient of the logarithm would not shrink at all, but it neglects windows with large
errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape

# The candidates: errors count half after one of these numbers of steps, (L,), ...
HALF_LIVES = np.array([0.75, 1.5, 3.0, 6.0])
# ... and a share is learned from about these numbers of the last errors, (M,).
MEMORIES = np.array([32.0, 96.0, 288.0])
# The factor by which a step reduces a mean, and the weight of the newest error in it.
KEEPS = 0.5 ** (1 / HALF_LIVES)
NEWS = 1 - KEEPS
# Arrays with one entry per candidate, (M, L): NumPy takes three times as long to broadcast.
FADES = np.repeat((1 - 1 / MEMORIES)[:, None], len(HALF_LIVES), axis=1)
CANDIDATES = np.tile(np.arange(len(HALF_LIVES)), (len(MEMORIES), 1))
# A product with these is a sum over all candidates, or over the memories, in a third of the time.
ONES, SUMMED = np.ones(FADES.size), np.tile(np.eye(len(HALF_LIVES)), (len(MEMORIES), 1))
# Discount, per error, of the squared errors that candidates are weighted by.
WEIGHING = 1 - 1 / 96
# Discount, per error, of the variance of errors.
VARIANCE_MEMORY = 0.995
# Weight of the prior that a share is zero, in errors.
PRIOR = 10.0
# Smaller squared errors count as zero.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class ErrorCorrection:
    """The means of the model's last errors, and how much of each to add per horizon.

    Examples
    --------
    >>> correction = ErrorCorrection.start(horizon=1)
    >>> for _ in range(40):  # forecasts that are always 2 too low
    ...     correction = correction.learn(0, 2.0, correction.means).observe(2.0)
    >>> correction.offsets().round(1)
    array([1.6])
    """

    means: Vector  # (L,), means of the last errors one step ahead, one for each half-life
    # (H, M, L), discounted sums of error times mean, and of the mean squared, one for each memory.
    # The mean is from the time of the forecast.
    products: NDArray[np.float64]
    squares: NDArray[np.float64]
    # (H, M, L), discounted sums of the squared errors that each candidate has left.
    losses: NDArray[np.float64]
    seen: Vector  # (H,), the discounted number of these errors
    variance: Vector  # (H,), variance of recent errors; zero before any error is known

    @classmethod
    def start(cls, horizon: int) -> ErrorCorrection:
        """Return the state before any error is known: no correction."""
        none = np.zeros((horizon, len(MEMORIES), len(HALF_LIVES)))
        return cls(
            np.zeros(len(HALF_LIVES)), none, none, none, np.zeros(horizon), np.zeros(horizon)
        )

    @property
    def half_life(self) -> float:
        """Return the half-life of errors in steps, a mean over the candidates."""
        return float(np.exp(np.sum(self.weights()[0] * np.log(HALF_LIVES))))

    @property
    def share(self) -> float:
        """Return the share of the mean of the last errors that is added one step ahead."""
        return float(np.sum(self.pulls[0]))

    def offsets(self) -> Vector:
        """Return the corrections of the next forecasts, shape (H,)."""
        return self.pulls.dot(self.means)

    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each candidate, shape (H, M, L); they sum to one."""
        losses = np.log(self.losses.reshape(len(self.seen), -1) + TINY)
        losses -= _column(np.minimum.reduce(losses, axis=1))
        losses *= _column(-0.5 * self.seen)
        weights = np.exp(losses, out=losses)
        weights /= _column(weights.dot(ONES))
        return weights.reshape(self.losses.shape)

    # A step needs the shares twice, and the pulls three times.
    @cached_property
    def pulls(self) -> Matrix:
        """Return the share of each mean that is added to the next forecasts, shape (H, L)."""
        return (self.weights() * self.shares).reshape(len(self.seen), -1).dot(SUMMED)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Return the share of its mean that each candidate would add, shape (H, M, L)."""
        count = len(self.seen)
        evidence = self.squares.reshape(count, -1) + _column(PRIOR * self.variance)
        products = self.products.reshape(count, -1)
        shares = products / np.maximum(evidence, TINY, out=evidence)
        np.minimum(np.maximum(shares, 0.0, out=shares), 1.0, out=shares)
        return shares.reshape(self.products.shape)

    def learn(self, horizon: int, error: float, means: Vector) -> ErrorCorrection:
        """Return the state after a forecast's error; `means` are from when it was made."""
        each = means[CANDIDATES]
        left = error - self.shares[horizon] * each
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

    def learn_all(self, errors: Sequence[tuple[int, float, Vector]]) -> ErrorCorrection:
        """Return the state after the errors of several forecasts, at different horizons.

        Each has its horizon, its error, and the means from when it was made.
        """
        if len(errors) < 2:
            return self.learn(*errors[0]) if errors else self
        horizons, values, means = zip(*errors, strict=True)
        # A slice of all horizons, the usual case, takes half the time of a list.
        is_all = horizons == tuple(range(len(self.seen)))
        at, error = slice(None) if is_all else list(horizons), np.array(values)
        each, column = np.array(means)[:, CANDIDATES], error[:, None, None]
        left, before = column - self.shares[at] * each, self.variance[at]
        weight = np.where(before > 0, 1 - VARIANCE_MEMORY, 1.0)
        return ErrorCorrection(
            self.means,
            _faded(self.products, at, FADES, column * each),
            _faded(self.squares, at, FADES, each * each),
            _faded(self.losses, at, WEIGHING, left * left),
            _faded(self.seen, at, WEIGHING, 1.0),
            _faded(self.variance, at, 1.0, weight * (error * error - before)),
        )

    def observe(self, error: float) -> ErrorCorrection:
        """Return the state after the error of a forecast one step ahead."""
        return self._with(KEEPS * self.means + NEWS * error)

    def forget(self, steps: int = 1) -> ErrorCorrection:
        """Return the state after a number of steps without a usable error."""
        means = self.means
        for _ in range(steps):
            faded = KEEPS * means
            if (faded == means).all():  # zero, or the smallest of all numbers
                break
            means = faded
        return self._with(means)

    def _with(self, means: Vector) -> ErrorCorrection:
        """Return the state with other means; cached shares and pulls stay valid."""
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


def _column(numbers: Vector) -> float | Matrix:
    """Return a number per horizon, for a product with (H, n); a plain number for one horizon.

    NumPy multiplies by a number in half the time it takes to broadcast a column.
    """
    return numbers.item() if len(numbers) == 1 else numbers[:, None]


def _faded(
    sums: NDArray[np.float64],
    horizon: int | list[int] | slice,
    keep: float | NDArray[np.float64],
    new: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return discounted sums after a new term at one horizon, or at each of several."""
    after = sums.copy()
    after[horizon] = keep * sums[horizon] + new
    return after


# At most this many forecasts are remembered while a refit is postponed.
MOST = 4096


@dataclass(frozen=True)
class IssuedLoss:
    """The root mean square error of m corrected forecasts, as a loss of the model's own errors."""

    steps: Vector  # (m,), the step that each forecast was made for, in ascending order
    # (m, H, L), the share of each mean of the last errors that was added.
    pulls: NDArray[np.float64]
    offsets: Matrix  # (m, H), the correction that was added
    counted: Vector  # (m,), one where the error one step ahead became part of the means, else zero

    def of(self, errors: Matrix) -> tuple[float, Matrix]:
        """Return the loss of the model's errors, and its residuals, (m, H)."""
        issued = errors - self.offsets
        blamed = np.zeros(len(KEEPS))  # the effect of each mean on later forecasts
        residuals, step = issued.copy(), self.steps[-1]
        for i in range(len(issued) - 1, -1, -1):
            blamed = blamed * KEEPS ** (step - self.steps[i])
            residuals[i, 0] -= self.counted[i] * ((1 - KEEPS) / KEEPS @ blamed)
            blamed = blamed + issued[i] @ self.pulls[i]
            step = self.steps[i]
        total = float(np.sum(issued * issued))
        if not total:
            return 0.0, np.zeros_like(residuals)  # nothing is left to learn
        root = np.sqrt(total / issued.size)
        return 2 * issued.size * float(root), residuals / root

    def in_units(self, units: Vector) -> IssuedLoss:
        """Return the loss of errors that are measured in these units, one per horizon, (H,)."""
        pulls = self.pulls * (units[0] / units)[:, None]
        return replace(self, pulls=pulls, offsets=self.offsets / units)


@dataclass(frozen=True)
class CorrectionLog:
    """The corrections of the forecasts since the last refit, where errors were learned from."""

    steps: NDArray[np.int64]  # (n,), the steps that forecasts were made for
    # (n, H, L) and (n, H), the share of each mean that was added, and the whole correction.
    pulls: NDArray[np.float64]
    offsets: Matrix

    @classmethod
    def start(cls, horizon: int) -> CorrectionLog:
        """Return the log before any forecast."""
        return cls(
            np.zeros(0, dtype=np.int64),
            np.zeros((0, horizon, len(KEEPS))),
            np.zeros((0, horizon)),
        )

    def after(self, step: int, pulls: Matrix, offsets: Vector) -> CorrectionLog:
        """Return the log with one more forecast, without forecasts that are too old."""
        return CorrectionLog(
            np.concatenate((self.steps, (step,)))[-MOST:],
            np.concatenate((self.pulls, pulls[None]))[-MOST:],
            np.concatenate((self.offsets, offsets[None]))[-MOST:],
        )

    def since(self, step: int) -> CorrectionLog:
        """Return the log from a step on."""
        kept = self.steps >= step
        return CorrectionLog(self.steps[kept], self.pulls[kept], self.offsets[kept])

    def loss(self, times: Vector) -> IssuedLoss:
        """Return the loss of rows at ascending times; outside the log there is no correction."""
        at = np.searchsorted(self.steps, times)
        known = np.isin(times, self.steps)
        pulls = np.zeros((len(times), *self.pulls.shape[1:]))
        offsets = np.zeros((len(times), *self.offsets.shape[1:]))
        pulls[known], offsets[known] = self.pulls[at[known]], self.offsets[at[known]]
        return IssuedLoss(times, pulls, offsets, known.astype(float))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that changes, for `restore`."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> CorrectionLog:
        """Return the log with a saved state of the same horizon."""
        steps = np.asarray(state["steps"], dtype=np.int64)
        pulls, offsets = (require_finite(name, state[name]) for name in ("pulls", "offsets"))
        require_shape("pulls", pulls, (len(steps), *self.pulls.shape[1:]))
        require_shape("offsets", offsets, (len(steps), *self.offsets.shape[1:]))
        return CorrectionLog(steps, pulls, offsets)
