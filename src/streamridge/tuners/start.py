"""A search for the hyperparameters from which online learning starts: a few cheap fits.

Random candidates are compared by fits to few rows. The best of them, and the starts that are given,
then descend along the exact hyper-gradient, on more rows and fewer at a time. All scales of a group
move by one common factor, since a few days of errors say too little about each one alone. What
comes out is compared with the start on the latest rows, which nothing before has seen, and is taken
only if it is clearly better there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.hyperparameters.coordinates import Chart
from streamridge.hyperparameters.feasible import Part
from streamridge.hyperparameters.space import Space
from streamridge.models.base import Model
from streamridge.samples import Samples
from streamridge.tuners.backtest import Backtest, split
from streamridge.tuners.base import Tuned

# Fewer rows than this say too little for a search.
LEAST_ROWS = 240
# The part of the rows that each of the two validation sets takes.
PART = 4
# Candidates that are drawn, each on one of so many values between the bounds of a group.
DRAWS, VALUES = 20, 9
# How many of them descend, beside the given starts.
DESCENDING = 2
# Rows of the fits that compare these candidates, rows that small fits forecast at most, and rows of
# the fits that make the last decision.
FEW_ROWS, FORECAST_ROWS, MOST_ROWS = 240, 480, 1440
# The last decision is between the start, what was found, and points on the way there.
ON_THE_WAY = (0.5, 0.75, 1.0)
# A searched start must lower the loss of the given one by this share.
MARGIN = 0.02
# Factors of a coordinate's step after a gradient of the same sign, and after one of the other sign.
LONGER, SHORTER = 1.2, 0.5
# The longest step, in logarithms, and how much shorter the steps of other coordinates are.
LONGEST, PLAIN = 2.0, 0.2


@dataclass(frozen=True)
class Round:
    """One round of descents: the rows of a fit, the number and size of steps, and how many stay."""

    rows: int
    steps: int
    first: float
    kept: int


ROUNDS = (Round(480, steps=8, first=0.6, kept=2), Round(960, steps=8, first=0.3, kept=1))


@dataclass(frozen=True)
class StartSearch:
    """A search for hyperparameters to start from, which sees all samples known so far.

    Parameters
    ----------
    model
        The model that is fitted.
    others
        Starts to try beside the one that is given, shape (d,) each.

    Notes
    -----
    Cost at N = 2880: about sixty small fits, which take as long as four fits to all rows. The
    candidates do not depend on the given start, which may be far off. Cycles stay where they are:
    a period has too many local minima.
    """

    model: Model[Any]
    others: tuple[Vector, ...] = ()

    def tune(self, known: Samples, start: Vector, held: Mask, rng: np.random.Generator) -> Tuned:
        """Return the hyperparameters to start from, no worse on the latest rows than `start`.

        Parameters
        ----------
        known
            At least `LEAST_ROWS` samples.
        start
            (d,), where learning would start without a search.
        held
            (d,), mask of the hyperparameters that keep the value that they have in `start`.
        rng
            Source of random draws; equal ones give equal results.
        """
        space = self._searched(start, held)
        latest = Backtest(self.model, *split(known, MOST_ROWS, len(known) // PART), space)
        earlier = self._earlier(known, space, rng)
        starts = [start, *self._others(space, start)]
        found = _best_drawn(earlier[0], starts, rng)
        for backtest, each in zip(earlier[1:], ROUNDS, strict=True):
            found = _best_descended(backtest, found, each)
        reached = [_between(space, start, lam, way) for lam in found for way in ON_THE_WAY]
        lam, loss = _clearly_better(latest, start, [*reached, *starts[1:]])
        every = (latest, *earlier)
        fits, gradients = sum(each.fits for each in every), sum(each.gradients for each in every)
        return Tuned(lam, loss, fits, gradients, latest.seconds)

    def _others(self, space: Space, start: Vector) -> list[Vector]:
        """Return the other starts that differ from the given one, in the space to search."""
        others = [space.feasible.project(other) for other in self.others]
        return [other for other in others if not np.array_equal(other, start)]

    def _searched(self, start: Vector, held: Mask) -> Space:
        """Return the space to search, in which cycles and what is held are constant."""
        return self.model.space.holding(start, held | self.model.space.cycles)

    def _earlier(
        self, known: Samples, space: Space, rng: np.random.Generator
    ) -> list[Backtest[Any]]:
        """Return a backtest for the draws and each round, all before the latest rows."""
        count = len(known)
        training, validation = split(known[: count - count // PART], count, count // PART)
        return [
            Backtest(
                self.model,
                _thinned(training, rows, rng),
                _thinned(validation, FORECAST_ROWS, rng),
                space,
            )
            for rows in (FEW_ROWS, *(each.rows for each in ROUNDS))
        ]


def _thinned(samples: Samples, rows: int, rng: np.random.Generator) -> Samples:
    """Return so many of the samples, drawn at random, in order of time; all if there are fewer."""
    if len(samples) <= rows:
        return samples
    return samples[np.sort(rng.choice(len(samples), rows, replace=False))]


def _best_drawn(
    backtest: Backtest[Any], starts: Sequence[Vector], rng: np.random.Generator
) -> list[Vector]:
    """Return the starts, and the best of the candidates that are drawn over the whole space."""
    drawn = [_draw(backtest.space, rng) for _ in range(DRAWS)]
    losses = [backtest.loss(lam) for lam in drawn]
    return [*starts, *(drawn[i] for i in np.argsort(losses, kind="stable")[:DESCENDING])]


def _draw(space: Space, rng: np.random.Generator) -> Vector:
    """Return random hyperparameters, equal within each group that has a box, shape (d,)."""
    return np.concatenate([_drawn_part(part, rng) for part in space.feasible.parts])


def _drawn_part(part: Part, rng: np.random.Generator) -> Vector:
    if part.is_tied:
        return part.sample(rng, "log")
    values = part.grid(VALUES)
    return values[rng.integers(len(values))]


def _best_descended(backtest: Backtest[Any], starts: Sequence[Vector], each: Round) -> list[Vector]:
    """Return the best points of the descents from several starts, the best first."""
    ends = [_descended(backtest, start, each) for start in starts]
    order = np.argsort([loss for loss, _ in ends], kind="stable")
    return [ends[i][1] for i in order[: each.kept]]


def _descended(backtest: Backtest[Any], start: Vector, each: Round) -> tuple[float, Vector]:
    """Return the least loss of a descent, and where it is; each coordinate has its own step.

    A step goes against the sign of the gradient. It grows while the sign stays, and shrinks when
    the sign changes, as in Rprop.
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
    """Return the gradient of moves that are the same for a whole box, or that keep a sum."""
    pieces = zip(space.groups, space.pieces(gradient), strict=True)
    return np.concatenate(
        [
            piece - piece.mean() if group.feasible.is_tied else np.full_like(piece, piece.sum())
            for group, piece in pieces
        ]
    )


def _between(space: Space, lam: Vector, other: Vector, way: float) -> Vector:
    """Return the point at a share of the way between two, in logarithms where there are any."""
    chart = Chart.log(space.feasible)
    z, there = chart.encode(lam), chart.encode(other)
    return space.feasible.project(chart.decode((1 - way) * z + way * there))


def _clearly_better(
    backtest: Backtest[Any], start: Vector, candidates: Sequence[Vector]
) -> tuple[Vector, float]:
    """Return the candidate with the least loss, and the loss; the start unless it is beaten."""
    losses = [backtest.loss(lam) for lam in candidates]
    of_start, best = backtest.loss(start), int(np.argmin(losses))
    if losses[best] < (1 - MARGIN) * of_start:
        return candidates[best], losses[best]
    return start, of_start
