"""What the experiment on local regret takes and what comes of it, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector
from streamridge.experiments.regret.assumptions import Constants, LazyBounds


@dataclass(frozen=True)
class Size:
    """Says how large the experiment is.

    Parameters
    ----------
    train_size, steps
        N and T.
    update_every
        Each m of a lazy play.
    window, tolerance
        How many costs the leader smooths over, and its delta: it descends until its projected
        gradient is at most delta / window.
    learning_rate
        Of every method.
    pairs, windows
        How many pairs of points and windows of gradients are sampled for A1 to A4.
    """

    train_size: int
    steps: int
    pairs: int
    windows: int
    update_every: tuple[int, ...] = (1, 12, 96)
    window: int = 12
    tolerance: float = 0.1
    # About 1 / Q as measured, where the bound of Theorem 2 is least.
    learning_rate: float = 2.0


FULL = Size(train_size=192, steps=9600, pairs=4000, windows=400)
QUICK = Size(train_size=96, steps=960, pairs=400, windows=40)
SIZES = (FULL, QUICK)


@dataclass(frozen=True)
class Curve:
    """Is how a method fared.

    Parameters
    ----------
    name
        The method.
    times
        (n,), some numbers of steps T, evenly spread over their logarithm.
    regret
        (n,), R_T / T at these T, on the costs of the models that the method had in force.
    fresh_regret
        (n,), the same at the same points on the costs of models refitted before every step, which
        are the same costs for all methods.
    late_regret
        Regret per step in the second half of the run, where the start is forgotten.
    refits, moves, gradients
        How many fits were made, how often the point moved, how many gradients were computed.
    rmse
        Of the forecasts, in standard deviations of the series.
    seconds
        What the play took, with no measuring beside it.
    """

    name: str
    times: NDArray[np.intp]
    regret: Vector
    fresh_regret: Vector
    late_regret: float
    refits: int
    moves: int
    gradients: int
    rmse: float
    seconds: float


@dataclass(frozen=True)
class RegretStudy:
    """Is what came of the experiment: a curve per method, and the assumptions as measured."""

    size: Size
    seed: int
    curves: tuple[Curve, ...]
    constants: Constants
    bounds: tuple[LazyBounds, ...]

    def records(self) -> list[dict[str, Any]]:
        """Return one plain record per method, one of the constants, and one per lazy bound.

        A bound that does not exist, for the learning rate is too large, is infinite.
        """
        rate = {
            "learning_rate": self.size.learning_rate,
            "greatest_rate": self.constants.greatest_rate,
        }
        return [
            *(_record("method", each) for each in self.curves),
            _record("constants", self.constants) | rate,
            *(_record("bounds", each) for each in self.bounds),
        ]


def _record(kind: str, value: Curve | Constants | LazyBounds) -> dict[str, Any]:
    plain = {
        name: each.tolist() if isinstance(each, np.ndarray) else each
        for name, each in asdict(value).items()
    }
    return {"kind": kind, **plain}
