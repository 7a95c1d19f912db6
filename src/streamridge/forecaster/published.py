"""The paper's model with the settings of section 6.2: as printed, and as in its author's code.

The paper counts 96 steps a day. What it means as a time is a time here, so that it fits any step:
the period, and how often a model is fitted and searched for. What it calls time-steps stays a
number of steps: the lags p and the training set N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, shown
from streamridge.features.lags import Features
from streamridge.forecaster.presets import Preset
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD
from streamridge.learners.steps import ConstantStep
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.standardized import Standardized
from streamridge.series.clock import DAY, Length

# Steps of a day in the paper: also those of a "day" of an index, or of steps of half a day or more.
STEPS_A_DAY = 96.0
LAGS, TRAIN_SIZE = 20, 2880
LEARNING_RATE = 1e-4
# The author's code divides flows by this, so that bounds of inverse scales hold in this unit only.
UNIT = 100.0
# Starts, with the bounds of section 6.2. The code has the starts, and its bounds are made of them.
INVERSE_SCALE, INVERSE_SCALE_BOUNDS = 1.5e-4, (1.5e-6, 1.5e-2)
REGULARIZATION, REGULARIZATION_BOUNDS = 0.3, (0.03, 3.0)
# In days: what comes before the first fit. A search fits on N = 30 days, and forecasts as many.
WARMUP, WEEK = 60, 7


@dataclass(frozen=True)
class Published:
    """The settings of the paper's model in one publication.

    Parameters
    ----------
    period
        The initial period in days. It is learned between half of it and seven times of it.
    waits_for_lags
        Whether the first fit waits for p more steps, so that its first rows are whole.
    """

    period: float
    waits_for_lags: bool

    def preset(
        self,
        *,
        lags: int = LAGS,
        day: float = STEPS_A_DAY,
        unit: float = UNIT,
        learn_period: bool = True,
    ) -> Preset:
        """Return the model with its features and its way of learning.

        Parameters
        ----------
        lags
            p, how many of the latest values a row holds.
        day
            The steps of a day.
        unit
            What readings are divided by.
        learn_period
            False keeps the period at its initial value.
        """
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
        """Return the settings of a forecaster: those given, and the published ones for the rest."""
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
    """Return the steps of a day; of an index, and of steps of half a day or more, the paper's 96.

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
    """Raise if a setting is given that the paper's model knows nothing of."""
    for name in ("tz", "extras", "holidays", "preset", "model", "budget"):
        if given.get(name):
            raise InvalidInputError(
                f"{name} must be left out with the paper's model, got {shown(given[name])}. "
                "The default model accepts it."
            )
