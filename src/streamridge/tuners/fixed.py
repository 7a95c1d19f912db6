"""No tuning: hyperparameters stay where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.arrays import Vector
from streamridge.hyperparameters.space import Space
from streamridge.tuners.backtest import Backtest
from streamridge.tuners.base import Tuned, Tuner


@dataclass(frozen=True)
class Fixed(Tuner):
    """A tuner that keeps the hyperparameters it is given, without a single fit."""

    def trials(self, space: Space) -> int:
        return 0

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        return Tuned.of(backtest, start, np.nan)
