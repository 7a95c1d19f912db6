"""Fits that can be rebuilt from a few numbers, and the memory that refits take turns to use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import InvalidInputError, StateError
from streamridge.models.base import FitT, Model, Predictor
from streamridge.models.standardized import kind_of
from streamridge.samples import Samples


@dataclass(eq=False, repr=False)
class RebuildableFit(Generic[FitT]):
    """A fit whose training set and matrices can be dropped and rebuilt, bit for bit."""

    lam: Vector  # (d,), the hyperparameters it was fitted at
    # (n, 2), the times of its training set as runs of whole steps: the first, and the length.
    runs: Matrix
    # The state of the fit, from which it is rebuilt.
    _numbers: dict[str, NDArray[Any]] = field(default_factory=dict)
    # The training set and the fit, while they are in memory.
    held: tuple[Samples, FitT] | None = None
    _predictor: Predictor | None = None  # the part that predicts, while only it is held

    @property
    def numbers(self) -> dict[str, NDArray[Any]]:
        """Return the state of the fit."""
        return self._numbers if self.held is None else dict(self.held[1].state())

    @property
    def landmarks(self) -> Vector:
        """Return the times of its landmarks; none if it has no such."""
        chosen = self.numbers.get("landmarks")
        return np.empty(0) if chosen is None else times_of(self.runs)[chosen]

    @property
    def predictor(self) -> Predictor | None:
        """Return what predicts one input; None if nothing is in memory."""
        return self._predictor if self.held is None else self.held[1]

    def rebuild(self, model: Model[FitT], samples: Samples) -> tuple[Samples, FitT]:
        """Load the fit into memory again, given its model and its training set, and return both."""
        try:
            self.held = samples, model.resume(samples, self.lam, self._numbers)
        except KeyError as missing:
            raise StateError(f"state of a fit must hold {missing}, got none.") from None
        except InvalidInputError as error:
            raise StateError(f"state of a fit is damaged: {error}") from None
        self._numbers = {}
        return self.held

    def keep_predictor(self) -> None:
        """Drop the training set and the fit, except the part that predicts one input.

        A fit that needs all of it stays as it is.
        """
        if self.held is not None:
            predictor = self.held[1].predictor()
            if predictor is not self.held[1]:
                self.release()
                self._predictor = predictor

    def release(self) -> None:
        """Drop the training set and the fit; the numbers stay."""
        self._numbers, self.held, self._predictor = self.numbers, None, None

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle: the numbers, without the matrices."""
        return self.__dict__ | {"_numbers": self.numbers, "held": None, "_predictor": None}


@dataclass(eq=False, repr=False)
class Workspace:
    """Memory for refits: large matrices that the next refit reuses.

    A refit of the default model fills about 80 MB. Share one workspace between many forecasters
    that are refitted one after the other, and this memory is allocated once. Give one forecaster
    its own workspace, and its rows and matrices stay in memory between refits.
    Results do not depend on the workspace. Two threads must not use it at the same time.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> import streamridge as sr
    >>> forecaster, workspace = sr.Forecaster("1h", defer_refits=True), sr.Workspace()
    >>> for hour in range(80):
    ...     time = datetime(2021, 6, 13) + timedelta(hours=hour)
    ...     forecaster.observe(time, float(hour % 24))
    ...     if forecaster.refit_due:
    ...         forecaster.refit(workspace)
    >>> forecaster.counts["fits"]
    1
    """

    # Fits that hold their matrices, the newest last: the owner, if any, the kind of model, the fit.
    _solved: list[tuple[RebuildableFit[Any] | None, type, Any]] = field(
        default_factory=list, init=False
    )

    def solved(self, owner: RebuildableFit[FitT], model: Model[FitT], samples: Samples) -> FitT:
        """Return the owner's fit with its factor, from memory or rebuilt."""
        for known, _, fit in self._solved:
            if known is owner:
                return fit
        fit = model.resume(samples, owner.lam, owner.numbers)
        spare = self.spare(model)
        if spare is not None:
            fit.take_over(spare)
        self.keep(owner, model, fit)
        return fit

    def keep(self, owner: RebuildableFit[FitT] | None, model: Model[FitT], fit: FitT) -> None:
        """Keep the matrices of a fit for its owner; without one, only its memory is reused."""
        self._solved.append((owner, kind_of(model), fit))

    def clear(self) -> None:
        """Free all memory."""
        self._solved = []

    def spare(self, model: Model[FitT]) -> FitT | None:
        """Return an earlier fit of such a model whose memory a new fit may use, if there is one.

        All fits are forgotten.
        """
        kind = kind_of(model)
        free = [fit for _, of, fit in self._solved if of is kind]
        self._solved = []
        return free[0] if free else None


def runs_of(times: Vector) -> Matrix:
    """Return times as runs of whole steps, shape (n, 2): the first time, and the length.

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
