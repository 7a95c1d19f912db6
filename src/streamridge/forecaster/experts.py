"""The experts of a forecaster: several forecasts of each step, and how far each is trusted.

All experts form a committee, which follows changes within days. A vote between the model and the
committee decides how much of the committee is used: where the model is right, it costs next to
nothing to have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.forecaster.aggregation import MLPoly
from streamridge.learners.state import joined, part

# In days: how long the committee remembers, and the vote.
COMMITTEE_DAYS, VOTE_DAYS = 3, 7


@dataclass(frozen=True)
class Experts:
    """Forecasts of several kinds, by name, and what each of them has earned.

    Parameters
    ----------
    names
        (K,), the model's first.
    committee
        The weights among all experts.
    vote
        The weights of the model and of the committee.
    """

    names: tuple[str, ...]
    committee: MLPoly
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
        even, model = np.full(len(names), 1 / len(names)), np.array([1.0, 0.0])
        return cls(
            names,
            MLPoly.start(horizon, even, COMMITTEE_DAYS * day),
            MLPoly.start(horizon, model, VOTE_DAYS * day, lead=model),
        )

    def weights(self, awake: Mask) -> Matrix:
        """Return the weights of the experts, (H, K), given which of them have a forecast."""
        voted = self.vote.weights(np.array([awake[0], True]))
        weights = voted[:, 1:] * self.committee.weights(awake)
        weights[:, 0] += voted[:, 0]
        return weights

    def heard(self, opinions: Matrix) -> Matrix:
        """Return forecasts, (K, H), with that of the committee, (K + 1, H)."""
        return np.vstack([opinions, self.committee.mixed(opinions)])

    def mixed(self, heard: Matrix) -> Vector:
        """Return the forecast that the vote makes of those heard, shape (H,)."""
        return self.vote.mixed(heard[[0, -1]])

    def observe(self, horizon: int, heard: Vector, mixture: float, value: float) -> Experts:
        """Return the state after a value is known that was forecast in these ways, (K + 1,)."""
        return Experts(
            self.names,
            self.committee.observe(horizon, heard[:-1], float(heard[-1]), value),
            self.vote.observe(horizon, heard[[0, -1]], mixture, value),
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return joined({"committee": self.committee.state(), "vote": self.vote.state()})

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Experts:
        """Return the same experts with a saved state."""
        committee, vote = part(state, "committee"), part(state, "vote")
        return Experts(self.names, self.committee.restore(committee), self.vote.restore(vote))
