"""The methods of the traffic study: the paper's methods, four others, and ablations.

An ablation changes one choice that the paper made or left open, to show its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from streamridge.forecaster.methods import PUBLISHED, PublishedName, tuned_by
from streamridge.forecaster.settings import Settings
from streamridge.learners.lazy_descent import AdaGradStep, ConstantStep
from streamridge.runs.tasks import ModelName, model_settings
from streamridge.tuners.base import Tuner
from streamridge.tuners.candidates import RandomSearch
from streamridge.tuners.hoag import HOAG


@dataclass(frozen=True)
class StudyMethod:
    """A method of the study."""

    label: str  # in tables and figures; the paper's name if it has one
    change: Callable[[Settings], Settings]  # settings of the model to settings of the method
    model: ModelName | None = None  # the model of the study by default
    # changes of the paper's preset; see `Published.preset`
    preset: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, model: PublishedName, step: timedelta, **choices: Any) -> Settings:
        """Return the settings of the method; `choices` are settings of the study."""
        ready = model_settings(self.model or model, step, **choices)
        if self.preset:
            ready = replace(ready, preset=PUBLISHED[model].preset(**self.preset))
        return self.change(ready)


def _by(method: str) -> Callable[[Settings], Settings]:
    return partial(tuned_by, method)


def _grid_once(settings: Settings) -> Settings:
    # The paper's FIXED may have been one grid search at the start.
    return replace(tuned_by("grid", settings), tune_every=0)


def _searching(tuner: Tuner) -> Callable[[Settings], Settings]:
    return lambda settings: replace(settings, tuner=tuner)


def _with(**parts: Any) -> Callable[[Settings], Settings]:
    return lambda settings: replace(settings, preset=replace(settings.preset, **parts))


def _early(change: Callable[[Settings], Settings]) -> Callable[[Settings], Settings]:
    # A search uses all data before the first scored step. So does a learner that starts after half
    # of them.
    return lambda settings: replace(change(settings), warmup=settings.warmup // 2)


# This constant step in logarithms moves scales about as fast at first as the paper's step.
LOG_STEP = ConstantStep(1.0)
FIXED_PERIOD = {"learn_period": False}
NATURAL_ADAGRAD = AdaGradStep(1e-3)
# Ten times the default model's step: the paper's start is wrong by a factor of a hundred.
LOG_ADAGRAD: dict[str, Any] = {"coordinates": "log", "step_rule": AdaGradStep(1.0)}

METHODS = {
    "fixed": StudyMethod("FIXED", _by("fixed")),
    "ohl": StudyMethod("OHL", _by("ohl")),
    "ohl+": StudyMethod("OHL+", _by("ohl+")),
    "hoag": StudyMethod("HOAG", _by("hoag")),
    "random": StudyMethod("RDS", _by("random")),
    "grid": StudyMethod("GRID", _grid_once),
    "bayes": StudyMethod("BAYES", _by("bayes")),
    "default": StudyMethod("DEFAULT", _by("ohl"), model="default"),
    "random-uniform": StudyMethod("RDS, uniform", _searching(RandomSearch(spacing="uniform"))),
    "hoag-log": StudyMethod("HOAG, logarithms", _searching(HOAG())),
    "hoag-two": StudyMethod(
        "HOAG, two gradients", _searching(HOAG(coordinates="natural", gradients=2))
    ),
    "ohl-log": StudyMethod("OHL, logarithms", _with(coordinates="log", step_rule=LOG_STEP)),
    "ohl-adagrad": StudyMethod("OHL, AdaGrad", _with(step_rule=NATURAL_ADAGRAD)),
    "ohl-log-adagrad": StudyMethod("OHL, AdaGrad in logarithms", _with(**LOG_ADAGRAD)),
    "ohl-log-adagrad-period": StudyMethod(
        "OHL, AdaGrad in logarithms, period kept", _with(**LOG_ADAGRAD), preset=FIXED_PERIOD
    ),
    "ohl-early": StudyMethod("OHL, a month earlier", _early(_by("ohl"))),
    "ohl-log-adagrad-early": StudyMethod(
        "OHL, AdaGrad in logarithms, a month earlier", _early(_with(**LOG_ADAGRAD))
    ),
    "ohl-period": StudyMethod("OHL, period kept", _by("ohl"), preset=FIXED_PERIOD),
    # The meaning of a start depends on the unit, so FIXED is run in the same units.
    "fixed-unit-10": StudyMethod("FIXED, unit of 10", _by("fixed"), preset={"unit": 10.0}),
    "ohl-unit-10": StudyMethod("OHL, unit of 10", _by("ohl"), preset={"unit": 10.0}),
    "fixed-unit-1000": StudyMethod("FIXED, unit of 1000", _by("fixed"), preset={"unit": 1000.0}),
    "ohl-unit-1000": StudyMethod("OHL, unit of 1000", _by("ohl"), preset={"unit": 1000.0}),
}
PAPER_METHODS = ("fixed", "ohl", "hoag", "random")
