"""The learner that Algorithms 1 and 2 share: a model refitted every m steps along a stream of rows.

Each step: predict with the fit in force, observe the label, remember both. A policy chooses the
hyperparameters: Algorithm 2 moves them (`online`), Algorithm 1 searches for them (`rolling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Vector,
    part,
    require_count,
    require_finite,
    require_number,
    require_shape,
)
from streamridge.errors import InvalidInputError, StateError
from streamridge.learners.base import Costs, Policy, State
from streamridge.learners.refitted_model import Progress, RefittedModel
from streamridge.learners.row_sources import KeptRows, LabelledRow, require_history
from streamridge.learners.workspace import Workspace
from streamridge.models.base import FitT, Model, predict_with_residuals
from streamridge.samples import Inputs, Samples, require_width


class StreamLearner(RefittedModel[FitT]):
    """A refitted model that stores the rows it observes."""

    def __init__(
        self,
        model: Model[FitT],
        history: Samples,  # samples before the first prediction: see `OnlineLearner`
        policy: Policy,
        *,
        train_size: int,  # N, the samples of a fit
        update_every: int,  # m, the steps between refits
        costs: Costs,
    ) -> None:
        require_history(history, require_count("update_every", update_every))
        rows = KeptRows.of(history)
        super().__init__(
            model,
            rows,
            history.y.shape[1],
            train_size,
            update_every,
            costs,
            workspace=Workspace(),
        )
        self._layout = history.inputs.layout
        self._rows: KeptRows
        self._start(policy, float(history.t[-1]))
        self._rows = rows.after_refit(self.progress.oldest)

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""
        inputs = self._inputs(time, x)
        with self.costs.spending("predicting"):
            return self.fit.predict(inputs)[0]

    def predict_with_spread(self, time: float, x: ArrayLike) -> tuple[Vector, Vector]:
        """Return the forecasts and the expected size of their errors, shape (H,) each."""
        inputs, fit = self._inputs(time, x), self.fit
        with self.costs.spending("predicting"):
            known = fit.predict_with_spread(inputs)
            forecasts, spreads = known or predict_with_residuals(fit, self.training, inputs)
        return forecasts[0], spreads[0]

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        Without x, the value only labels earlier rows and makes no row of its own. If an error is
        raised, nothing has changed.
        """
        t = self._require_later(time)
        row = None if x is None else self._row(t, x)
        kept = self._rows
        self._rows = kept.with_value(row, t, require_number("y", y))
        try:
            progress = self._observed(self.progress, t)
            if progress.steps >= self.update_every:
                progress = self._refitted(progress, self.workspace or Workspace(), None)
        except BaseException:
            self._rows = kept
            raise
        self._commit(progress)

    def refit(self) -> None:
        """Learn from the window, and refit on everything that is known now.

        It may come at any time, and learns from all rows since the last refit; the next one is due
        m observations later. A `FitError` leaves everything unchanged.
        """
        progress = self.progress
        if progress.policy.search_due:
            progress = self._searched(progress)
        self._commit(self._refitted(progress, self.workspace or Workspace(), None))

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name and refit; other weights of a simplex share the rest."""
        super().assign(values)
        self._rows = self._rows.after_refit(self.progress.oldest)

    def pass_over(self, time: float, steps: int = 1) -> None:
        """Skip steps up to `time` that have no value, or none to learn from."""
        self._skip(self._require_later(time), steps)

    def state(self) -> State:
        """Return everything that changes, as arrays and numbers for `restore`."""
        rows = {f"rows.{name}": np.copy(each) for name, each in self._rows.state().items()}
        return self._state() | rows

    def restore(self, state: State) -> None:
        """Continue, bit for bit, from the state of a learner with the same model and settings."""
        before = self.progress, self._rows
        try:
            arrays = {key: np.asarray(value) for key, value in part(state, "rows").items()}
            self._rows = self._rows.restore(arrays)
            self.progress = self._restored(state, self.progress.policy)
            self._in_memory(self.progress.current)  # it raises if numbers and rows do not match
        except BaseException as error:
            self.progress, self._rows = before
            if isinstance(error, KeyError):
                raise StateError(f"state must hold {error}, got {sorted(state)}.") from None
            if isinstance(error, InvalidInputError):
                raise StateError(f"state is damaged: {error}") from None
            raise

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of a pickle: everything but the memory of refits."""
        return self.__dict__ | {"workspace": None}

    def _commit(self, progress: Progress[FitT]) -> None:
        """Replace the progress, drop old rows after a refit, and report to watchers."""
        if progress.refits > self.progress.refits:
            self._rows = self._rows.after_refit(progress.oldest)
        self.progress = progress
        self.progress = replace(progress, policy=progress.policy.reported())

    def _row(self, t: float, x: ArrayLike) -> LabelledRow:
        """Return a checked row whose labels are not known yet."""
        features = require_finite("x", x)
        require_shape("x", features, (None,))
        require_width(features, self._layout)
        # The caller may fill the same array with the next features.
        return LabelledRow(t, features.copy(), np.full(self.horizon, np.nan))

    def _inputs(self, time: float, x: ArrayLike) -> Inputs:
        row = self._row(self._require_later(time), x)
        return Inputs(np.array([row.t]), row.x[None, :], self._layout)

    def _require_later(self, time: float) -> float:
        """Return `time` as a number; raise unless it is later than the newest row."""
        t = require_number("time", time)
        if t <= self.newest:
            raise InvalidInputError(f"time must be later than {self.newest:.15g}, got {t:.15g}.")
        if self.horizon > 1 and not t.is_integer():
            raise InvalidInputError(f"time must be a whole number of steps, got {t:.15g}.")
        return t
