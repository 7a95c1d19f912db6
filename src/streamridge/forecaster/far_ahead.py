r"""Forecasts beyond the steps of the model: a mixture of the regression and seasonal profiles.

The members are the seasonal regression and the profiles that it refers to. Their weights follow
past errors by ML-Poly: see `streamridge.forecaster.aggregation`. An interval reaches from one
quantile of the last scores to another; a score is an error divided by its expected size. Weights
and scores are renewed once a day, by forecasts of the day's steps at several leads that are made
anew with the weights of the day before. So no forecast has to be kept until its value is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part, require_shape
from streamridge.errors import StateError
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import SeasonalColumns, SeasonalRows
from streamridge.forecaster.aggregation import MLPoly
from streamridge.forecaster.forecast import JUDGED, Levels, gaussian_quantile
from streamridge.forecaster.plausibility import Limits, clipped
from streamridge.forecaster.seasonal_regression import SeasonalErrors, SeasonalRegression

# The memory of the weights, in days.
MEMORY = 90
# The bonus of the regression, in units of the largest regret of a day.
LEAD = 5.0
# Leads are divided into groups, evenly in logarithms; each has scores of its own.
GROUPS = 4
# The scores of a day that are kept for each group, and the days of scores.
DAILY, DAYS = 12, 21
# The mean size of a Gaussian error, in deviations: expected sizes are mean sizes.
MEAN_SIZE = 0.8


@dataclass(frozen=True)
class FarForecast:
    """A forecast of the far leads."""

    values: Vector  # (F,)
    spreads: Vector  # (F,), the expected sizes of its errors


@dataclass(frozen=True)
class FarAhead:
    """The weights of the members, and the last scores of their mixture, by groups of leads."""

    regression: SeasonalRegression
    experts: MLPoly
    scores: Matrix  # (GROUPS, DAYS * DAILY), oldest first; NaN before there are so many

    @classmethod
    def start(cls, columns: SeasonalColumns, leads: tuple[int, int]) -> FarAhead:
        """Return the state before any reading: the regression has all the weight.

        `leads` are the first and the last number of steps ahead. The first scores are Gaussian.
        """
        alone = np.eye(4 + (columns.day is not None))[0]
        shares = (np.arange(2 * DAILY) + 0.5) / (2 * DAILY)
        scores = np.full((GROUPS, DAYS * DAILY), np.nan)
        scores[:, -len(shares) :] = [_quantile(share) / MEAN_SIZE for share in shares.tolist()]
        return cls(
            SeasonalRegression.start(columns, leads),
            MLPoly.start(1, alone, (float(MEMORY),), lead=LEAD * alone),
            scores,
        )

    def forecast(
        self, ahead: SeasonalRows, naive: Vector, width: float, least: float, limits: Limits
    ) -> FarForecast:
        """Return the forecast of the far leads, given the rows of the next steps.

        Members without a forecast repeat the regression, or else the naive forecast, (F,). The
        interval of 90 % of the naive forecast has this width. The expected errors are at least
        `least`.
        """
        members, spreads = self.regression.forecast(ahead)
        regression = self.regression
        if regression.is_sure:  # sizes from few seasons are uncertain
            spreads = spreads * (1 + 1 / regression.seasons_learned)
        else:
            spreads = np.fmax(spreads, width * MEAN_SIZE / (2 * gaussian_quantile(JUDGED)))
        members[0] = np.where(np.isnan(members[0]), naive, members[0])
        values = self._mixed(np.where(np.isnan(members), members[0], members))
        return FarForecast(clipped(values, limits), np.fmax(spreads, least))

    def offsets(self, forecast: FarForecast, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far intervals reach below and above a forecast, (F, L) each."""
        tails = (1 - np.array(levels)) / 2
        reach = np.nanquantile(self.scores, np.concatenate([tails, 1 - tails]), axis=1)
        first, last = self.regression.leads
        leads = np.log(np.arange(first, last + 1))
        smooth = np.stack([np.interp(leads, self._centres, each) for each in reach], axis=1)
        ends = forecast.spreads[:, None] * smooth
        return np.minimum(ends[:, : len(tails)], 0.0), np.maximum(ends[:, len(tails) :], 0.0)

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
        experts = self.experts.observe_all(errors.members, mixed[None], errors.targets)
        groups, scores = self._groups(errors.leads), self.scores.copy()
        for group in range(GROUPS):
            new = ((errors.targets - mixed) / errors.spreads)[groups == group]
            some = new[np.linspace(0, len(new) - 1, min(DAILY, len(new))).astype(np.int64)]
            scores[group] = np.append(scores[group, len(some) :], some)
        return replace(self, experts=experts, scores=scores)

    def _groups(self, leads: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the group of each lead."""
        return np.searchsorted(self._limits, leads, side="right")

    @cached_property
    def _limits(self) -> Vector:
        """Return the first lead of each group but the first."""
        first, last = self.regression.leads
        return first * (last / first) ** (np.arange(1, GROUPS) / GROUPS)

    @cached_property
    def _centres(self) -> Vector:
        """Return the middle of each group, in logarithms of leads."""
        first, last = self.regression.leads
        return np.log(first) + np.log(last / first) * (np.arange(GROUPS) + 0.5) / GROUPS

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        parts = {name: getattr(self, name).state() for name in ("regression", "experts")}
        return joined({**parts, "last": {"scores": self.scores}})

    def restore(self, state: Mapping[str, NDArray[Any]]) -> FarAhead:
        """Return the state that was saved, of the same columns and leads."""
        scores = np.asarray(state["last.scores"], dtype=np.float64)
        require_shape("scores", scores, self.scores.shape)
        if np.isinf(scores).any() or np.isnan(scores).all(axis=1).any():
            raise StateError("scores must be finite, and at least one for each group of leads.")
        return FarAhead(
            self.regression.restore(part(state, "regression")),
            self.experts.restore(part(state, "experts")),
            scores,
        )


def _quantile(share: float) -> float:
    """Return a quantile of the Gaussian distribution.

    >>> _quantile(0.5), round(_quantile(0.95), 2), round(_quantile(0.05), 2)
    (0.0, 1.64, -1.64)
    """
    size = gaussian_quantile(abs(2 * share - 1)) if share != 0.5 else 0.0
    return size if share > 0.5 else -size
