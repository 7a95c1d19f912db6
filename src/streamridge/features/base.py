"""Rows that can be learned from: those whose lags and targets can be trusted."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamridge.arrays import Mask, Matrix
from streamridge.features.past import Past
from streamridge.samples import Inputs, Layout, Samples
from streamridge.series.clock import Steps


class RowMaker(Protocol):
    """A description of what a row holds, which can make rows from the past."""

    @property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""

    @property
    def reach(self) -> int:
        """Return how many steps back a row looks."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of the columns by which rows are compared."""

    @property
    def extras(self) -> tuple[str, ...]:
        """Return the names of further columns, which are known in advance."""

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and which of them use trusted readings only.

        Such a row is made again later from the same readings, alone or among others, and must be
        the same to the last bit: nothing in it may depend on readings that are not trusted, on
        readings after its step, or on how many rows are made at once.
        """


def input_at(features: RowMaker, past: Past, step: int) -> Inputs:
    """Return the row at one step."""
    x, _ = features.rows(past, np.array([step]))
    return Inputs(np.array([float(step)]), x, features.layout)


def samples_at(features: RowMaker, past: Past, steps: Steps, horizon: int) -> Samples:
    """Return the samples at those steps that can be learned from."""
    x, complete = features.rows(past, steps)
    ahead = steps[:, None] + np.arange(horizon)
    usable = complete & past.trusted(ahead).all(axis=1)
    inputs = Inputs(steps[usable].astype(np.float64), x[usable], features.layout)
    return Samples(inputs, past.values(ahead[usable]))
