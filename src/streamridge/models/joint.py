"""A model and the numbers that its rows are made with, tuned together as one vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self

from streamridge.arrays import Vector
from streamridge.hyperparameters.groups import require_values
from streamridge.hyperparameters.space import Space
from streamridge.models.base import Arrays, FitT, Model, approximate, thinned
from streamridge.samples import Samples


@dataclass(frozen=True)
class Joint(Generic[FitT]):
    """A model whose last hyperparameters are numbers that its rows were made with.

    They say how rows are made, so that whoever fits the model has used them already: a fit needs
    the others alone.

    Parameters
    ----------
    model
        The model of the rows.
    rows
        The space of the numbers that rows are made with.
    """

    model: Model[FitT]
    rows: Space

    @cached_property
    def space(self) -> Space:
        return Space((*self.model.space.groups, *self.rows.groups))

    def fit(self, samples: Samples, lam: Vector | None = None, before: FitT | None = None) -> FitT:
        """Return the model fitted to rows that were made with the last of lam."""
        return self.model.fit(samples, self._own(lam), before)

    def approximate(
        self, samples: Samples, lam: Vector, tolerance: float, before: FitT | None = None
    ) -> FitT:
        return approximate(self.model, samples, self._own(lam), tolerance, before)

    def resume(self, samples: Samples, lam: Vector, state: Arrays) -> FitT:
        return self.model.resume(samples, self._own(lam), state)

    def thinned(self, share: int) -> Self:
        model = thinned(self.model, share)
        return self if model is self.model else replace(self, model=model)

    def _own(self, lam: Vector | None) -> Vector:
        """Return the hyperparameters of the model itself."""
        values = self.space.values if lam is None else require_values(lam, len(self.space.names))
        return values[: len(self.model.space.names)]


def kind_of(model: Model[Any]) -> type:
    """Return the type of a model, which says of what type its fits are."""
    return type(model.model) if isinstance(model, Joint) else type(model)
