"""The figures of merit of a run's forecasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.forecaster.levels import named
from streamridge.metrics import finite_or_none


@dataclass(frozen=True)
class Score:
    """How good the forecasts of some steps ahead were.

    Parameters
    ----------
    ahead
        How many steps.
    rmse, mae
        The root mean squared error and the mean absolute error; NaN if nothing was scored.
    coverages
        The share of readings within their band, by level.
    yardsticks
        The RMSE of forecasts that need no model, over the same steps, by name.
    """

    ahead: int
    rmse: float
    mae: float
    coverages: Mapping[float, float]
    yardsticks: Mapping[str, float]

    @property
    def relative(self) -> float:
        """Return the RMSE over that of the season ago, without a season over that of `last`.

        NaN stands for no such forecast, or one that is never wrong, such as that of a dead sensor.
        """
        naive = self.yardsticks.get("week", self.yardsticks.get("last", np.nan))
        return self.rmse / naive if naive > 0 else np.nan

    def record(self) -> dict[str, Any]:
        """Return the figures as plain values, NaN as None."""
        figures = {
            "rmse": self.rmse,
            "rmse_relative": self.relative,
            "mae": self.mae,
            **named("coverage", tuple(self.coverages), list(self.coverages.values())),
        }
        return {"ahead": self.ahead} | {n: finite_or_none(each) for n, each in figures.items()}
