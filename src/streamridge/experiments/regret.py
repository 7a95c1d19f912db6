"""The experiment on local regret: lazy updates against time-smoothed follow-the-leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.experiments.assumptions import (
    Constants,
    LazyBounds,
    measure_bounds,
    measure_constants,
    measure_variation,
)
from streamridge.experiments.game import Game, synthetic_game
from streamridge.experiments.players import (
    Play,
    Progress,
    play_lazily,
    play_leader,
    play_still,
)
from streamridge.metrics import rmse
from streamridge.regret import local_regret

# Called with the name of what is going on, how much of it is done, and of how much.
Tell = Callable[[str, int, int], None]
STILL = "never moves"


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

        A bound that does not exist, for the learning rate is too large, is None.
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


def run_regret(size: Size, seed: int, progress: Tell | None = None) -> RegretStudy:
    """Return the local regret of every method on one stream of costs, and A1 to A4 as measured.

    Parameters
    ----------
    size
        `FULL` takes minutes, `QUICK` less than one.
    seed
        Of the series and of the points at which assumptions are measured.
    progress
        Told how far each method is.
    """
    tell = progress or (lambda what, done, total: None)
    rng = np.random.default_rng(seed)
    game = synthetic_game(size.train_size, size.steps, rng)
    plays: dict[str, Play] = {}
    curves = []
    for name, player in players(size).items():
        began = perf_counter()
        plays[name] = player(game, progress=partial(tell, name))
        seconds = perf_counter() - began
        fresh = _fresh_gradients(game, plays[name], partial(tell, f"{name}, measured"))
        curves.append(_curve(game, name, plays[name], fresh, size.learning_rate, seconds))
    constants = measure_constants(
        game, list(plays.values()), size.pairs, rng, partial(tell, "assumptions")
    )
    bounds = []
    for m in size.update_every:
        over_set = measure_variation(game, m, size.windows, rng)
        play = plays[lazy_name(m)]
        bounds.append(measure_bounds(game, play, constants, size.learning_rate, over_set))
    return RegretStudy(size, seed, tuple(curves), constants, tuple(bounds))


def players(size: Size) -> dict[str, Callable[..., Play]]:
    """Return every method by its name, still without a game to play."""
    eta, w = size.learning_rate, size.window
    lazy = {
        lazy_name(m): partial(play_lazily, learning_rate=eta, update_every=m)
        for m in size.update_every
    }
    leader = partial(play_leader, learning_rate=eta, window=w, tolerance=size.tolerance)
    return {**lazy, f"smoothed leader, w = {w}": leader, STILL: play_still}


def lazy_name(update_every: int) -> str:
    """Return the name of lazy descent with m steps between moves."""
    return f"lazy, m = {update_every}"


def _curve(
    game: Game, name: str, play: Play, fresh: Matrix, learning_rate: float, seconds: float
) -> Curve:
    totals = _regret(game, play, play.gradients, learning_rate)
    fresh_totals = _regret(game, play, fresh, learning_rate)
    steps = len(totals)
    times = np.unique(np.geomspace(min(10, steps), steps, 200).astype(np.intp))
    half = steps // 2
    return Curve(
        name=name,
        times=times,
        regret=totals[times - 1] / times,
        fresh_regret=fresh_totals[times - 1] / times,
        late_regret=float((totals[-1] - totals[half - 1]) / (steps - half)),
        refits=play.refits,
        moves=play.moves,
        gradients=play.evaluations,
        rmse=rmse(play.errors),
        seconds=seconds,
    )


def _regret(game: Game, play: Play, gradients: Matrix, learning_rate: float) -> Vector:
    return local_regret(play.iterates, gradients, learning_rate, game.chart.feasible)


def _fresh_gradients(game: Game, play: Play, progress: Progress) -> Matrix:
    """Return the gradients of models refitted before every step, at the points of a play."""
    if play.update_every == 1:
        return play.gradients
    fresh = np.empty_like(play.gradients)
    for t, z in enumerate(play.iterates):
        fresh[t] = game.reveal(t, z).gradient
        progress(t + 1, len(fresh))
    return fresh


def _record(kind: str, value: Curve | Constants | LazyBounds) -> dict[str, Any]:
    return {"kind": kind} | {name: _plain(each) for name, each in asdict(value).items()}


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it: lists for arrays, None for what is not finite."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if isinstance(value, float) and not isfinite(value) else value
