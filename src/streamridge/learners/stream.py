"""The learner that Algorithms 1 and 2 share: a model refitted every m steps as a stream flows.

Each step: predict with the fit in force, observe the label, remember both. A policy chooses the
hyperparameters: Algorithm 2 moves them (`online`), Algorithm 1 searches for them (`rolling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import Vector, require_number
from streamridge.errors import InvalidInputError
from streamridge.learners.base import State, Tally
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import Fitted
from streamridge.learners.frame import Frame, Progress
from streamridge.learners.packing import pack, unpack, unpack_fit
from streamridge.learners.workspace import Workspace
from streamridge.models.base import (
    FitT,
    knows_spread,
    learn_spread,
    predict_with_residuals,
    thinned,
)
from streamridge.samples import Inputs, Samples

# What a companion has of the landmarks of a model that is on landmarks: half of them, for the few
# rows that it sees.
THINNED = 2


class StreamLearner(Generic[FitT]):
    """A `Learner` that predicts a stream with a model and refits the model as the stream flows.

    It replaces its progress as a whole: if an error is raised, nothing has changed.

    Parameters
    ----------
    frame
        The constant part: the model, the form of its samples, and when it is refitted.
    progress
        The part that changes: `frame.begun(history, policy, workspace)`, or one from `unpack`.
    workspace
        Memory that refits use and hold for the next one; None takes new memory for each refit, and
        gives it back.
    """

    def __init__(
        self, frame: Frame[FitT], progress: Progress[FitT], workspace: Workspace | None = None
    ) -> None:
        self.workspace = workspace
        self._frame = frame
        self._progress = progress
        self._space = frame.model.space

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""
        return self._space.named(self._progress.current.lam)

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters in force as one vector, shape (d,)."""
        return self._progress.current.lam.copy()

    def named(self, lam: Vector) -> dict[str, float]:
        """Return the coordinates of lam by name."""
        return self._space.named(lam)

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return the learned hyperparameters at a bound, each with "lower" or "upper"."""
        return self._space.active_bounds(self._progress.current.lam)

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""
        return self._progress.refits

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: searches, their fits, and gradients."""
        return self._progress.policy.tally

    @property
    def costs(self) -> Costs:
        """Return the seconds spent so far on tuning, fitting and predicting."""
        return self._frame.costs

    @property
    def skipped_moves(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""
        return self._progress.policy.skipped

    @property
    def fit(self) -> FitT:
        """Return the fit in force."""
        return self._progress.current.fit

    @property
    def newest(self) -> float:
        """Return the time of the newest value."""
        return self._progress.newest

    @property
    def training(self) -> Samples:
        """Return the samples of the fit in force."""
        return self._progress.current.samples

    @property
    def refit_due(self) -> bool:
        """Return whether the window has ended, and its refit has not been made yet."""
        return self._progress.steps >= self._frame.update_every

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` keeps constant."""
        held = self._space.learned & self._progress.policy.held
        return tuple(name for name, is_held in zip(self._space.names, held, strict=True) if is_held)

    def companion(self, lam: Vector, count: int) -> Fitted[FitT]:
        """Return a fit to the last `count` rows of the training set at other hyperparameters."""
        current, rows = self._progress.current, self.training[-count:]
        with self._frame.costs.spending("tuning"):
            fit = thinned(self._frame.model, THINNED).fit(rows, lam)
        return Fitted.made(self._frame.model, current.record, lam, current.since, (rows, fit))

    def companion_of(self, name: str, state: State) -> Fitted[FitT]:
        """Return the companion that was packed under a name, at rest."""
        record = self._progress.current.record
        fitted = unpack_fit(name, state, self._frame, record)
        fitted.record = record  # a companion shares the rows of the fit in force
        return fitted

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""
        inputs = self._inputs(time, x)
        with self._frame.costs.spending("predicting"):
            return self._progress.current.fit.predict(inputs)[0]

    def predict_with_spread(self, time: float, x: ArrayLike) -> tuple[Vector, Vector]:
        """Return the forecasts and the expected size of their errors, shape (H,) each."""
        return self.forecast(self._inputs(time, x))

    def forecast(self, inputs: Inputs) -> tuple[Vector, Vector]:
        """Return what `predict_with_spread` does, for one input that needs no check."""
        current = self._progress.current
        with self._frame.costs.spending("predicting"):
            if knows_spread(current.fit):
                forecasts, spreads = current.fit.predict_with_spread(inputs)
            else:
                forecasts, spreads = predict_with_residuals(current.fit, current.samples, inputs)
        return forecasts[0], spreads[0]

    def learn_spread(self) -> None:
        """Let the fit in force learn the size of its errors now, while its factor is in memory."""
        with self._frame.costs.spending("predicting"):
            learn_spread(self._progress.current.fit)

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        Without x, the value only labels earlier rows and makes no row of its own. If an error is
        raised, nothing has changed.
        """
        t = self._require_later(time)
        row = None if x is None else self._frame.row(t, x)
        workspace = self._memory()
        progress = self._frame.taken(self._progress, t, row, require_number("y", y), workspace)
        if not self._frame.deferred:
            progress = self._tuned(progress)
            if progress.steps >= self._frame.update_every:
                progress = self._frame.refitted(progress, workspace)
        self._progress = progress
        self._progress = progress.under(progress.policy.settle())

    def refit(self) -> None:
        """Learn from the window, and refit on all that is known now.

        It may come any time, and learns from all rows since the last one; the next is due m
        observations later. A `FitError` leaves everything as it was.
        """
        progress = self._frame.refitted(self._tuned(self._progress), self._memory())
        self._progress = progress
        self._progress = progress.under(progress.policy.settle())

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name and refit; other weights of a simplex share what is left."""
        policy = self._progress.policy
        policy = policy.put(self._space.assigned(policy.lam, values))
        # Rows that were predicted before are not learned from, so no fit is kept for them.
        self._progress = self._frame.renewed(self._progress, policy, None, self._memory())

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters constant; naming one weight of a simplex freezes them all."""
        chosen = self._space.groups_of(names)
        held = self._progress.policy.hold(chosen, self._progress.current.lam)
        self._progress = replace(self._progress, policy=held)

    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""
        freed = self._progress.policy.free(self._space.groups_of(names))
        self._progress = replace(self._progress, policy=freed)

    def pass_over(self, time: float, steps: int = 1) -> None:
        """Skip steps up to `time` that have no value, or none to learn from.

        Once a window has an observation, such steps count towards its end: a stream that is mostly
        missing is refitted as often as others. The window ends with an observation all the same.
        """
        t, progress = self._require_later(time), self._progress
        if progress.steps:
            counted = min(progress.steps + steps, self._frame.update_every - 1)
            progress = replace(progress, steps=max(progress.steps, counted))
        self._progress = replace(progress, newest=t)

    def rest(self) -> None:
        """Drop the training set and the fit; they are made again when they are needed."""
        for fitted in self._progress.fits:
            fitted.release()

    def release(self) -> None:
        """Drop all that can be recomputed, at the cost of a factorization at the next refit."""
        self.rest()
        if self.workspace is not None:
            self.workspace.clear()

    def postpone_refit(self) -> None:
        """Keep the fit in force for another window.

        A failing refit raises a `FitError` at the end of its window, and again at every observation
        after it. So catch the error, postpone the refit, and observe again.
        """
        self._progress = replace(self._progress, steps=0)

    def state(self) -> State:
        """Return everything that changes, as arrays and numbers for `restore`."""
        return pack(self._progress)

    def restore(self, state: State) -> None:
        """Continue, bit for bit, from the state of a learner with the same model and settings."""
        before = self._progress
        progress = unpack(state, self._frame, before.policy, before.record)
        for fitted in progress.fits:
            fitted.wake()  # it raises if numbers and rows do not go together
        self._progress = progress

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the memory of refits is not."""
        return self.__dict__ | {"workspace": None}

    def _memory(self) -> Workspace:
        return Workspace() if self.workspace is None else self.workspace

    def _tuned(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress after a search, if one is due."""
        return progress.under(progress.policy.tune(lambda: self._frame.known(progress)))

    def _inputs(self, time: float, x: ArrayLike) -> Inputs:
        row = self._frame.row(self._require_later(time), x)
        return Inputs(np.array([row.t]), row.x[None, :], self._frame.layout)

    def _require_later(self, time: float) -> float:
        """Return `time` as a number; raise unless it is later than the newest row."""
        t = require_number("time", time)
        newest = self._progress.newest
        if t <= newest:
            raise InvalidInputError(f"time must be later than {newest:.15g}, got {t:.15g}.")
        self._frame.require_step(t)
        return t
