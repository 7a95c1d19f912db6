"""A search for the hyperparameters from which online learning starts: a few cheap fits.

Random candidates are compared by fits to few rows. The best of them and the given starts then
descend along the exact hyper-gradient, on more rows and with fewer candidates in each round. All
scales of a group move by one common factor, because a few days of errors say too little about each
of them. The result is compared with the start on the latest rows, which were not used before. It is
returned only if it is clearly better there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.hyperparameters.feasible import Chart
from streamridge.hyperparameters.space import Space
from streamridge.models.base import Model
from streamridge.samples import Samples
from streamridge.tuners.base import Backtest, Tuned, split

# Fewer rows than this say too little for a search.
LEAST_ROWS = 240
# Each of the two validation sets takes one of PART rows.
PART = 4
# Number of random candidates, and number of values per group that they are drawn from.
DRAWS, VALUES = 20, 9
# Number of candidates that descend, in addition to the given starts.
DESCENDING = 2
# Rows of the fits that compare candidates, the most rows that small fits forecast, and rows of the
# fits of the final comparison.
FEW_ROWS, FORECAST_ROWS, MOST_ROWS = 240, 480, 1440
# The final comparison tries these points between the start and the result of the search.
BETWEEN = (0.5, 0.75, 1.0)
# A searched start must lower the loss of the given start by this share.
MARGIN = 0.02
# Factors of a coordinate's step after a gradient of the same sign, and of the opposite sign.
LONGER, SHORTER = 1.2, 0.5
# The longest step in logarithms, and the factor of steps of coordinates without logarithms.
LONGEST, PLAIN = 2.0, 0.2


@dataclass(frozen=True)
class Round:
    """One round of descents: rows per fit, number and size of steps, and number of survivors."""

    rows: int
    steps: int
    first: float
    kept: int


ROUNDS = (Round(480, steps=8, first=0.6, kept=2), Round(960, steps=8, first=0.3, kept=1))


@dataclass(frozen=True)
class StartSearch:
    """A search for initial hyperparameters, which sees all samples known so far.

    Cost at N = 2880: about sixty small fits, which take as long as four fits to all rows. The
    candidates do not depend on the given start, which may be far off. Periods are not searched:
    they have too many local minima.
    """

    model: Model[Any]
    others: tuple[Vector, ...] = ()  # starts to try in addition to the given one

    def tune(self, known: Samples, start: Vector, held: Mask, rng: np.random.Generator) -> Tuned:
        """Return initial hyperparameters, no worse on the latest rows than `start`.

        `LEAST_ROWS` samples must be known. Hyperparameters in the mask `held` keep their values
        in `start`. Equal generators give equal results.
        """
        # Periods and held coordinates are constant.
        space = self.model.space.holding(start, held | self.model.space.cycles)
        latest = Backtest(self.model, *split(known, MOST_ROWS, len(known) // PART), space)
        earlier = self._earlier(known, space, rng)
        starts = [start, *self._others(space, start)]
        found = _best_drawn(earlier[0], starts, rng)
        for backtest, each in zip(earlier[1:], ROUNDS, strict=True):
            found = _best_descended(backtest, found, each)
        reached = [_between(space, start, lam, way) for lam in found for way in BETWEEN]
        lam, loss = _clearly_better(latest, start, [*reached, *starts[1:]])
        every = (latest, *earlier)
        fits, gradients = sum(each.fits for each in every), sum(each.gradients for each in every)
        return Tuned(lam, loss, fits, gradients, latest.seconds)

    def _others(self, space: Space, start: Vector) -> list[Vector]:
        """Return the other starts, projected to the space, that differ from the given one."""
        others = [space.feasible.project(other) for other in self.others]
        return [other for other in others if not np.array_equal(other, start)]

    def _earlier(
        self, known: Samples, space: Space, rng: np.random.Generator
    ) -> list[Backtest[Any]]:
        """Return a backtest for the draws and each round, all before the latest rows."""
        count, backtests = len(known), []
        training, validation = split(known[: count - count // PART], count, count // PART)
        for rows in (FEW_ROWS, *(each.rows for each in ROUNDS)):
            few, ahead = _thinned(training, rows, rng), _thinned(validation, FORECAST_ROWS, rng)
            backtests.append(Backtest(self.model, few, ahead, space))
        return backtests


def _thinned(samples: Samples, rows: int, rng: np.random.Generator) -> Samples:
    """Return at most `rows` of the samples, drawn at random, in order of time."""
    if len(samples) <= rows:
        return samples
    return samples[np.sort(rng.choice(len(samples), rows, replace=False))]


def _best_drawn(
    backtest: Backtest[Any], starts: Sequence[Vector], rng: np.random.Generator
) -> list[Vector]:
    """Return the starts, and the best candidates drawn from the whole space."""
    drawn = [_draw(backtest.space, rng) for _ in range(DRAWS)]
    losses = [backtest.loss(lam) for lam in drawn]
    return [*starts, *(drawn[i] for i in np.argsort(losses, kind="stable")[:DESCENDING])]


def _draw(space: Space, rng: np.random.Generator) -> Vector:
    """Return random hyperparameters, equal within each group that has a box, shape (d,)."""
    pieces = []
    for part in space.feasible.parts:
        values = None if part.is_tied else part.grid(VALUES)
        drawn = values[rng.integers(len(values))] if values else part.sample(rng, "log")
        pieces.append(drawn)
    return np.concatenate(pieces)


def _best_descended(backtest: Backtest[Any], starts: Sequence[Vector], each: Round) -> list[Vector]:
    """Return the best points of the descents from several starts, the best first."""
    ends = [_descended(backtest, start, each) for start in starts]
    order = np.argsort([loss for loss, _ in ends], kind="stable")
    return [ends[i][1] for i in order[: each.kept]]


def _descended(backtest: Backtest[Any], start: Vector, each: Round) -> tuple[float, Vector]:
    """Return the least loss of a descent, and its hyperparameters.

    Each coordinate has its own step, against the sign of the gradient. The step grows while the
    sign stays, and shrinks when the sign changes, as in Rprop.
    """
    space = backtest.space
    chart = Chart.log(space.feasible)
    unit = np.where(chart.logged, 1.0, PLAIN)
    z, size, before = chart.encode(start), each.first * unit, np.zeros_like(start)
    least, best = np.inf, start
    for _ in range(each.steps):
        lam = space.feasible.project(chart.decode(z))
        loss, gradient = backtest.loss_and_exact_gradient(lam)
        if loss < least:
            least, best = loss, lam
        slope = np.sign(_tied(space, chart.pull_back(lam, gradient)))
        size = np.minimum(size * LONGER ** (slope * before > 0), LONGEST * unit)
        size = size * SHORTER ** (slope * before < 0)
        before = np.where(slope * before < 0, 0.0, slope)
        z = chart.feasible.project(z - before * size)
    return least, best


def _tied(space: Space, gradient: Vector) -> Vector:
    """Return the gradient of moves that are equal within a box, or that keep the sum of weights."""
    pieces = []
    for group, piece in zip(space.groups, space.pieces(gradient), strict=True):
        tied = group.feasible.is_tied
        pieces.append(piece - piece.mean() if tied else np.full_like(piece, piece.sum()))
    return np.concatenate(pieces)


def _between(space: Space, lam: Vector, other: Vector, way: float) -> Vector:
    """Return the point at a share of the way from `lam` to `other`, in logarithms if positive."""
    chart = Chart.log(space.feasible)
    z, there = chart.encode(lam), chart.encode(other)
    return space.feasible.project(chart.decode((1 - way) * z + way * there))


def _clearly_better(
    backtest: Backtest[Any], start: Vector, candidates: Sequence[Vector]
) -> tuple[Vector, float]:
    """Return the candidate with the least loss and its loss; the start if it is not beaten."""
    losses = [backtest.loss(lam) for lam in candidates]
    of_start, best = backtest.loss(start), int(np.argmin(losses))
    if losses[best] < (1 - MARGIN) * of_start:
        return candidates[best], losses[best]
    return start, of_start
