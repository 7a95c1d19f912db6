r"""Forecasts beyond the steps of the model: a mixture of the regression and seasonal profiles.

The members are the seasonal regression and the profiles that it refers to. Their weights follow
past errors by ML-Poly: see `streamridge.forecaster.aggregation`. The intervals follow them by
conformal quantiles: see `streamridge.forecaster.bands`. Both learn once a day, from forecasts of
the day's steps at several leads that are made anew with the weights of the day before. So no
forecast has to be kept until its value is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import SeasonalColumns
from streamridge.forecaster.aggregation import MLPoly
from streamridge.forecaster.bands import TYPICAL, ConformalBands
from streamridge.forecaster.forecast import Level, Levels
from streamridge.forecaster.plausibility import Limits, clipped
from streamridge.forecaster.seasonal_regression import SeasonalErrors, SeasonalRegression

# The memory of the weights, in days.
MEMORY = 90
# Leads are divided into groups of this number, evenly in logarithms; each has its own intervals.
GROUPS = 4
# The mean size of a Gaussian error, in deviations: spreads are mean sizes here.
MEAN_SIZE = 0.8
# The bonus of the regression, in units of the largest regret of a day.
LEAD = 5.0


@dataclass(frozen=True)
class FarForecast:
    """A forecast of the far leads."""

    values: Vector  # (F,)
    spreads: Vector  # (F,), the expected sizes of its errors


@dataclass(frozen=True)
class FarAhead:
    """The weights of the members, and the intervals of their mixture, by groups of leads."""

    regression: SeasonalRegression
    experts: MLPoly
    bands: ConformalBands

    @classmethod
    def start(cls, columns: SeasonalColumns, leads: tuple[int, int], level: Level) -> FarAhead:
        """Return the state before any reading: the regression has all the weight.

        `leads` are the first and the last number of steps ahead.
        """
        alone, bands = np.eye(4 + (columns.day is not None))[0], ConformalBands.start(GROUPS, level)
        return cls(
            SeasonalRegression.start(columns, leads),
            MLPoly.start(1, alone, (float(MEMORY),), lead=LEAD * alone),
            replace(bands, reach=bands.reach * (TYPICAL / MEAN_SIZE)),
        )

    def forecast(self, past: Past, naive: Vector, least: float, limits: Limits) -> FarForecast:
        """Return the forecast of the far leads.

        Members without a forecast repeat the naive forecast, (F,). The expected errors are at least
        `least`.
        """
        members, spreads = self.regression.forecast(past)
        values = self._mixed(np.where(np.isnan(members), naive, members))
        return FarForecast(clipped(values, limits), np.fmax(spreads, least))

    def offsets(self, forecast: FarForecast, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far intervals reach below and above a forecast, (F, L) each."""
        first, last = self.regression.leads
        groups = self._groups(np.arange(first, last + 1))
        bands = replace(self.bands, reach=self.bands.reach[groups], seen=self.bands.seen[groups])
        return bands.offsets(forecast.spreads, levels)

    def caught_up(self, past: Past) -> FarAhead:
        """Return the state after all steps of the timeline that are new to it."""
        far = self
        while far.regression.newest < past.timeline.newest:
            regression, errors = far.regression.advanced(past)
            far = replace(far, regression=regression)
            if errors is not None:
                far = far._learned(errors)
        return far

    def _mixed(self, members: Matrix) -> Vector:
        """Return the mixture of forecasts, (K, n), none of which is NaN."""
        return self.experts.weights()[0, 0].dot(members)

    def _learned(self, errors: SeasonalErrors) -> FarAhead:
        """Return the state after the errors of a day."""
        mixed = self._mixed(errors.members)
        experts = self.experts.observe_all(0, errors.members, mixed[None], errors.targets)
        groups, bands = self._groups(errors.leads), self.bands
        for group in range(GROUPS):
            here = groups == group
            if here.any():
                scores = (errors.targets - mixed)[here] / errors.spreads[here]
                bands = bands.observe_all(group, scores)
        return replace(self, experts=experts, bands=bands)

    def _groups(self, leads: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the group of each lead."""
        return np.searchsorted(self._limits, leads, side="right")

    @cached_property
    def _limits(self) -> Vector:
        """Return the first lead of each group but the first."""
        first, last = self.regression.leads
        return first * (last / first) ** (np.arange(1, GROUPS) / GROUPS)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        parts = ("regression", "experts", "bands")
        return joined({name: getattr(self, name).state() for name in parts})

    def restore(self, state: Mapping[str, NDArray[Any]]) -> FarAhead:
        """Return the state that was saved, of the same columns, leads and levels."""
        return FarAhead(
            self.regression.restore(part(state, "regression")),
            self.experts.restore(part(state, "experts")),
            self.bands.restore(part(state, "bands")),
        )
