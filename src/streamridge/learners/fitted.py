"""A fit that can rest: its numbers stay, its samples and the fit itself are made again at need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, StateError
from streamridge.learners.record import Record
from streamridge.models.base import (
    FitT,
    Model,
    Tangents,
    WindowLoss,
    gradient_of,
    step_gradients,
)
from streamridge.samples import Samples


class Fitted(Generic[FitT]):
    """A fit with its training set and the hyperparameters it was made at.

    Parameters
    ----------
    model
        The model that was fitted.
    record
        Where the rows of its training set are found, made with its hyperparameters.
    times
        (N,), the times of these rows.
    lam
        (d,), the hyperparameters.
    since
        Time of the refit; the rows after it are predicted by this fit.
    numbers
        The state of the fit, from which it is made again.
    held
        The training set and the fit, while they are in memory.
    """

    def __init__(
        self,
        model: Model[FitT],
        record: Record,
        times: Vector,
        lam: Vector,
        since: float,
        numbers: Mapping[str, NDArray[Any]],
        held: tuple[Samples, FitT] | None = None,
    ) -> None:
        self.model = model
        self.lam = lam
        self.since = since
        self.refits_ago = 0
        self.record = record
        self._runs = runs_of(times)
        self._numbers = dict(numbers)
        self._held = held

    @classmethod
    def made(
        cls,
        model: Model[FitT],
        record: Record,
        lam: Vector,
        since: float,
        held: tuple[Samples, FitT],
    ) -> Fitted[FitT]:
        """Return a fit that is in memory."""
        return cls(model, record, held[0].t, lam, since, {}, held)

    @property
    def times(self) -> Vector:
        """Return the times of the training set, shape (N,)."""
        return times_of(self._runs)

    @property
    def first(self) -> float:
        """Return the time of the first row of the training set."""
        return float(self._runs[0, 0])

    @property
    def runs(self) -> Matrix:
        """Return the times as runs of whole steps, shape (n, 2): the first, and how many."""
        return self._runs

    @property
    def numbers(self) -> dict[str, NDArray[Any]]:
        """Return the state of the fit."""
        return self._numbers if self._held is None else dict(self._held[1].state())

    @property
    def samples(self) -> Samples:
        """Return the training set."""
        return self.wake()[0]

    @property
    def fit(self) -> FitT:
        """Return the fit."""
        return self.wake()[1]

    def release(self) -> None:
        """Drop the training set and the fit; the numbers stay."""
        self._numbers, self._held = self.numbers, None

    def wake(self) -> tuple[Samples, FitT]:
        """Return the training set and the fit; they are made again if they were dropped."""
        if self._held is None:
            samples = self.record.at(self.times, self.refits_ago)
            self._held = samples, self._resumed(samples)
            self._numbers = {}
        return self._held

    def gradient_of(self, window: Samples, loss: WindowLoss | None = None) -> Vector:
        """Return the gradient in all of lam of the loss of rows that it has predicted, (d,)."""
        return gradient_of(self.fit, window, self._tangents(window), loss)

    def step_gradients(self, window: Samples) -> Matrix:
        """Return the gradient in all of lam of each row that it has predicted, (m, d)."""
        return step_gradients(self.fit, window, self._tangents(window))

    def _tangents(self, window: Samples) -> Tangents | None:
        """Return how its rows, and those of a window that it has predicted, move with lam."""
        return self.record.tangents(self.times, window.t, self.refits_ago)

    def _resumed(self, samples: Samples) -> FitT:
        try:
            return self.model.resume(samples, self.lam, self._numbers)
        except KeyError as missing:
            raise StateError(f"state of a fit must hold {missing}, got none.") from None
        except InvalidInputError as error:
            raise StateError(f"state of a fit is damaged: {error}") from None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the numbers, not what can be made of them."""
        return self.__dict__ | {"_numbers": self.numbers, "_held": None}


def runs_of(times: Vector) -> Matrix:
    """Return times as runs of whole steps, shape (n, 2): the first time, and how many.

    Examples
    --------
    >>> runs_of(np.array([3.0, 4.0, 5.0, 9.0]))
    array([[3., 3.],
           [9., 1.]])
    """
    follows = (np.diff(times) == 1) & (times[1:] == np.rint(times[1:]))
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1])
    return np.column_stack([times[starts], np.diff(np.append(starts, len(times)))])


def times_of(runs: Matrix) -> Vector:
    """Return the times of runs of whole steps.

    Examples
    --------
    >>> times_of(np.array([[3.0, 3.0], [9.0, 1.0]]))
    array([3., 4., 5., 9.])
    """
    return np.concatenate([first + np.arange(count) for first, count in runs])
