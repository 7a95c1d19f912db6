r"""A correction of forecasts several steps ahead, which follows a changed daily pattern in days.

A model of many weeks needs weeks to follow a new pattern. A regression with a memory of one day
explains the errors $e$ of the forecasts by their differences $x$ from three simple forecasts: the
median of the last weeks at the same time, the same plus the deviation from it a day ago, and the
mean of the last days. One set of weights serves all leads,

$$w = (G + \rho\, \bar g\, I)^{-1} \sum x e, \qquad G = \sum x x^\top,$$

with the mean $\bar g$ of the diagonal of $G$. The sums are discounted. A share $s_h$ between zero
and one tells how much of $x^\top w$ to add at lead $h$. It is the least-squares estimate over past
corrections less half its standard error, and starts at zero:

$$s_h = \frac{n}{n_0 + n} \cdot
\frac{\sum c\, e - \frac12 \sqrt{h \sum c^2 (e - s_h c)^2}}{\sum c^2}, \qquad c = x^\top w.$$

So a forecast is corrected only where this has helped. What was earned by small changes says nothing
of large ones: a change $c$ is at most four times as large as the root mean square of earlier ones.
Forecasts one step ahead do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.forecaster.plausibility import Limits, clipped

# The memory of the regression, and of the shares, in days.
MEMORY, SHARE_MEMORY = 1, 28
# The penalty on the weights, and the days of corrections that a share of zero counts for.
RIDGE, FIRST_DAYS = 0.05, 0.25
# A share is its estimate less this number of standard errors.
DOUBT = 0.5
# The largest change, as a multiple of the root mean square of earlier ones.
LARGEST = 4.0
# Weights and shares are solved for at every this many steps, which saves time.
SOLVE_EVERY = 4
# The columns of the regression, and the places of the other numbers of a lead.
COLUMNS = 3
VALUE, CHANGE, SHARE = range(COLUMNS, COLUMNS + 3)
IDENTITY, TINY, LIMITLESS = np.eye(COLUMNS), 1e-300, 1e300
# The arrays that change.
ARRAYS = ("products", "trust", "weights", "shares", "largest", "pending")


@dataclass(frozen=True)
class PatternForecast:
    """A forecast before its correction, and its differences from simple forecasts."""

    # (L, 6), for each lead from the second on: the differences, the forecast, what the regression
    # adds to it, and the share of this that counts.
    leads: Matrix

    def corrected(self, values: Vector, limits: Limits) -> Vector:
        """Return the forecast, (H,), with its correction, within limits."""
        changes = self.leads[:, CHANGE] * self.leads[:, SHARE]
        if not changes.any():
            return values
        return np.append(values[:1], clipped(values[1:] + changes, limits))


@dataclass(frozen=True)
class PatternCorrection:
    """The sums of the regression and of the shares of L leads, from the second step ahead on."""

    day: int  # in steps
    products: Matrix  # (3, 4), discounted: of the differences with each other and with errors
    # (4, L), discounted: the number of corrections, their squares, their products with errors, and
    # the squares of their products with what is left of the errors.
    trust: Matrix
    # What was last solved for: the weights of the differences, (3,), and at each lead, (L,), how
    # much of the regression is added, between zero and one, and the largest change.
    weights: Vector
    shares: Vector
    largest: Vector
    # (L, L, 6), the last forecasts of the next L steps at each lead; zero if there was none.
    pending: NDArray[np.float64]
    step: int = 0  # the first of these steps

    @classmethod
    def start(cls, day: int, horizon: int) -> PatternCorrection:
        """Return the correction before any reading."""
        count = horizon - 1
        products, trust = np.zeros((COLUMNS, COLUMNS + 1)), np.zeros((4, count))
        pending = np.zeros((count, count, COLUMNS + 3))
        solution = np.zeros(COLUMNS), np.zeros(count), np.full(count, LIMITLESS)
        return cls(day, products, trust, *solution, pending)

    def forecast(self, values: Vector, simple: Matrix) -> PatternForecast:
        """Return the differences of a forecast from simple ones, and its correction.

        `values` are the forecasts, (H,). The simple ones of the later steps, (L, 3), are NaN if
        they are not known.
        """
        leads = np.empty(self.pending.shape[1:])
        differences = leads[:, :COLUMNS]
        np.subtract(simple, values[1:, None], out=differences)
        differences[np.isnan(differences)] = 0.0
        leads[:, VALUE] = values[1:]
        changes, most = differences.dot(self.weights), self.largest
        leads[:, CHANGE] = np.minimum(np.maximum(changes, -most), most)
        leads[:, SHARE] = self.shares
        return PatternForecast(leads)

    def observe(
        self, step: int, value: float, forecast: PatternForecast | None, *, learns: bool
    ) -> PatternCorrection:
        """Return the correction after a value; `forecast` is its forecast, if there was a model."""
        made = self.pending if step == self.step else _later(self.pending, step - self.step)
        pending, products, trust = _later(made, 1), self.products, self.trust
        if forecast is not None:
            count = len(pending)
            pending.reshape(-1, pending.shape[2])[:: count + 1] = forecast.leads  # its diagonal
        if learns:
            products, trust = self._learned(value, made[0])
        solution = self.weights, self.shares, self.largest
        if step % SOLVE_EVERY == 0:
            solution = _weights(products), *_shares(trust, self.day)
        return PatternCorrection(self.day, products, trust, *solution, pending, step + 1)

    def _learned(self, value: float, leads: Matrix) -> tuple[Matrix, Matrix]:
        """Return both sums after a value, given its forecasts at each lead, (L, 6)."""
        rows, changes = leads[:, : COLUMNS + 1].copy(), leads[:, CHANGE]
        errors = value - leads[:, VALUE]
        rows[:, VALUE] = errors
        weighted = changes * (errors - leads[:, SHARE] * changes)
        new = np.array([changes != 0, changes * changes, changes * errors, weighted * weighted])
        keep, keep_trust = (1 - 1 / (days * self.day) for days in (MEMORY, SHARE_MEMORY))
        products = keep * self.products + rows[:, :COLUMNS].T.dot(rows)
        return products, keep_trust * self.trust + new

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {**{name: getattr(self, name) for name in ARRAYS}, "step": np.array(self.step)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> PatternCorrection:
        """Return the correction with a saved state of the same leads."""
        for name in ARRAYS:
            require_shape(name, require_finite(name, state[name]), getattr(self, name).shape)
        arrays: dict[str, Any] = {name: state[name] for name in ARRAYS}
        return PatternCorrection(self.day, **arrays, step=int(state["step"]))


def _weights(products: Matrix) -> Vector:
    """Return the weights of the three differences."""
    gram = products[:, :COLUMNS]
    penalty = RIDGE / COLUMNS * float(gram.trace())
    if not 0 < penalty < np.inf:
        return np.zeros(COLUMNS)
    return np.asarray(dposv(gram + penalty * IDENTITY, products[:, COLUMNS])[1])


def _shares(trust: Matrix, day: int) -> tuple[Vector, Vector]:
    """Return how much of the regression is added at each lead, and the largest change, (L,)."""
    seen, squares, products, deviations = trust
    ahead = np.arange(2, len(seen) + 2)  # errors of overlapping forecasts are alike
    least = products - DOUBT * np.sqrt(ahead * deviations)
    best = np.clip(least / np.maximum(squares, TINY), 0.0, 1.0)
    usual = np.sqrt(squares / np.maximum(seen, TINY))
    return best * seen / (seen + FIRST_DAYS * day), np.where(seen > 0, LARGEST * usual, LIMITLESS)


def _later(pending: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return the forecasts of the next steps, given those of some steps before."""
    later = np.zeros_like(pending)
    if steps < len(pending):
        later[: len(pending) - steps] = pending[steps:]
    return later
