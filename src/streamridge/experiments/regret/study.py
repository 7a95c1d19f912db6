"""The sizes and the results of the experiment on local regret, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector
from streamridge.experiments.regret.assumptions import Constants, LazyBounds


@dataclass(frozen=True)
class Size:
    """The size of the experiment.

    Parameters
    ----------
    train_size, steps
        N and T.
    update_every
        The values of m, one per lazy play.
    window, tolerance
        The number of costs that the leader smooths over, and its delta: it descends until its
        projected gradient is at most delta / window.
    learning_rate
        The learning rate of every method.
    pairs, windows
        The numbers of random pairs of points, and of random windows, that measure A1 to A4.
    """

    train_size: int
    steps: int
    pairs: int
    windows: int
    update_every: tuple[int, ...] = (1, 12, 96)
    window: int = 12
    tolerance: float = 0.1
    # About 1 / Q as measured; there the bound of Theorem 2 is smallest.
    learning_rate: float = 2.0


FULL = Size(train_size=192, steps=9600, pairs=4000, windows=400)
QUICK = Size(train_size=96, steps=960, pairs=400, windows=40)
SIZES = (FULL, QUICK)


@dataclass(frozen=True)
class Curve:
    """The regret and the costs of one method.

    Parameters
    ----------
    name
        The method.
    times
        (n,), some numbers of steps T, evenly spread on a logarithmic scale.
    regret
        (n,), R_T / T at these T, on the costs of the models that the method used.
    fresh_regret
        (n,), the same at the same points, but on the costs of models refitted before every step.
        These costs are the same for all methods.
    late_regret
        Regret per step in the second half of the run, which no longer depends on the start.
    refits, moves, gradients
        Number of fits, of moves of the point, and of computed gradients.
    rmse
        RMSE of the forecasts, in standard deviations of the series.
    seconds
        CPU time of the play, without the measurements.
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
    """The results of the experiment: a curve per method, and the measured constants and bounds."""

    size: Size
    seed: int
    curves: tuple[Curve, ...]
    constants: Constants
    bounds: tuple[LazyBounds, ...]

    def records(self) -> list[dict[str, Any]]:
        """Return one plain record per method, one of the constants, and one per lazy play's bounds.

        If the learning rate is too large, there is no bound, and its value is infinite.
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
