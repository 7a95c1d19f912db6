"""Assumptions A1 to A4 measured on a run, and the regret bounds that follow from them.

A measured constant is the largest value seen, not the supremum over C and all steps. The true
constant is at least as large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Vector
from streamridge.experiments.regret.game import Game, Play, Reveal
from streamridge.hyperparameters.sets import Box
from streamridge.learners.regret import gradient_variation, local_regret, projected_gradient
from streamridge.runs.step_loop import StepProgress

# The points of a pair are at least this share of a chord of C apart, and at most the whole chord.
NEAREST = 1e-3


@dataclass(frozen=True)
class Constants:
    """The constants of A1 to A3, measured as the largest values seen."""

    largest_cost: float  # M
    lipschitz: float  # L: the largest norm of a gradient
    smoothness: float  # Q: the largest change of a gradient per distance, anywhere in C
    smoothness_on_path: float  # the same for pairs with one played point
    diameter: float  # D, of C

    @property
    def greatest_rate(self) -> float:
        """Return 2 / Q; the learning rate of Theorem 2 must be below it."""
        return 2 / self.smoothness

    def per_window(self, learning_rate: float) -> float:
        r"""Return the bound $LD / (\eta - Q \eta^2 / 2)$ on a squared projected gradient.

        It is infinite if the learning rate is not below 2 / Q.
        """
        descent = learning_rate - self.smoothness * learning_rate**2 / 2
        return self.lipschitz * self.diameter / descent if descent > 0 else np.inf


@dataclass(frozen=True)
class LazyBounds:
    """The constant of A4, and the regret bounds per step, for one lazy play.

    The bounds have a factor m before their first sum, which the printed bounds lack (`in_print`).
    """

    update_every: int  # m
    variation: float  # V_m: the largest variation of the gradients in a window of the play
    variation_over_set: float  # the same in random windows, at points anywhere in C
    # The share of the regret that comes from variation within windows, which no single point can
    # avoid. It is zero for windows of one step.
    noise_share: float
    proposition: float  # the bound of Proposition 1 divided by T
    proposition_in_print: float
    theorem: float  # the last display of Theorem 2 divided by T; it does not depend on T
    theorem_in_print: float


@dataclass(frozen=True)
class Pair:
    """The cost of one step at two points of C."""

    distance: float
    one: Reveal
    other: Reveal

    @property
    def curvature(self) -> float:
        """Return the change of the gradient per distance between the points."""
        change = self.one.gradient - self.other.gradient
        return float(np.linalg.norm(change)) / self.distance


def measure_constants(
    game: Game, plays: list[Play], pairs: int, rng: np.random.Generator, progress: StepProgress
) -> Constants:
    """Return the constants seen in plays and at random pairs; half of the pairs start at a play."""
    anywhere, on_path = [], []
    played = np.concatenate([play.iterates for play in plays])
    for done in range(0, pairs, 2):
        anywhere.append(_sample_pair(game, random_point(game, rng), rng))
        on_path.append(_sample_pair(game, played[rng.integers(len(played))], rng))
        progress(min(done + 2, pairs), pairs)
    seen = [each for pair in anywhere + on_path for each in (pair.one, pair.other)]
    errors = np.concatenate([[each.error for each in seen], *(play.errors for play in plays)])
    gradients = np.concatenate(
        [[each.gradient for each in seen], *(play.gradients for play in plays)]
    )
    low, high = corners(game)
    curvature_on_path = max(pair.curvature for pair in on_path)
    return Constants(
        largest_cost=float(np.square(errors).max()),
        lipschitz=float(np.linalg.norm(gradients, axis=1).max()),
        smoothness=max(curvature_on_path, *(pair.curvature for pair in anywhere)),
        smoothness_on_path=curvature_on_path,
        diameter=float(np.linalg.norm(high - low)),
    )


def measure_bounds(
    game: Game, play: Play, constants: Constants, learning_rate: float, variation_over_set: float
) -> LazyBounds:
    """Return the gradient variation of a lazy play, and the bounds on its regret per step."""
    m, eta = play.update_every, learning_rate
    variations = gradient_variation(play.gradients, m)
    V = max(float(variations.max()), variation_over_set)
    norms = mean_projections(game, play, eta)
    T, B = m * len(norms), constants.per_window(eta)
    regret = local_regret(play.iterates, play.gradients, eta, game.chart.feasible)[-1]
    rest = 2 * np.sqrt(m * V) * norms.sum() / T + V / m
    worst = 2 * np.sqrt(V * B / m) + V / m
    return LazyBounds(
        update_every=m,
        variation=float(variations.max()),
        variation_over_set=variation_over_set,
        noise_share=float(variations.sum() / regret),
        proposition=float(np.square(norms).sum() * m / T + rest),
        proposition_in_print=float(np.square(norms).sum() / T + rest),
        theorem=float(B + worst),
        theorem_in_print=float(B / m + worst),
    )


def measure_variation(
    game: Game, update_every: int, windows: int, rng: np.random.Generator
) -> float:
    """Return the largest gradient variation in random windows, at points anywhere in C."""
    m = update_every
    starts = rng.integers(game.steps - m + 1, size=windows)
    seen = [game.reveal_window(int(t), m, random_point(game, rng))[1] for t in starts]
    return max(float(gradient_variation(gradients, m)[0]) for gradients in seen)


def mean_projections(game: Game, play: Play, learning_rate: float) -> Vector:
    """Return the norm of the projected mean gradient in every window of a play."""
    m = play.update_every
    means = play.gradients.reshape(-1, m, game.start.size).mean(axis=1)
    return np.array(
        [
            np.linalg.norm(projected_gradient(z, g, learning_rate, game.chart.feasible))
            for z, g in zip(play.iterates[::m], means, strict=True)
        ]
    )


def random_point(game: Game, rng: np.random.Generator) -> Vector:
    """Return a uniformly random point of C."""
    return rng.uniform(*corners(game))


def corners(game: Game) -> tuple[Vector, Vector]:
    """Return the lowest and the highest corner of C, which is a box."""
    boxes = [part for part in game.chart.feasible.parts if isinstance(part, Box)]
    low = np.concatenate([box.low for box in boxes])
    return low, np.concatenate([box.high for box in boxes])


def _sample_pair(game: Game, z: Vector, rng: np.random.Generator) -> Pair:
    """Return the cost of a random step at z, and at a point between z and a random one."""
    t, share = int(rng.integers(game.steps)), NEAREST ** rng.uniform()
    v = z + share * (random_point(game, rng) - z)
    return Pair(float(np.linalg.norm(v - z)), game.reveal(t, z), game.reveal(t, v))
