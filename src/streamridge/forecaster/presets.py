"""Ready-made models: what one is, and the default one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.features.base import RowMaker
from streamridge.features.profiles import Profiles, Season
from streamridge.hyperparameters.coordinates import Coordinates
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.radial import INVERSE_SCALE_BOUNDS, Matern
from streamridge.learners.lazy_descent import AdaGradStep, StepRule
from streamridge.models.base import Model
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.standardized import Standardized
from streamridge.series.clock import Length, amount
from streamridge.series.seasons import season_name

# How many of the shortest season a typical value is the mean of, of longer ones, and of years.
DAYS, WEEKS, YEARS = 7, 4, 10
# Number of deviations from the course of a season that is not the shortest.
FEW_LAGS = 4
# A season of this length has been seen a few times only, and a value at a shorter step than this is
# mostly noise: a typical value is then also one of the times around it.
LONG, FINE = timedelta(days=90), timedelta(minutes=5)


@dataclass(frozen=True)
class Preset:
    """A model, with the features that it reads and the way it learns.

    Parameters
    ----------
    features
        The features that make a row.
    model
        The model that is fitted to the rows.
    step_rule
        How far the hyperparameters move.
    coordinates
        Whether positive hyperparameters move in logarithms, or as they are.
    corrects
        Whether the last errors correct the next forecast.
    """

    features: RowMaker
    model: Model[Any]
    step_rule: StepRule
    coordinates: Coordinates = "log"
    corrects: bool = True


def usual_seasons(
    seasons: tuple[Length, ...], step: Length, *, lags: int = 16
) -> tuple[Season, ...]:
    """Return seasons, in ascending order, with what a row usually holds of them.

    Parameters
    ----------
    seasons
        Their lengths.
    step
        The step of the series.
    lags
        Number of deviations from the course of the shortest; there are fewer from longer ones.
    """
    return tuple(
        _usual_season(season, amount(season) / amount(step), lags=lags, shortest=i == 0)
        for i, season in enumerate(seasons)
    )


def _usual_season(season: Length, period: float, *, lags: int, shortest: bool) -> Season:
    usual = Season(
        season_name(season),
        period,
        count=DAYS if shortest else WEEKS,
        lags=lags if shortest else FEW_LAGS,
    )
    if isinstance(season, int):
        return usual
    if season >= LONG:
        apart = max(1, round(period / 120))
        return replace(usual, count=YEARS, beside=round(period / 24 / apart), apart=apart)
    step = season / period
    if step >= FINE:
        return usual
    apart = round(FINE / step)
    return replace(usual, beside=min(3, int(period / 8 / apart)), apart=apart)


def default_preset(
    seasons: tuple[Season, ...], *, lags: int = 16, horizon: int = 1, extras: tuple[str, ...] = ()
) -> Preset:
    """Return the default model for a sensor with these seasons; `lags` counts without any."""
    features = Profiles(seasons, lags=lags, ahead=horizon, extras=extras)
    widths = dict(features.layout.blocks)
    del widths["latest"]
    starts = {"calendar": 0.1, "extras": 0.3, **{f"{each.name}_profile": 0.2 for each in seasons}}
    scales = [
        np.full(width, starts[name]) if name in starts else _fading(width)
        for name, width in widths.items()
    ]
    blocks = tuple(widths)
    matern = Matern(np.concatenate(scales), order=1.5, features=blocks)
    linear = Linear(tuple(name for name in blocks if name != "calendar"))
    model = KernelRidge(Drifting(matern, rate=3e-4) + linear, regularization=2.0)
    return Preset(features, Standardized(model), AdaGradStep(0.1))


def usual_starts(preset: Preset) -> tuple[Vector, ...]:
    """Return where the default model starts, if the preset is that model; else nothing.

    The preset's own start may have been changed.
    """
    own = preset.features
    if not isinstance(own, Profiles):
        return ()
    usual = default_preset(own.seasons, lags=own.lags, horizon=own.ahead, extras=own.extras).model
    here = preset.model.space
    return (usual.space.values,) if usual.space.naming == here.naming else ()


def _fading(lags: int) -> Vector:
    """Return the initial inverse scales of lags: the farther one is, the less it weighs."""
    return np.maximum(0.2 * np.exp(-np.arange(lags) / 5), INVERSE_SCALE_BOUNDS[0])
