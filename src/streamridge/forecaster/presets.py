"""Presets: a model with its features and its step rule, and the default preset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.features.base import FeatureSet, parameter_space, with_parameters
from streamridge.features.profiles import Profiles
from streamridge.features.seasons import Season
from streamridge.hyperparameters.feasible import Coordinates
from streamridge.kernels.base import Kernel
from streamridge.kernels.drifting import Drifting, Remembering
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.radial import INVERSE_SCALE_BOUNDS, Matern
from streamridge.learners.lazy_descent import AgreementStep, StepRule, require_pull
from streamridge.models.base import Model
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.nystrom import NystromRidge
from streamridge.models.standardized import Joint, Standardized
from streamridge.series.lengths import Length, amount, season_name

# Past seasons in a seasonal profile: of the shortest season, of longer seasons, and of years.
PROFILE_SEASONS, YEARS = (28, 12), 10
# The initial rates at which a seasonal profile forgets earlier seasons (of the shortest season, and
# of longer seasons), and the bounds of all rates.
FORGETTING, FORGETTING_BOUNDS = (0.1, 0.05), (0.01, 2.0)
# Number of deviations from the profile of a season that is not the shortest.
FEW_LAGS = 4
# Seasons of this length were seen a few times only. Values at shorter steps than this are mostly
# noise. In both cases a profile also uses the times around a step.
LONG, FINE = timedelta(days=90), timedelta(minutes=5)
# Factor of the initial ridge constant with landmarks: few landmarks make forecasts smooth enough.
SMOOTHED = 0.5
# Training rows per row of the fit that gradients of large models are computed with. On eight roads
# half of the rows and landmarks took a quarter off the cost of a day, for 0.2 % more RMSE.
GRADIENT_SHARE = 2
# The default step rule, which needs no learning rate.
RATE_FREE_STEP = AgreementStep()
# The share of the distance from the usual hyperparameters that each window undoes. It was chosen on
# ten roads: 0.02, 0.03, 0.05 and 0.12 have 0.9973, 0.9963, 0.9971 and 0.9984 of the RMSE of none.
PULL = 0.03


@dataclass(frozen=True)
class Preset:
    """A model with its features and its way of learning.

    Parameters
    ----------
    features
        The features of a row.
    model
        The model that is fitted to the rows.
    step_rule
        How far the hyperparameters move.
    coordinates
        "log" moves positive hyperparameters in logarithms, "natural" in their own units.
    corrects
        Whether the last errors correct the next forecast.
    gradient_share
        Training rows per row of the fit that gradients are computed with, if the training set is
        large; the fit has fewer landmarks in proportion, and learns from every third window. None
        uses all rows in every window.
    pull
        The share of the distance from the usual hyperparameters that each window undoes. So
        hyperparameters that hardly matter stay near their usual values.
    usual
        The usual hyperparameters, those of the features last; None for the initial ones.
    """

    features: FeatureSet
    model: Model[Any]
    step_rule: StepRule
    coordinates: Coordinates = "log"
    corrects: bool = True
    gradient_share: int | None = None
    pull: float = 0.0
    usual: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require_pull(self.pull)
        if self.usual is None:
            return
        usual, space = require_finite("usual", self.usual), self.joint.space
        require_shape("usual", usual, (len(space.names),))
        if not space.feasible.contains(usual):
            raise InvalidInputError(
                f"usual must lie within the bounds of the model, got {usual.tolist()}. "
                "Leave it out to use the initial values of the model."
            )
        object.__setattr__(self, "usual", tuple(usual.tolist()))

    @property
    def usual_values(self) -> Vector:
        """Return the hyperparameters that tuning is pulled towards, shape (d,)."""
        return self.joint.space.values if self.usual is None else np.array(self.usual)

    @cached_property
    def joint(self) -> Model[Any]:
        """Return the model with the parameters of the features among its hyperparameters."""
        numbers = parameter_space(self.features)
        return Joint(self.model, numbers) if numbers.names else self.model

    @cached_property
    def joint_for_searches(self) -> Model[Any]:
        """Return `joint` with the parameters of the features held constant."""
        numbers = parameter_space(self.features)
        if not numbers.names:
            return self.model
        held = np.ones(len(numbers.names), dtype=bool)
        return Joint(self.model, numbers.holding(numbers.values, held))

    def starting_at(self, lam: Vector) -> Preset:
        """Return the preset with lam as its initial hyperparameters; the usual ones stay.

        Constant hyperparameters have no other usual value.
        """
        own = lam[: len(self.model.space.names)]
        features = with_parameters(self.features, lam)
        started = replace(self, model=self.model.starting_at(own), features=features, usual=None)
        usual = started.joint.space.feasible.project(self.usual_values)
        return replace(started, usual=tuple(usual.tolist()))


def seasonal_features(
    seasons: tuple[Length, ...],
    step: Length,
    *,
    # Number of deviations from the profile of the shortest season; longer ones have fewer.
    lags: int = 16,
    # The number of past seasons in a profile: of the shortest season, and of longer seasons.
    counts: tuple[int, int] = PROFILE_SEASONS,
) -> tuple[Season, ...]:
    """Return seasons, in ascending order, with the default features of each."""
    return tuple(
        _default_season(
            season, amount(season) / amount(step), counts[i > 0], lags=lags, shortest=i == 0
        )
        for i, season in enumerate(seasons)
    )


def _default_season(
    season: Length, period: float, count: int, *, lags: int, shortest: bool
) -> Season:
    usual = Season(
        season_name(season),
        period,
        count=count,
        lags=lags if shortest else FEW_LAGS,
        forgetting=FORGETTING[not shortest],
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
    """Return the default preset for a sensor with these seasons; `lags` applies without any."""
    ahead = horizon if extras else 1
    features = Profiles(seasons, lags=lags, ahead=horizon, extras=extras, extras_ahead=ahead)
    return profile_preset(features)


def profile_preset(features: Profiles) -> Preset:
    """Return the default model on features of seasonal profiles."""
    seasons, widths = features.seasons, dict(features.layout.blocks)
    del widths["latest"]
    # An extra column weighs the same in the kernel, however many steps ahead it is known.
    starts = {"calendar": 0.1, "extras": 0.3 / features.extras_ahead}
    starts |= {f"{each.name}_profile": 0.2 for each in seasons}
    scales = [
        np.full(width, starts[name]) if name in starts else _fading(width)
        for name, width in widths.items()
    ]
    blocks = tuple(widths)
    matern = Matern(np.concatenate(scales), order=1.5, features=blocks)
    linear = Linear(tuple(name for name in blocks if name != "calendar"))
    model = KernelRidge(Drifting(matern, rate=3e-4) + linear, regularization=2.0)
    return Preset(features, Standardized(model), RATE_FREE_STEP, pull=PULL)


def on_landmarks(preset: Preset, landmarks: int, rates: tuple[float, ...] = ()) -> Preset:
    """Return a preset of kernel ridge regression with its kernel on landmarks.

    Fits, forecasts and saved numbers then cost a fraction, so more of the past can be used. With
    `rates`, the forgetting part of the kernel gets one memory per rate.
    """
    whole, exact = _exact(preset)
    model = NystromRidge(
        _remembering(exact.kernel, rates) if rates else exact.kernel,
        SMOOTHED * exact.regularization,
        exact.regularization_bounds,
        exact.centered,
        landmarks,
    )
    whole = replace(whole, model=model)
    return replace(preset, model=whole, gradient_share=GRADIENT_SHARE, usual=None)


def _exact(preset: Preset) -> tuple[Standardized[Any], KernelRidge]:
    """Return the model of a preset, and the kernel ridge regression inside it."""
    whole = preset.model
    if not isinstance(whole, Standardized) or not isinstance(whole.model, KernelRidge):
        raise InvalidInputError(
            f"preset must have a standardized kernel ridge regression, got {whole!r}."
        )
    return whole, whole.model


def landmarks_of(preset: Preset) -> int | None:
    """Return the number of landmarks of a preset's model; None without landmarks."""
    model = preset.model.model if isinstance(preset.model, Standardized) else preset.model
    return model.landmarks if isinstance(model, NystromRidge) else None


def _remembering(kernel: Kernel, rates: tuple[float, ...]) -> Kernel:
    """Return a kernel whose forgetting parts have several rates instead of one."""
    if isinstance(kernel, Drifting):
        return Remembering(kernel.kernel, rates, (1 / len(rates),) * len(rates))
    if isinstance(kernel, Mixture):
        parts = tuple(_remembering(part, rates) for part in kernel.kernels)
        return Mixture(parts, kernel.weights, learn_weights=kernel.learn_weights)
    return kernel


def rate_free(preset: Preset) -> Preset:
    """Return the preset with the default step rule, which has no rate and no units."""
    return replace(preset, step_rule=RATE_FREE_STEP, coordinates="log")


def _fading(lags: int) -> Vector:
    """Return the initial inverse scales of lags, which decrease with the distance."""
    return np.maximum(0.2 * np.exp(-np.arange(lags) / 5), INVERSE_SCALE_BOUNDS[0])
