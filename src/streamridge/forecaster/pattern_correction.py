r"""A correction of forecasts several steps ahead, which follows a changed daily pattern in days.

A model of many weeks needs weeks to follow a new pattern. A regression with a memory of one day
explains the errors $e$ of the forecasts by their differences $x$ from three simple forecasts: the
median of the last weeks at the same time, the same plus the deviation from it a day ago, and the
mean of the last days. One set of weights serves all leads,

$$w = (G + \rho\, \bar g\, I)^{-1} \sum x e, \qquad G = \sum x x^\top,$$

with the mean $\bar g$ of the diagonal of $G$. The sums are discounted. A share $s_h$ between zero
and one tells how much of $x^\top w$ to add at lead $h$. It is the least-squares estimate over past
corrections less its standard error, and starts at zero:

$$s_h = \frac{n}{n_0 + n} \cdot
\frac{\sum c\, e - \sqrt{h \sum c^2 (e - s_h c)^2}}{\sum c^2}, \qquad c = x^\top w.$$

So a forecast is corrected only where this has helped. What was earned by small changes says nothing
of large ones: a change $c$ is at most four times as large as the root mean square of earlier ones.
Forecasts one step ahead do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.forecaster.plausibility import Limits, clipped
from streamridge.series.times import Steps

# The memory of the regression, and of the shares, in days.
MEMORY, SHARE_MEMORY = 1, 14
# The penalty on the weights, and the days of corrections that a share of zero counts for.
RIDGE, FIRST_DAYS = 0.1, 1.0
# A share is its estimate less this number of standard errors.
DOUBT = 1.0
# The largest change, as a multiple of the root mean square of earlier ones.
LARGEST = 4.0
# The columns of the regression, and the places of the other numbers of a lead.
COLUMNS = 3
VALUE, CHANGE, SHARE = range(COLUMNS, COLUMNS + 3)
# A step before all others.
NEVER = -(2**60)
IDENTITY, TINY = np.eye(COLUMNS), 1e-300
# The arrays that change.
ARRAYS = ("products", "trust", "steps", "pending")


@dataclass(frozen=True)
class PatternForecast:
    """A forecast before its correction, and its differences from simple forecasts."""

    step: int  # the first step that is forecast
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
    # The last L forecasts, each in a place that depends on its step: (L,) and (L, L, 6).
    steps: Steps
    pending: NDArray[np.float64]

    @classmethod
    def start(cls, day: int, horizon: int) -> PatternCorrection:
        """Return the correction before any reading."""
        leads = horizon - 1
        products, trust = np.zeros((COLUMNS, COLUMNS + 1)), np.zeros((4, leads))
        never, pending = np.full(leads, NEVER), np.zeros((leads, leads, COLUMNS + 3))
        return cls(day, products, trust, never, pending)

    @cached_property
    def weights(self) -> Vector:
        """Return the weights of the three differences."""
        gram, products = self.products[:, :COLUMNS], self.products[:, COLUMNS]
        penalty = RIDGE / COLUMNS * float(gram.trace())
        if not 0 < penalty < np.inf:
            return np.zeros(COLUMNS)
        return np.asarray(dposv(gram + penalty * IDENTITY, products)[1])

    @cached_property
    def shares(self) -> Vector:
        """Return how much of the regression is added at each lead, (L,), between zero and one."""
        seen, squares, products, deviations = self.trust
        ahead = np.arange(2, len(seen) + 2)  # errors of overlapping forecasts are alike
        least = products - DOUBT * np.sqrt(ahead * deviations)
        best = np.maximum(least, 0.0) / np.maximum(squares, TINY)
        return np.minimum(best, 1.0) * seen / (seen + FIRST_DAYS * self.day)

    @cached_property
    def largest(self) -> Vector:
        """Return the largest change of each lead, (L,); infinite before there is any."""
        seen, squares = self.trust[:2]
        return np.where(seen > 0, LARGEST * np.sqrt(squares / np.maximum(seen, TINY)), np.inf)

    def forecast(self, step: int, values: Vector, simple: Matrix) -> PatternForecast:
        """Return the differences of a forecast from simple ones, and its correction.

        `values` are the forecasts from a step on, (H,). The simple ones of the later steps, (L, 3),
        are NaN if they are not known.
        """
        leads = np.empty(self.pending.shape[1:])
        differences = leads[:, :COLUMNS]
        np.subtract(simple, values[1:, None], out=differences)
        differences[np.isnan(differences)] = 0.0
        leads[:, VALUE] = values[1:]
        changes, most = differences.dot(self.weights), self.largest
        leads[:, CHANGE] = np.minimum(np.maximum(changes, -most), most)
        leads[:, SHARE] = self.shares
        return PatternForecast(step, leads)

    def observe(
        self, step: int, value: float, forecast: PatternForecast | None, *, learns: bool
    ) -> PatternCorrection:
        """Return the correction after a value; `forecast` is its forecast, if there was a model."""
        products, trust = self._learned(step, value) if learns else (self.products, self.trust)
        steps, pending = self.steps, self.pending
        if forecast is not None:
            steps, pending, at = steps.copy(), pending.copy(), step % len(steps)
            steps[at], pending[at] = step, forecast.leads
        return PatternCorrection(self.day, products, trust, steps, pending)

    def _learned(self, step: int, value: float) -> tuple[Matrix, Matrix]:
        """Return both sums after they have learned from earlier forecasts of a value."""
        places = np.arange(len(self.steps))
        made = step - 1 - places
        at = made % len(made)
        leads = self.pending[at, places] * (self.steps[at] == made)[:, None]  # zero without one
        errors, changes = value - leads[:, VALUE], leads[:, CHANGE]
        left = errors - leads[:, SHARE] * changes
        leads[:, VALUE] = errors
        weighted = changes * left
        new = np.array([changes != 0, changes * changes, changes * errors, weighted * weighted])
        keep, keep_trust = (1 - 1 / (days * self.day) for days in (MEMORY, SHARE_MEMORY))
        rows = leads[:, :COLUMNS].T.dot(leads[:, : COLUMNS + 1])
        return keep * self.products + rows, keep_trust * self.trust + new

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {name: getattr(self, name) for name in ARRAYS}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> PatternCorrection:
        """Return the correction with a saved state of the same leads."""
        for name in ARRAYS:
            require_shape(name, require_finite(name, state[name]), getattr(self, name).shape)
        products, trust, steps, pending = (state[name] for name in ARRAYS)
        steps = steps.astype(np.int64)
        return PatternCorrection(self.day, products, trust, steps, pending)
