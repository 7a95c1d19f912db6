"""The experiment on local regret: lazy updates against time-smoothed follow-the-leader.

Every method plays by itself, and its play is kept in a file as soon as it is whole, so that an
experiment that was stopped goes on with the plays that are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import thread_time

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.experiments.regret.assumptions import (
    measure_bounds,
    measure_constants,
    measure_variation,
)
from streamridge.experiments.regret.game import Game, synthetic_game
from streamridge.experiments.regret.kept import Played, read_played, write_played
from streamridge.experiments.regret.players import (
    Play,
    Progress,
    play_lazily,
    play_leader,
    play_still,
)
from streamridge.experiments.regret.study import Curve, RegretStudy, Size
from streamridge.files.names import FileNames
from streamridge.learners.regret import local_regret
from streamridge.metrics import rmse
from streamridge.runs.keeping import prepare

# Called with the name of the current work, the steps done, and all its steps.
Tell = Callable[[str, int, int], None]
STILL = "never moves"
# The folder of plays in that of the experiment.
PLAYS = "plays"


def run_regret(
    size: Size, seed: int, progress: Tell | None = None, folder: Path | None = None
) -> RegretStudy:
    """Return the local regret of every method on one stream of costs, and measure A1 to A4.

    Parameters
    ----------
    size
        `FULL` takes minutes, `QUICK` less than one.
    seed
        Seed of the series, and of the points where assumptions are measured.
    progress
        Called with the progress of each method.
    folder
        Where plays are kept, and found if they are there already; they are not kept by default.
    """
    tell = progress or (lambda what, done, total: None)
    rng = np.random.default_rng(seed)
    game = synthetic_game(size.train_size, size.steps, rng)
    found = {} if folder is None else kept_plays(folder, size, seed)
    played = {}
    for name, player in players(size).items():
        played[name] = found.get(name) or _played(game, name, player, tell)
        if folder is not None and name not in found:
            write_played(_file(folder, name), played[name])
    plays = [each.play for each in played.values()]
    constants = measure_constants(game, plays, size.pairs, rng, partial(tell, "assumptions"))
    bounds = []
    for m in size.update_every:
        over_set = measure_variation(game, m, size.windows, rng)
        play = played[lazy_name(m)].play
        bounds.append(measure_bounds(game, play, constants, size.learning_rate, over_set))
    curves = tuple(_curve(game, name, each, size.learning_rate) for name, each in played.items())
    return RegretStudy(size, seed, curves, constants, tuple(bounds))


def kept_plays(folder: Path, size: Size, seed: int) -> dict[str, Played]:
    """Return the plays that a folder keeps, by method; raise if they are of another experiment."""
    prepare("out", folder / "study.json", folder / PLAYS, {"size": asdict(size), "seed": seed})
    every = {name: read_played(_file(folder, name)) for name in players(size)}
    return {name: played for name, played in every.items() if played is not None}


def _file(folder: Path, name: str) -> Path:
    return folder / PLAYS / f"{FileNames().take(name, '')}.play"


def _played(game: Game, name: str, player: Callable[..., Play], tell: Tell) -> Played:
    """Return the play of a method, with what is measured of it."""
    began = thread_time()
    play = player(game, progress=partial(tell, name))
    seconds = thread_time() - began
    return Played(play, _fresh_gradients(game, play, partial(tell, f"{name}, measured")), seconds)


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


def _curve(game: Game, name: str, played: Played, learning_rate: float) -> Curve:
    play = played.play
    totals = _regret(game, play, play.gradients, learning_rate)
    fresh_totals = _regret(game, play, played.fresh, learning_rate)
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
        seconds=played.seconds,
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
