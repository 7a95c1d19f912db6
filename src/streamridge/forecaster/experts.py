"""The experts of a forecaster: several forecasts of each step, and how far each is trusted.

All experts form committees: one that follows changes within a day, one within days, one within
weeks. A vote between the model and the committees decides how much of each is used: where the model
is right, it costs next to nothing to have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.forecaster.aggregation import MLPoly
from streamridge.learners.state import joined, part

# In days: how long each of the committees remembers, and the vote.
COMMITTEE_DAYS, VOTE_DAYS = (1, 4, 16), 7


@dataclass(frozen=True)
class Experts:
    """Forecasts of several kinds, by name, and what each of them has earned.

    Parameters
    ----------
    names
        (K,), the model's first.
    committees
        The weights among all experts, by each of G committees.
    vote
        The weights of the model and of the committees.
    """

    names: tuple[str, ...]
    committees: MLPoly
    vote: MLPoly

    @classmethod
    def start(cls, names: tuple[str, ...], horizon: int, day: int) -> Experts:
        """Return the state before any error is known: the model is trusted alone.

        Parameters
        ----------
        names
            The names of the experts, the model's first.
        horizon
            H, how many steps are forecast.
        day
            The steps of a day, or what counts as one.
        """
        memories = tuple(float(days * day) for days in COMMITTEE_DAYS)
        even, model = np.full(len(names), 1 / len(names)), np.eye(1 + len(memories))[0]
        return cls(
            names,
            MLPoly.start(horizon, even, memories),
            MLPoly.start(horizon, model, (float(VOTE_DAYS * day),), lead=model),
        )

    @property
    def horizon(self) -> int:
        """Return how many steps are forecast."""
        return self.vote.largest.shape[1]

    @property
    def count(self) -> int:
        """Return how many committees there are."""
        return len(self.committees.terms.memories)

    def weights(self, awake: Mask | None = None) -> Matrix:
        """Return the weights of the experts, (H, K), given who has a forecast; by default all."""
        voters = None
        if awake is not None:
            voters = np.ones(1 + self.count, dtype=bool)
            voters[0] = awake[0]
        voted, within = self.vote.weights(voters)[0], self.committees.weights(awake)
        if len(voted) == 1:  # as a rule: one horizon is one product
            weights = voted[:, 1:].dot(within[:, 0])
        else:
            weights = np.einsum("hg,ghk->hk", voted[:, 1:], within)
        weights[:, 0] += voted[:, 0]
        return weights

    def heard(self, opinions: Matrix) -> Matrix:
        """Return forecasts, (K, H), with those of the committees, (K + G, H)."""
        return np.concatenate((opinions, self.committees.mixed(opinions)))

    def mixed(self, heard: Matrix) -> Vector:
        """Return the forecast that the vote makes of those heard, shape (H,)."""
        return self.vote.mixed(self._voters(heard))[0]

    def observe(self, horizon: int, heard: Vector, mixture: float, value: float) -> Experts:
        """Return the state after a value is known that was forecast in these ways, (K + G,)."""
        count = len(self.names)
        return Experts(
            self.names,
            self.committees.observe(horizon, heard[:count], heard[count:], value),
            self.vote.observe(horizon, self._voters(heard), np.array([mixture]), value),
        )

    def _voters(self, heard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what the model and the committees have said, of all that was heard."""
        return heard[_voters(len(self.names), self.count)]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return joined({"committees": self.committees.state(), "vote": self.vote.state()})

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Experts:
        """Return the same experts with a saved state."""
        committees, vote = part(state, "committees"), part(state, "vote")
        return Experts(self.names, self.committees.restore(committees), self.vote.restore(vote))


@lru_cache(maxsize=64)
def _voters(experts: int, committees: int) -> NDArray[np.intp]:
    """Return where the model and the committees stand among all that is heard."""
    return np.array([0, *range(experts, experts + committees)])
