"""What every ridge regression in the feature space of a kernel has: a kernel and a constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from streamridge.arrays import Vector, require_number
from streamridge.hyperparameters.groups import (
    Bounds,
    positive_group,
    require_values,
    require_within,
)
from streamridge.hyperparameters.space import Space
from streamridge.kernels.base import Kernel
from streamridge.models.ridge import Center
from streamridge.models.systems import Ridge
from streamridge.samples import Samples


@dataclass(frozen=True)
class RidgeModel:
    """A kernel, and a ridge constant beside it.

    Parameters
    ----------
    kernel
        Any kernel; its values are the initial hyperparameters.
    regularization
        Initial ridge constant.
    regularization_bounds
        Interval in which it is learned; None keeps it constant.
    centered
        Whether x and y are centred on the mean of each training set.
    """

    kernel: Kernel
    regularization: float = 0.3
    regularization_bounds: Bounds = (1e-3, 1e2)
    centered: bool = True

    def __post_init__(self) -> None:
        require_number("regularization", self.regularization)
        require_within("regularization", self.regularization, self.regularization_bounds)

    @cached_property
    def space(self) -> Space:
        """Return the hyperparameters of the kernel, and the ridge constant after them."""
        lam_R = positive_group(
            "regularization", "ridge", self.regularization, self.regularization_bounds
        )
        return Space((*self.kernel.groups, lam_R))

    def starting_at(self, lam: Vector) -> Self:
        """Return the model with lam as its initial hyperparameters."""
        kernel = self.kernel.replace(lam[:-1])
        return replace(self, kernel=kernel, regularization=float(lam[-1]))

    def _ridge(self, lam: Vector | None, dtype: DTypeLike = np.float64) -> Ridge:
        values = self.space.values if lam is None else lam
        lam = require_values(values, len(self.space.names))
        bounds = self.regularization_bounds or (self.regularization, self.regularization)
        return Ridge(self.kernel.replace(lam[:-1]), float(lam[-1]), bounds[0], np.dtype(dtype))

    def _center(self, samples: Samples) -> Center:
        return Center.of(samples) if self.centered else Center.zero(samples)
