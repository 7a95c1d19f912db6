r"""A blend of the model with a regression on seasonal profiles, at the steps of the model.

The blend is $k + w (r - k)$ with the model's forecast $k$ and the regression's forecast $r$. The
share $w$ of a lead is the least-squares estimate over past forecasts, moved towards its initial
value while few errors are known:

$$w = \frac{n_0 w_0 + n\,\hat w}{n_0 + n}, \qquad
\hat w = \frac{\sum (r - k)(y - k)}{\sum (r - k)^2}.$$

The sums are discounted. A share has one parameter, so it is learned within days. The weights of
an ensemble need weeks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part, require_finite, require_shape
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import SeasonalColumns, SeasonalRows
from streamridge.forecaster.seasonal_regression import SeasonalRegression

# The initial share of the regression, and the days of errors that it counts for.
FIRST_SHARE, FIRST_DAYS = 0.2, 2
# The memory of the sums, in days.
MEMORY = 10


@dataclass(frozen=True)
class BlendedForecast:
    """A forecast of the model, and how far the regression is from it."""

    step: int  # the first step that is forecast
    model: Vector  # (H,)
    differences: Vector  # (H,), regression minus model; zero if the regression has no forecast


@dataclass(frozen=True)
class Blend:
    """The regression, and the sums that its shares follow from."""

    regression: SeasonalRegression
    day: int  # in steps
    sums: Matrix  # (3, H), discounted: number, squared differences, their products with errors
    pending: tuple[BlendedForecast, ...] = ()  # forecasts of steps still to come, newest first

    @classmethod
    def start(cls, columns: SeasonalColumns, horizon: int, day: int) -> Blend:
        """Return the blend before any reading."""
        return cls(SeasonalRegression.start(columns, (1, horizon)), day, np.zeros((3, horizon)))

    @cached_property
    def shares(self) -> Vector:
        """Return the share of the regression at each lead, (H,)."""
        seen, squares, products = self.sums
        known = squares > 0
        best = np.where(known, products / np.where(known, squares, 1.0), FIRST_SHARE)
        first = FIRST_DAYS * self.day
        return (first * FIRST_SHARE + seen * np.clip(best, 0.0, 1.0)) / (first + seen)

    def forecast(self, ahead: SeasonalRows, step: int, model: Vector) -> BlendedForecast:
        """Return the parts of the blend, given rows and the model's forecast from a step on, (H,).

        The rows of the regression may reach farther.
        """
        differences = self.regression.forecast(ahead)[0][0] - model
        return BlendedForecast(step, model, np.nan_to_num(differences, posinf=0.0, neginf=0.0))

    def blended(self, forecast: BlendedForecast, values: Matrix) -> Matrix:
        """Return forecasts of fits, (n, H), moved towards the regression, if that has one."""
        gaps = forecast.model + forecast.differences - values
        return values + self.shares * np.where(forecast.differences == 0, 0.0, gaps)

    def observe(
        self, step: int, value: float, forecast: BlendedForecast | None, *, learns: bool
    ) -> Blend:
        """Return the blend after a value; `forecast` is its forecast, if there was a model."""
        pending = self.pending if forecast is None else (forecast, *self.pending)
        horizon, sums = self.sums.shape[1], self.sums
        made = {step - each.step: each for each in pending if step - each.step < horizon}
        if learns and made:
            leads = np.array(list(made))
            model = np.array([each.model[lead] for lead, each in made.items()])
            gaps = np.array([each.differences[lead] for lead, each in made.items()])
            new = np.stack([gaps != 0, gaps * gaps, gaps * (value - model)])
            sums = sums.copy()
            sums[:, leads] = (1 - 1 / (MEMORY * self.day)) * sums[:, leads] + new
        made.pop(horizon - 1, None)  # all of its values are known
        return replace(self, sums=sums, pending=tuple(made.values()))

    def caught_up(self, past: Past) -> Blend:
        """Return the blend whose regression knows all steps of the timeline."""
        return replace(self, regression=self.regression.caught_up(past))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        steps = np.array([each.step for each in self.pending], dtype=np.int64)
        pairs = [(each.model, each.differences) for each in self.pending]
        shape = len(pairs), 2, self.sums.shape[1]
        own = {"sums": self.sums, "steps": steps, "pairs": np.array(pairs).reshape(shape)}
        return joined({"regression": self.regression.state(), "own": own})

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Blend:
        """Return the blend with a saved state of the same columns and leads."""
        own = {name: require_finite(name, array) for name, array in part(state, "own").items()}
        steps = own["steps"].astype(np.int64).tolist()
        require_shape("sums", own["sums"], self.sums.shape)
        require_shape("pairs", own["pairs"], (len(steps), 2, self.sums.shape[1]))
        pending = tuple(
            BlendedForecast(step, *pair) for step, pair in zip(steps, own["pairs"], strict=True)
        )
        regression = self.regression.restore(part(state, "regression"))
        return replace(self, regression=regression, sums=own["sums"], pending=pending)
