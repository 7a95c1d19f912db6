"""The study of local regret: lazy updates against time-smoothed follow-the-leader.

The play of every method is stored in a file when it is complete, so that an interrupted study
continues with the missing plays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import StateError
from streamridge.experiments.regret.assumptions import (
    Constants,
    LazyBounds,
    measure_bounds,
    measure_constants,
    measure_variation,
)
from streamridge.experiments.regret.game import (
    Game,
    Play,
    play_lazily,
    play_leader,
    play_still,
    synthetic_game,
)
from streamridge.files.checkpoint import read_checkpoint, write_checkpoint
from streamridge.learners.regret import local_regret
from streamridge.metrics import rmse
from streamridge.runs.run_folder import prepare_folder
from streamridge.runs.step_loop import StepProgress

# Called with the name of the current work, and the numbers of finished and of all steps.
NamedProgress = Callable[[str, int, int], None]
NEVER_MOVES = "never moves"
# The folder of plays within the folder of the study.
PLAYS = "plays"
# The contents of the file of a play.
KIND = "play"
ARRAYS = ("iterates", "gradients", "errors")
COUNTS = ("refits", "evaluations", "moves", "update_every")


@dataclass(frozen=True)
class RegretSize:
    """The size of the study of local regret."""

    train_size: int  # N
    steps: int  # T
    pairs: int  # number of random pairs of points that measure A1 to A3
    windows: int  # number of random windows that measure A4
    update_every: tuple[int, ...] = (1, 12, 96)  # the values of m, one per lazy play
    window: int = 12  # the number of costs that the leader averages
    # The leader descends until its projected gradient is at most tolerance / window.
    tolerance: float = 0.1
    # About 1 / Q as measured; there the bound of Theorem 2 is smallest.
    learning_rate: float = 2.0


FULL = RegretSize(train_size=192, steps=9600, pairs=4000, windows=400)
QUICK = RegretSize(train_size=96, steps=960, pairs=400, windows=40)
SIZES = (FULL, QUICK)


@dataclass(frozen=True)
class Curve:
    """The regret and the costs of one method."""

    name: str
    times: NDArray[np.intp]  # (n,), numbers of steps T, evenly spaced on a logarithmic scale
    regret: Vector  # (n,), R_T / T for the costs of the models that the method used
    # (n,), the same at the same points, for models that are refitted before every step. These
    # costs are the same for all methods.
    fresh_regret: Vector
    # Per step in the second half of the play, after the effect of the start has faded.
    late_regret: float
    refits: int
    moves: int
    gradients: int  # number of computed gradients
    rmse: float  # in standard deviations of the series
    seconds: float  # CPU time of the play, without the measurements


@dataclass(frozen=True)
class RegretResults:
    """The results of the experiment: a curve per method, and the measured constants and bounds."""

    size: RegretSize
    seed: int
    curves: tuple[Curve, ...]
    constants: Constants
    bounds: tuple[LazyBounds, ...]

    def records(self) -> list[dict[str, Any]]:
        """Return records: one per method, one of the constants, and one per lazy play's bounds.

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


@dataclass(frozen=True)
class MeasuredPlay:
    """A play with measurements."""

    play: Play
    # (T, d), the gradients at its points on models that are refitted before every step
    fresh: Matrix
    seconds: float  # CPU time of the play, without the measurements


def write_play(path: Path, measured: MeasuredPlay) -> None:
    """Write a play to a file."""
    counts = {name: getattr(measured.play, name) for name in COUNTS}
    arrays = {name: getattr(measured.play, name) for name in ARRAYS}
    header = {"kind": KIND, "seconds": measured.seconds, **counts}
    write_checkpoint(path, header, {**arrays, "fresh": measured.fresh})


def read_play(path: Path) -> MeasuredPlay | None:
    """Return the play of a file, or None if there is no such file."""
    if not path.exists():
        return None
    try:
        header, arrays = read_checkpoint(path)
        if header.get("kind") != KIND:
            raise StateError(f"{path} must hold a play, got {header.get('kind')!r}.")
    except StateError as error:
        raise StateError(f"{error} Or remove the file, and run the command again.") from None
    parts = {name: arrays[name] for name in ARRAYS} | {name: header[name] for name in COUNTS}
    return MeasuredPlay(Play(**parts), arrays["fresh"], header["seconds"])


