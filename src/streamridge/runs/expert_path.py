"""How far each expert of a forecaster was trusted in the course of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamridge.arrays import Matrix, SameContent, Vector
from streamridge.series.clock import Times


@dataclass(frozen=True, eq=False)
class ExpertPath(SameContent):
    """The path of the experts' weights: at each refit, once a day at least, and at the end.

    Parameters
    ----------
    times
        (n,), of the steps after which the weights were as they are here.
    names
        (K,), of the experts.
    weights
        (n, K), in the next forecast; each row sums to one.
    """

    times: Times
    names: tuple[str, ...]
    weights: Matrix

    @classmethod
    def empty(cls) -> ExpertPath:
        """Return the path of a run in which nothing is mixed."""
        return cls(np.zeros(0, dtype=np.int64), (), np.zeros((0, 0)))

    @property
    def last(self) -> dict[str, float]:
        """Return the weights at the end by name; empty where nothing is mixed."""
        return {name: float(each[-1]) for name, each in self.by_name().items()}

    def by_name(self) -> Mapping[str, Vector]:
        """Return the weights over time of each expert, (n,) each."""
        return dict(zip(self.names, self.weights.T, strict=True))
