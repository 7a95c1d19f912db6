"""Ready-made models: what one is, and the default one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError
from streamridge.features.base import RowMaker, made_with, numbers_of
from streamridge.features.profiles import Profiles, Season
from streamridge.hyperparameters.coordinates import Coordinates
from streamridge.kernels.base import Kernel
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.radial import INVERSE_SCALE_BOUNDS, Matern
from streamridge.kernels.remembering import Remembering
from streamridge.learners.steps import AgreementStep, StepRule
from streamridge.models.base import KnowsStart, Model
from streamridge.models.joint import Joint
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.nystrom import NystromRidge
from streamridge.models.standardized import Standardized
from streamridge.series.clock import Length, amount
from streamridge.series.seasons import season_name

# How many of the shortest season a typical value is the mean of, and of longer ones; of years.
COURSES, YEARS = (7, 6), 10
# The rate at which a typical value forgets earlier seasons: where it starts, and how far it may go.
FORGETTING, FORGETTING_BOUNDS = 0.1, (0.01, 2.0)
# Number of deviations from the course of a season that is not the shortest.
FEW_LAGS = 4
# A season of this length has been seen a few times only, and a value at a shorter step than this is
# mostly noise: a typical value is then also one of the times around it.
LONG, FINE = timedelta(days=90), timedelta(minutes=5)
# What landmarks leave of the ridge constant at the start: few of them make forecasts smooth enough.
SMOOTHED = 0.5
# How far hyperparameters move: a rule that finds the size of its moves itself.
RATE_FREE_STEP = AgreementStep()


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

    @cached_property
    def joint(self) -> Model[Any]:
        """Return the model with the numbers of the features among its hyperparameters, if any."""
        numbers = numbers_of(self.features)
        return Joint(self.model, numbers) if numbers.names else self.model

    @cached_property
    def joint_for_searches(self) -> Model[Any]:
        """Return the same, with the numbers of the features held constant."""
        numbers = numbers_of(self.features)
        if not numbers.names:
            return self.model
        held = np.ones(len(numbers.names), dtype=bool)
        return Joint(self.model, numbers.holding(numbers.values, held))

    def starting_at(self, lam: Vector) -> Preset:
        """Return the preset with lam as its initial hyperparameters, those of features last."""
        own = lam[: len(self.model.space.names)]
        if not isinstance(self.model, KnowsStart):
            raise InvalidInputError(
                f"the model must have a start that can be changed, got {self.model!r}."
            )
        features = made_with(self.features, lam)
        return replace(self, model=self.model.starting_at(own), features=features)


def usual_seasons(
    seasons: tuple[Length, ...], step: Length, *, lags: int = 16, courses: tuple[int, int] = COURSES
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
    courses
        How many of the shortest season a typical value is the mean of, and of longer ones.
    """
    return tuple(
        _usual_season(
            season, amount(season) / amount(step), courses[i > 0], lags=lags, shortest=i == 0
        )
        for i, season in enumerate(seasons)
    )


def _usual_season(
    season: Length, period: float, count: int, *, lags: int, shortest: bool
) -> Season:
    usual = Season(
        season_name(season),
        period,
        count=count,
        lags=lags if shortest else FEW_LAGS,
        forgetting=FORGETTING,
        forgetting_bounds=FORGETTING_BOUNDS,
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
    return Preset(features, Standardized(model), RATE_FREE_STEP)


def in_single(preset: Preset) -> Preset:
    """Return the preset with large systems solved in single precision, refined where it matters."""
    whole, exact = _exact(preset)
    return replace(preset, model=replace(whole, model=replace(exact, factor_dtype="float32")))


def on_landmarks(preset: Preset, landmarks: int, rates: tuple[float, ...] = ()) -> Preset:
    """Return the preset with its kernel on so many landmarks, where it is one of kernel ridge.

    A fit, a forecast and the numbers that are kept then cost a fraction of the exact ones, so that
    more of the past can be known. With `rates`, the part of the kernel that forgets gets a memory
    at each of them.
    """
    whole, exact = _exact(preset)
    model = NystromRidge(
        _remembering(exact.kernel, rates) if rates else exact.kernel,
        SMOOTHED * exact.regularization,
        exact.regularization_bounds,
        exact.centered,
        landmarks,
    )
    return replace(preset, model=replace(whole, model=model))


def _exact(preset: Preset) -> tuple[Standardized[Any], KernelRidge]:
    """Return the model of a preset, and the kernel ridge regression in it; raise if it has none."""
    whole = preset.model
    if not isinstance(whole, Standardized) or not isinstance(whole.model, KernelRidge):
        raise InvalidInputError(
            f"preset must be of a standardized kernel ridge regression, got {whole!r}."
        )
    return whole, whole.model


def landmarks_of(preset: Preset) -> int | None:
    """Return how many landmarks the model of a preset has, None if it is not on landmarks."""
    model = preset.model.model if isinstance(preset.model, Standardized) else preset.model
    return model.landmarks if isinstance(model, NystromRidge) else None


def _remembering(kernel: Kernel, rates: tuple[float, ...]) -> Kernel:
    """Return a kernel whose parts that forget at one rate do so at several."""
    if isinstance(kernel, Drifting):
        return Remembering(kernel.kernel, rates, (1 / len(rates),) * len(rates))
    if isinstance(kernel, Mixture):
        parts = tuple(_remembering(part, rates) for part in kernel.kernels)
        return Mixture(parts, kernel.weights, learn_weights=kernel.learn_weights)
    return kernel


def rate_free(preset: Preset) -> Preset:
    """Return the preset with the steps of the default model, which have no rate and no units."""
    return replace(preset, step_rule=RATE_FREE_STEP, coordinates="log")


def usual_starts(preset: Preset) -> tuple[Vector, ...]:
    """Return where the default model starts, if the preset is that model; else nothing.

    The preset's own start may have been changed.
    """
    own = preset.features
    if not isinstance(own, Profiles):
        return ()
    usual = default_preset(own.seasons, lags=own.lags, horizon=own.ahead, extras=own.extras)
    there, here = usual.joint.space, preset.joint.space
    return (there.values,) if there.naming == here.naming else ()


def _fading(lags: int) -> Vector:
    """Return the initial inverse scales of lags: the farther one is, the less it weighs."""
    return np.maximum(0.2 * np.exp(-np.arange(lags) / 5), INVERSE_SCALE_BOUNDS[0])
