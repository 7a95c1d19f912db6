"""A fit as a function of one input at a time: what a forecast needs, prepared once per fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.kernels.base import Embedding, Kernel, Predictor
from streamridge.samples import Inputs, Layout


@dataclass(frozen=True)
class Pointwise:
    r"""The sums of a fit over the kernel's row $k$ at one input: $k^T\theta$ and $k^T\varphi$.

    Parameters
    ----------
    origin, level
        (p,) and (H,), what is subtracted from x, and added to predictions.
    sums
        The sums of all weights, (H,) or (2H,).
    """

    origin: Vector
    level: Vector
    sums: Predictor

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: Embedding,
        layout: Layout,
        *,
        origin: Vector,
        level: Vector,
        theta: Matrix,
        phi: NDArray[np.float32] | None,
    ) -> Pointwise:
        """Return the sums with weights theta, and phi if there are any, over embedded rows."""
        weights = theta if phi is None else np.hstack([theta, phi])
        return cls(origin, level, kernel.predictor(rows, weights, layout))

    def at(self, inputs: Inputs) -> tuple[Matrix, Matrix]:
        r"""Return the prediction for one input, shape (1, H), and $k^T\varphi$ if there is phi."""
        sums, H = self.sums(float(inputs.t[0]), inputs.x[0] - self.origin), len(self.level)
        return (self.level + sums[:H])[None, :], sums[None, H:]
