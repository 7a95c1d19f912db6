"""The experiment on local regret: lazy updates against time-smoothed follow-the-leader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.experiments.regret.assumptions import (
    measure_bounds,
    measure_constants,
    measure_variation,
)
from streamridge.experiments.regret.game import Game, synthetic_game
from streamridge.experiments.regret.players import (
    Play,
    Progress,
    play_lazily,
    play_leader,
    play_still,
)
from streamridge.experiments.regret.study import Curve, RegretStudy, Size
from streamridge.learners.regret import local_regret
from streamridge.metrics import rmse

# Called with the name of the current work, the steps done, and all its steps.
Tell = Callable[[str, int, int], None]
STILL = "never moves"


def run_regret(size: Size, seed: int, progress: Tell | None = None) -> RegretStudy:
    """Return the local regret of every method on one stream of costs, and measure A1 to A4.

    Parameters
    ----------
    size
        `FULL` takes minutes, `QUICK` less than one.
    seed
        Seed of the series, and of the points where assumptions are measured.
    progress
        Called with the progress of each method.
    """
    tell = progress or (lambda what, done, total: None)
    rng = np.random.default_rng(seed)
    game = synthetic_game(size.train_size, size.steps, rng)
    plays: dict[str, Play] = {}
    curves = []
    for name, player in players(size).items():
        began = thread_time()
        plays[name] = player(game, progress=partial(tell, name))
        seconds = thread_time() - began
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
    """Return a function per method that plays a given game, by name."""
    eta, w = size.learning_rate, size.window
    lazy = {
        lazy_name(m): partial(play_lazily, learning_rate=eta, update_every=m)
        for m in size.update_every
    }
    leader = partial(play_leader, learning_rate=eta, window=w, tolerance=size.tolerance)
    return {**lazy, f"smoothed leader, w = {w}": leader, STILL: play_still}


def lazy_name(update_every: int) -> str:
    """Return the name of lazy descent that moves every m steps."""
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
    """Return the gradients at the points of a play, with a refit before every step."""
    if play.update_every == 1:
        return play.gradients
    fresh = np.empty_like(play.gradients)
    for t, z in enumerate(play.iterates):
        fresh[t] = game.reveal(t, z).gradient
        progress(t + 1, len(fresh))
    return fresh
