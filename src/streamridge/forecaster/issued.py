r"""The loss of forecasts as they were issued, correction included.

A forecast is issued as $f_t = \hat y_t + \sum_l p_{tl} m_{tl}$, with the means $m_{tl}$ of the
model's errors before step $t$. So a forecast of the model takes part in its own loss, and in that
of later forecasts, whose correction counts on its error $e_s$ one step ahead:

$$\frac{\partial m_{tl}}{\partial e_s} = (1 - k_l)\, k_l^{t - s - 1}.$$

The pulls $p_{tl}$ are taken as they were at each step, and forecasts of earlier windows as given.

The loss is $2n$ times the root of the mean square of a window's $n$ errors. So its gradient is that
of squared errors over their root mean square: when a stream becomes ten times quieter, it shrinks
by ten, not by a hundred, and a step rule that remembers the size of gradients goes on. A gradient
of the logarithm would not shrink at all, but neglects the windows whose errors are large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.forecaster.correction import KEEPS

# So many forecasts are remembered at most while a refit is put off.
MOST = 4096


@dataclass(frozen=True)
class IssuedErrors:
    """The root mean square error of m corrected forecasts, as a loss of the model's own errors.

    Parameters
    ----------
    steps
        (m,), the step that each forecast was made for, in ascending order.
    pulls
        (m, H, L), the share of each mean of the last errors that was added.
    offsets
        (m, H), what was added.
    told
        (m,), one where the error one step ahead became part of the means, else zero.
    """

    steps: Vector
    pulls: NDArray[np.float64]
    offsets: Matrix
    told: Vector

    def of(self, errors: Matrix) -> tuple[float, Matrix]:
        """Return the loss of the model's errors, and its residuals, (m, H)."""
        issued = errors - self.offsets
        blamed = np.zeros(len(KEEPS))  # by later forecasts, for each mean
        residuals, step = issued.copy(), self.steps[-1]
        for i in range(len(issued) - 1, -1, -1):
            blamed = blamed * KEEPS ** (step - self.steps[i])
            residuals[i, 0] -= self.told[i] * ((1 - KEEPS) / KEEPS @ blamed)
            blamed = blamed + issued[i] @ self.pulls[i]
            step = self.steps[i]
        total = float(np.sum(issued * issued))
        if not total:
            return 0.0, np.zeros_like(residuals)  # nothing is left to learn
        root = np.sqrt(total / issued.size)
        return 2 * issued.size * float(root), residuals / root

    def in_units(self, units: Vector) -> IssuedErrors:
        """Return the loss of errors that are measured in these units, one per horizon, (H,)."""
        pulls = self.pulls * (units[0] / units)[:, None]
        return replace(self, pulls=pulls, offsets=self.offsets / units)


@dataclass(frozen=True)
class Trail:
    """How the forecasts since the last refit were corrected, where errors were learned from.

    Parameters
    ----------
    steps
        (n,), the steps that forecasts were made for.
    pulls, offsets
        (n, H, L) and (n, H), the share of each mean that was added, and what was added.
    """

    steps: NDArray[np.int64]
    pulls: NDArray[np.float64]
    offsets: Matrix

    @classmethod
    def start(cls, horizon: int) -> Trail:
        """Return the trail before any forecast."""
        return cls(
            np.zeros(0, dtype=np.int64),
            np.zeros((0, horizon, len(KEEPS))),
            np.zeros((0, horizon)),
        )

    def after(self, step: int, pulls: Matrix, offsets: Vector) -> Trail:
        """Return the trail with one more forecast, and without those that are too old."""
        return Trail(
            np.concatenate((self.steps, (step,)))[-MOST:],
            np.concatenate((self.pulls, pulls[None]))[-MOST:],
            np.concatenate((self.offsets, offsets[None]))[-MOST:],
        )

    def since(self, step: int) -> Trail:
        """Return the trail from a step on."""
        kept = self.steps >= step
        return Trail(self.steps[kept], self.pulls[kept], self.offsets[kept])

    def loss(self, times: Vector) -> IssuedErrors:
        """Return the loss of rows at these times; a forecast that is not known was not corrected.

        Parameters
        ----------
        times
            (m,), whole steps, in ascending order.
        """
        at = np.searchsorted(self.steps, times)
        known = np.isin(times, self.steps)
        pulls = np.zeros((len(times), *self.pulls.shape[1:]))
        offsets = np.zeros((len(times), *self.offsets.shape[1:]))
        pulls[known], offsets[known] = self.pulls[at[known]], self.offsets[at[known]]
        return IssuedErrors(times, pulls, offsets, known.astype(float))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything that changes, for `restore`."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> Trail:
        """Return the trail with a saved state of the same horizon."""
        steps = np.asarray(state["steps"], dtype=np.int64)
        pulls, offsets = (require_finite(name, state[name]) for name in ("pulls", "offsets"))
        require_shape("pulls", pulls, (len(steps), *self.pulls.shape[1:]))
        require_shape("offsets", offsets, (len(steps), *self.offsets.shape[1:]))
        return Trail(steps, pulls, offsets)
