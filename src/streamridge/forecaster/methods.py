"""Named methods of commands and comparisons: ways of tuning, naive forecasts, the paper's model.

The paper's model has the settings of section 6.2: as printed, and as in its author's code. The
paper counts 96 steps per day. Its periods and cadences are times here, so they fit any step. The
lags p and the training set N stay numbers of steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, listed, shown
from streamridge.features.lags import Features
from streamridge.forecaster.presets import Preset, rate_free
from streamridge.forecaster.settings import Settings
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD
from streamridge.learners.lazy_descent import ConstantStep
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.standardized import Standardized
from streamridge.series.lengths import DAY, Length
from streamridge.tuners.base import Tuner
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.candidates import Grid, RandomSearch
from streamridge.tuners.hoag import HOAG

# Forecasts without a model: the last reading, and the reading of a week ago.
YARDSTICKS = ("last", "week")
# All methods, in the order of tables.
METHODS = ("ohl", "ohl+", "hoag", "random", "grid", "bayes", "fixed", *YARDSTICKS)


def parse_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named methods, each once; a text may name several, separated by commas.

    Examples
    --------
    >>> parse_methods(["ohl,fixed", "random"])
    ('ohl', 'fixed', 'random')
    """
    return parse_names(names, METHODS)


def parse_names(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the named methods, each once; raise if one of them is unknown."""
    every = names if isinstance(names, Iterable) else [names]
    asked = [
        part.strip().lower() for name in every for part in str(name).split(",") if part.strip()
    ]
    for name in asked:
        if name not in known:
            raise InvalidInputError(f"method must be one of {listed(known)}, got {name!r}.")
    if not asked:
        raise InvalidInputError(f"method must be one of {listed(known)}, got none.")
    return tuple(dict.fromkeys(asked))


def needs_model(method: str) -> bool:
    """Return whether a method uses a model: all methods do, except naive forecasts.

    The name of a second run of a method may end with a number.

    Examples
    --------
    >>> needs_model("ohl"), needs_model("mine"), needs_model("last"), needs_model("week (2)")
    (True, True, False, False)
    """
    return method.partition(" (")[0] not in YARDSTICKS


def tuned_by(method: str, settings: Settings) -> Settings:
    """Return the settings with another method of tuning; naive forecasts tune nothing."""
    (known,) = parse_methods([method])
    if known == "week" and not settings.seasons:
        raise InvalidInputError(
            f"method must be {listed(METHODS[:-1])} for a series without seasons, got 'week'. "
            "Or say its seasons with --seasons (seasons= in Python)."
        )
    tuner = _tuner(known, settings.preset)
    tuned = replace(settings, learn=known != "fixed" and needs_model(known), tuner=tuner)
    if known != "ohl+":
        return tuned
    return replace(tuned, preset=rate_free(settings.preset), start="search")


def starting_at(hyperparameters: Mapping[str, float], settings: Settings) -> Settings:
    """Return the settings with other initial hyperparameters, by name.

    Examples
    --------
    >>> from streamridge.forecaster.forecaster import Forecaster
    >>> off = starting_at({"regularization": 0.01}, Forecaster().settings)
    >>> Forecaster.from_settings(off).hyperparameters["regularization"]
    0.01
    """
    if not hyperparameters:
        return settings
    preset = settings.preset
    space = preset.joint.space
    lam = space.assigned(space.values, hyperparameters)
    return replace(settings, preset=preset.starting_at(lam))


def method_of(settings: Settings) -> str:
    """Return the name of the method of tuning."""
    if not settings.learn:
        return "fixed"
    if settings.tuner is None:
        return "ohl+" if settings.start == "search" else "ohl"
    names = {HOAG: "hoag", RandomSearch: "random", Grid: "grid", Bayesian: "bayes"}
    return names.get(type(settings.tuner), type(settings.tuner).__name__.lower())


def _tuner(method: str, preset: Preset) -> Tuner | None:
    if method == "hoag":
        return HOAG(coordinates=preset.coordinates)
    if method == "random":
        return RandomSearch()
    if method == "bayes":
        return Bayesian()
    if method == "grid":
        # Periods are left out: they have too many local minima for three points.
        groups = preset.model.space.groups
        return Grid(over=tuple(group.name for group in groups if group.kind != "period"))
    return None


# Steps of a day in the paper, also used for an index and for steps of half a day or longer.
STEPS_A_DAY = 96.0
LAGS, TRAIN_SIZE = 20, 2880
LEARNING_RATE = 1e-4
# The author's code divides flows by this; the bounds of inverse scales refer to this unit.
UNIT = 100.0
# Initial values, with the bounds of section 6.2, which the code derives from the initial values.
INVERSE_SCALE, INVERSE_SCALE_BOUNDS = 1.5e-4, (1.5e-6, 1.5e-2)
REGULARIZATION, REGULARIZATION_BOUNDS = 0.3, (0.03, 3.0)
# Days before the first fit: a search fits N = 30 days, and forecasts 30 more. Days of a week.
WARMUP, WEEK = 60, 7


@dataclass(frozen=True)
class Published:
    """The settings of the paper's model in one publication."""

    period: float  # the initial period in days; its bounds are half of it and seven times of it
    # Whether the first fit waits for p more steps, so its first rows have all lags.
    waits_for_lags: bool

    def preset(
        self,
        *,
        lags: int = LAGS,  # p, how many of the latest values a row holds
        day: float = STEPS_A_DAY,
        unit: float = UNIT,  # the unit that readings are divided by
        learn_period: bool = True,  # False keeps the period at its initial value
    ) -> Preset:
        """Return the preset of the paper's model."""
        period = self.period * day
        kernel = Periodic(
            period,
            INVERSE_SCALE,
            period_bounds=(period / 2, 7 * period) if learn_period else None,
            inverse_scale_bounds=INVERSE_SCALE_BOUNDS,
            period_trust=np.inf,
        ) + ARD(
            np.full(lags, INVERSE_SCALE),
            inverse_scales_bounds=INVERSE_SCALE_BOUNDS,
            features=("lags",),
        )
        model = KernelRidge(kernel, REGULARIZATION, REGULARIZATION_BOUNDS)
        return Preset(
            Features(lags),
            Standardized(model, unit=unit),
            ConstantStep(LEARNING_RATE),
            "natural",
            corrects=False,
        )

    def settings(self, step: Length, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a forecaster, with published values for those not given."""
        _require_known(given)
        own = {name: value for name, value in given.items() if value is not None}
        lags = require_count("lags", own.get("lags", LAGS))
        horizon = require_count("horizon", own.get("horizon", 1))
        day = steps_a_day(step)
        published = {
            "train_size": TRAIN_SIZE,
            "update_every": max(round(day), horizon),
            "tune_every": round(WEEK * day),
            "warmup": round(WARMUP * day) + (lags if self.waits_for_lags else 0),
            "guard": False,
            "preset": self.preset(lags=lags, day=day),
        }
        return published | own


PRINTED = Published(period=1.0, waits_for_lags=False)
PROTOTYPE = Published(period=2.0, waits_for_lags=True)
PublishedName = Literal["paper", "paper-prototype"]
PUBLISHED: Mapping[PublishedName, Published] = {"paper": PRINTED, "paper-prototype": PROTOTYPE}


def steps_a_day(step: Length) -> float:
    """Return the steps of a day; the paper's 96 for an index and for steps of half a day or longer.

    Examples
    --------
    >>> from datetime import timedelta
    >>> [steps_a_day(timedelta(minutes=each)) for each in (15, 5, 60)], steps_a_day(1)
    ([96.0, 288.0, 24.0], 96.0)
    """
    if isinstance(step, int) or 2 * step >= DAY:
        return STEPS_A_DAY
    return DAY / step


def _require_known(given: Mapping[str, Any]) -> None:
    """Raise if an argument is given that the paper's model does not support."""
    for name in ("tz", "extras", "holidays", "preset", "model", "budget"):
        if given.get(name):
            raise InvalidInputError(
                f"{name} must be left out with the paper's model, got {shown(given[name])}. "
                "The default model accepts it."
            )
