"""Rows that can be learned from: those whose targets were read, and enough of their lags."""

from __future__ import annotations

from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.features.past import Past
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Layout, Samples
from streamridge.series.clock import Steps

# The share of its lags that must have been read; forecasts may fill in the others.
LEAST_READ = 0.25


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
        """Return the rows at some steps, and which of them can be learned from.

        Such a row is made again later, alone or among others, and must be the same to the last bit:
        it may depend on trusted readings and on the forecasts that fill gaps, both before its step,
        but not on doubted readings, on later ones, or on how many rows are made at once.
        """


@runtime_checkable
class HasNumbers(Protocol):
    """A row maker that makes rows with numbers which can be learned."""

    @property
    def space(self) -> Space:
        """Return the names, values and bounds of the numbers, and which are learned."""

    def at(self, numbers: Vector) -> Self:
        """Return the row maker at other numbers, shape (q,); all else stays as it is."""

    def tangents(self, past: Past, steps: Steps) -> NDArray[np.float64]:
        """Return how the rows at some steps move with each number, shape (q, n, p).

        The latest value and further columns must not move: units follow from them.
        """


class MakesOneRow(Protocol):
    """A row maker with a shorter way to one row, such as that of the next forecast."""

    def row(self, past: Past, step: int) -> Vector:
        """Return the row at one step, shape (p,): the one of `rows`, to the last bit."""


NO_NUMBERS = Space(())


def numbers_of(features: RowMaker) -> Space:
    """Return the space of the numbers that rows are made with; an empty one without any."""
    return features.space if isinstance(features, HasNumbers) else NO_NUMBERS


def made_with(features: RowMaker, lam: Vector) -> RowMaker:
    """Return the row maker at the last of lam, which are its numbers; unchanged without any."""
    size = len(numbers_of(features).names)
    if not (size and isinstance(features, HasNumbers)):
        return features
    return features.at(lam[-size:])


def enough_read(trusted: Mask, sound: Mask) -> Mask:
    """Return which rows of lags can be learned from: enough of them read, and none in doubt.

    Parameters
    ----------
    trusted
        (n, p), which lags have a reading that can be learned from.
    sound
        (n, p), which have one, or had none and are filled in.
    """
    read: Vector = trusted.mean(axis=1)
    return np.array(sound.all(axis=1) & (read >= LEAST_READ), dtype=bool)


def input_at(features: RowMaker, past: Past, step: int) -> Inputs:
    """Return the row at one step."""
    if makes_one_row(features):
        x = features.row(past, step)[None, :]
    else:
        x, _ = features.rows(past, np.array([step]))
    return Inputs(np.array([float(step)]), x, features.layout)


def makes_one_row(features: RowMaker) -> TypeGuard[MakesOneRow]:
    """Return whether a row maker has a shorter way to one row."""
    return hasattr(features, "row")  # asked at every forecast; isinstance takes 4 us


def samples_at(features: RowMaker, past: Past, steps: Steps, horizon: int) -> Samples:
    """Return the samples at those steps that can be learned from."""
    x, complete = features.rows(past, steps)
    ahead = steps[:, None] + np.arange(horizon)
    usable = complete & past.trusted(ahead).all(axis=1)
    inputs = Inputs(steps[usable].astype(np.float64), x[usable], features.layout)
    return Samples(inputs, past.values(ahead[usable]))