def run_regret(
    size: RegretSize, seed: int, progress: NamedProgress | None = None, folder: Path | None = None
) -> RegretResults:
    """Return the local regret of every method on one stream of costs, and measure A1 to A4.

    The seed is of the series, and of the points where assumptions are measured. Stored plays of the
    folder are not repeated; without a folder plays are not stored.
    """
    report = progress or (lambda name, done, total: None)
    rng = np.random.default_rng(seed)
    game = synthetic_game(size.train_size, size.steps, rng)
    stored = {} if folder is None else stored_plays(folder, size, seed)
    measured = {}
    for name, player in players(size).items():
        measured[name] = stored.get(name) or _measured_play(game, name, player, report)
        if folder is not None and name not in stored:
            write_play(_file(folder, name), measured[name])
    plays = [each.play for each in measured.values()]
    constants = measure_constants(game, plays, size.pairs, rng, partial(report, "assumptions"))
    bounds = []
    for m in size.update_every:
        over_set = measure_variation(game, m, size.windows, rng)
        play = measured[lazy_name(m)].play
        bounds.append(measure_bounds(game, play, constants, size.learning_rate, over_set))
    curves = tuple(_curve(game, name, each, size.learning_rate) for name, each in measured.items())
    return RegretResults(size, seed, curves, constants, tuple(bounds))


def stored_plays(folder: Path, size: RegretSize, seed: int) -> dict[str, MeasuredPlay]:
    """Return the stored plays of a folder by method; raise if they belong to another study."""
    prepare_folder(
        "out", folder / "study.json", folder / PLAYS, {"size": asdict(size), "seed": seed}
    )
    plays = {name: read_play(_file(folder, name)) for name in players(size)}
    return {name: play for name, play in plays.items() if play is not None}


def _file(folder: Path, name: str) -> Path:
    words = re.findall(r"\w+", name)
    return folder / PLAYS / f"{'_'.join(words)}.play"


def _measured_play(
    game: Game, name: str, player: Callable[..., Play], report: NamedProgress
) -> MeasuredPlay:
    """Return the play of a method with its measurements."""
    start = thread_time()
    play = player(game, progress=partial(report, name))
    seconds = thread_time() - start
    return MeasuredPlay(
        play, _fresh_gradients(game, play, partial(report, f"{name}, measured")), seconds
    )


def players(size: RegretSize) -> dict[str, Callable[..., Play]]:
    """Return the functions that play a game, by the name of the method."""
    eta, w = size.learning_rate, size.window
    lazy = {
        lazy_name(m): partial(play_lazily, learning_rate=eta, update_every=m)
        for m in size.update_every
    }
    leader = partial(play_leader, learning_rate=eta, window=w, tolerance=size.tolerance)
    return {**lazy, f"smoothed leader, w = {w}": leader, NEVER_MOVES: play_still}


def lazy_name(update_every: int) -> str:
    """Return the name of lazy descent with moves every m steps."""
    return f"lazy, m = {update_every}"


def _curve(game: Game, name: str, measured: MeasuredPlay, learning_rate: float) -> Curve:
    play = measured.play
    totals = _regret(game, play, play.gradients, learning_rate)
    fresh_totals = _regret(game, play, measured.fresh, learning_rate)
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
        seconds=measured.seconds,
    )


def _regret(game: Game, play: Play, gradients: Matrix, learning_rate: float) -> Vector:
    return local_regret(play.iterates, gradients, learning_rate, game.chart.feasible)


def _fresh_gradients(game: Game, play: Play, progress: StepProgress) -> Matrix:
    """Return the gradients at the points of a play, with a refit before every step."""
    if play.update_every == 1:
        return play.gradients
    fresh = np.empty_like(play.gradients)
    for t, z in enumerate(play.iterates):
        fresh[t] = game.reveal(t, z).gradient
        progress(t + 1, len(fresh))
    return fresh


def _record(kind: str, value: Curve | Constants | LazyBounds) -> dict[str, Any]:
    plain = {
        name: each.tolist() if isinstance(each, np.ndarray) else each
        for name, each in asdict(value).items()
    }
    return {"kind": kind, **plain}
