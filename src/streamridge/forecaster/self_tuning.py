"""A model that tunes itself, with a baseline fit, rollbacks, and a path of hyperparameters."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import (
    Matrix,
    SameContent,
    Vector,
    joined,
    part,
    require_finite,
    require_shape,
)
from streamridge.errors import FitError, InvalidInputError, StateError, listed
from streamridge.features.base import parameter_space, with_parameters
from streamridge.forecaster.ensemble import BASELINE
from streamridge.forecaster.sensor_history import SensorHistory
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.feasible import chart_of
from streamridge.hyperparameters.space import GroupNames
from streamridge.learners.base import Costs, IssuedForecasts, Policy, Tally
from streamridge.learners.online import GradientPolicy
from streamridge.learners.refitted_model import RefittedModel, packed_fit
from streamridge.learners.restarts import (
    DOUBTFUL_WINDOWS,
    BaselineComparison,
    SearchSchedule,
    is_worse_in_backtest,
)
from streamridge.learners.rolling import SearchPolicy
from streamridge.learners.workspace import RebuildableFit, Workspace, runs_of
from streamridge.models.base import Predictor, predict_with_residuals
from streamridge.samples import Inputs
from streamridge.tuners.start import StartSearch

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # silent unless the user sets up logging

# The number of refits in the path of the hyperparameters: about a month of daily refits.
REMEMBERED = 32
# The baseline is fitted to the last quarter of a training set, with a quarter of the landmarks.
BASELINE_SHARE, FEWER_LANDMARKS = 4, 4

# Names of the events that are counted.
Event = Literal["fits", "rollbacks", "failed_refits"]


@dataclass(frozen=True, eq=False)
class HyperparameterPath(SameContent):
    """The path of the hyperparameters, refit by refit."""

    steps: NDArray[np.int64]  # (n,), the step of each refit
    groups: tuple[GroupNames, ...]  # the hyperparameters, group by group
    values: Matrix  # (n, d), the hyperparameters after each refit

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters, shape (d,)."""
        return tuple(name for group in self.groups for name in group.names)

    def followed_by(self, later: HyperparameterPath) -> HyperparameterPath:
        """Return the path extended by the refits of another path that come after its own."""
        new = later.steps > self.steps[-1]
        return HyperparameterPath(
            np.append(self.steps, later.steps[new]),
            self.groups,
            np.vstack([self.values, later.values[new]]),
        )

    def __getitem__(self, name: str) -> Vector:
        if name not in self.names:
            raise InvalidInputError(
                f"hyperparameter must be one of {listed(self.names)}, got {name!r}."
            )
        return self.values[:, self.names.index(name)]


class SelfTuningModel(RefittedModel[Any]):
    """The model of a forecaster: fitted to the sensor's history, and tuned by its own errors.

    A small baseline fit at the initial hyperparameters shows whether tuning helps: see
    `streamridge.learners.restarts`.
    """

    def __init__(self, settings: Settings, history: SensorHistory, costs: Costs) -> None:
        super().__init__(
            settings.model,
            history.rows,
            settings.near,
            settings.train_size,
            settings.update_every,
            costs,
            deferred=settings.defer_refits,
            gradient_share=settings.preset.gradient_share,
        )
        searches = settings.start == "search" and settings.learn and settings.tuner is None
        self._settings = settings
        self._initial = settings.model.space.values
        self.features = settings.preset.features  # builds the next row, at the current lam
        self._baseline: RebuildableFit[Any] | None = None
        self._comparison = BaselineComparison() if settings.has_baseline else None
        self._schedule = SearchSchedule() if searches else None
        self._path = np.empty(0, dtype=np.int64), np.empty((0, len(self._initial)))

    @classmethod
    def started(
        cls, settings: Settings, history: SensorHistory, costs: Costs, workspace: Workspace
    ) -> SelfTuningModel:
        """Return the model after its first fit, which is made in this memory."""
        model, newest = cls(settings, history, costs), float(history.timeline.newest)
        model.workspace = workspace
        model._start(_policy(settings, costs), newest)
        if model._schedule is not None:
            model._schedule = model._schedule.after_refit()
            model._search_start(model._schedule)
        model._settle()
        return model

    @classmethod
    def restored(
        cls,
        settings: Settings,
        history: SensorHistory,
        costs: Costs,
        state: Mapping[str, NDArray[Any]],
    ) -> SelfTuningModel:
        """Return the model that the state was taken from; its settings were the same."""
        model, learned = cls(settings, history, costs), part(state, "learner")
        try:
            model.progress = model._restored(learned, _policy(settings, costs))
            if part(learned, BASELINE):
                model._baseline = model._unpacked_fit(BASELINE, learned)
        except KeyError as missing:
            raise StateError(f"state must hold {missing}, got {sorted(learned)}.") from None
        except InvalidInputError as error:
            raise StateError(f"state is damaged: {error}") from None
        if model._comparison is not None:
            model._comparison = model._comparison.restore(part(state, "comparison"))
        if model._schedule is not None:
            model._schedule = model._schedule.restore(part(state, "schedule"))
        steps, values = state["path.steps"], require_finite("path", state["path.values"])
        require_shape("path", values, (len(steps), len(model._initial)))
        model._path = steps.astype(np.int64), values
        model.features = with_parameters(settings.preset.features, model.lam)
        return model

    @property
    def has_baseline(self) -> bool:
        """Return whether there is a baseline fit."""
        return self._baseline is not None

    @property
    def tally(self) -> Tally:
        """Return the amount of tuning so far, with the searches for a start."""
        learned = self.progress.policy.tally
        return learned if self._schedule is None else learned.plus(self._schedule.tally)

    @property
    def path(self) -> HyperparameterPath:
        """Return the path of the hyperparameters."""
        steps, values = self._path
        return HyperparameterPath(steps, self.model.space.naming, values)

    def forecast(self, inputs: Inputs) -> tuple[Vector, Vector, Vector | None]:
        """Return predictions for one input, their expected errors, and the baseline's predictions.

        Their shape is (H,). The baseline's are None while there is no baseline fit.
        """
        began = thread_time()
        current, baseline = self._predictors()
        known = current.predict_with_spread(inputs)
        values, spreads = known or predict_with_residuals(self.fit, self.training, inputs)
        self.costs.predicting += thread_time() - began
        return values[0], spreads[0], None if baseline is None else baseline.predict(inputs)[0]

    def _predictors(self) -> tuple[Predictor, Predictor | None]:
        """Return what predicts one input: the fit in force, and its baseline if there is one.

        Without a workspace, the rows are dropped as soon as the predictors are made of them.
        """
        current, baseline = self.progress.current, self._baseline
        if current.predictor is None:
            self.fit.learn_spread()
        if baseline is not None and baseline.predictor is None:
            count = int(baseline.runs[:, 1].sum())
            baseline.rebuild(self.model, self.training[-count:])
            baseline.keep_predictor()
        if self.workspace is None:
            current.keep_predictor()
        return current.predictor or self.fit, None if baseline is None else baseline.predictor

    def observe(
        self, step: int, issued: IssuedForecasts | None, losses: Vector | None
    ) -> tuple[Event, ...]:
        """Learn from the value of a step in the history, and return the events that happened.

        `issued` are the forecasts since the last refit; None if as predicted. `losses` are the mean
        squared errors of the model and of its baseline in this window, (2,), if known.
        """
        t = float(step)
        try:
            progress = self._observed(self.progress, t)
            if self.deferred or progress.steps < self.update_every:
                self.progress = progress
                return ()
            self.progress = self._refitted(progress, self.workspace or Workspace(), issued)
        except FitError as error:
            self._keep_fit(error)
            self.progress = self._observed(self.progress, t)
            return ("failed_refits",)
        return self._checked(losses)

    def refit(
        self, workspace: Workspace | None, issued: IssuedForecasts | None, losses: Vector | None
    ) -> tuple[Event, ...]:
        """Refit now, in this memory, and return the events that happened."""
        held = self.workspace
        self.workspace = workspace or held
        try:
            progress = self.progress
            if progress.policy.search_due:
                progress = self._searched(progress)
            self.progress = self._refitted(progress, self.workspace or Workspace(), issued)
            return self._checked(losses)
        except FitError as error:
            self._keep_fit(error)
            return ("failed_refits",)
        finally:
            self.hold(held)

    def skip(self, step: int, steps: int = 1) -> None:
        """Skip steps up to this one that have no value to learn from."""
        self._skip(float(step), steps)

    def set(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit at once."""
        self.assign(values)
        if self._comparison is not None:
            self._comparison = BaselineComparison()
        self._settle()

    def hold(self, workspace: Workspace | None) -> None:
        """Use this memory for all refits from now on; None keeps no memory between refits."""
        self.workspace = workspace
        if workspace is None:
            self.rest()

    def rest(self) -> None:
        """Drop the training set and the matrices; they are rebuilt when they are needed."""
        super().rest()
        if self._baseline is not None:
            self._baseline.release()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restored`."""
        steps, values = self._path
        learned = self._state()
        if self._baseline is not None:
            learned |= packed_fit(BASELINE, self._baseline)
        return joined(
            {
                "learner": learned,
                "comparison": self._comparison.state() if self._comparison else {},
                "schedule": self._schedule.state() if self._schedule else {},
                "path": {"steps": steps, "values": values},
            }
        )

    def _checked(self, losses: Vector | None) -> tuple[Event, ...]:
        """Return the events of a refit, after a rollback or a search for a start if one is due."""
        rolled_back = losses is not None and self._roll_back(losses)
        if self._schedule is not None:
            error = np.nan if losses is None else float(losses[0])
            self._schedule = self._schedule.after_refit(error)
            self._search_start(self._schedule, rolled_back=rolled_back)
        self._settle()
        if not rolled_back:
            return ("fits",)
        logger.warning(
            "%sself-tuning was worse than its start and was rolled back", self._message_prefix
        )
        return ("fits", "rollbacks")

    def _roll_back(self, losses: Vector) -> bool:
        """Return whether tuning was worse than its start for long, and was rolled back."""
        if self._comparison is None:
            return False
        self._comparison = self._comparison.after(losses)
        if self._comparison.worse < DOUBTFUL_WINDOWS:
            return False
        with self.costs.spending("tuning"):
            worse = is_worse_in_backtest(self.model, self.training, self.lam, self._initial)
            rolled_back = worse and self._put(self._initial)
        if rolled_back or not worse:
            self._comparison = BaselineComparison()
        return rolled_back

    def _search_start(self, schedule: SearchSchedule, *, rolled_back: bool = False) -> None:
        """Search for a better start if it is time to, and continue from it."""
        if not schedule.is_due(len(self.training), self.train_size, rolled_back=rolled_back):
            return
        with self.costs.spending("tuning"):
            preset, lam = self._settings.preset, self.lam
            constant = parameter_space(preset.features).names  # rows are built with them
            held = self.model.space.groups_of((*self.frozen, *constant))
            rng = np.random.default_rng([self._settings.seed, schedule.tally.tunings])
            search = StartSearch(self.model, (preset.usual_values,))
            found = search.tune(self.training, lam, held, rng)
            self._schedule = schedule.after_search(found.fits, found.gradients)
            changed = not np.array_equal(found.lam, lam) and self._put(found.lam)
        if changed and self._comparison is not None:
            self._comparison = BaselineComparison()

    def _put(self, lam: Vector) -> bool:
        """Set all hyperparameters that are not frozen; return whether a fit exists there."""
        values, frozen = self.named(lam), set(self.frozen)
        try:
            self.assign({name: values[name] for name in values if name not in frozen})
        except FitError:
            return False
        return True

    def _settle(self) -> None:
        """Prepare a new fit for forecasts, and fit the baseline at the initial hyperparameters."""
        current = self.progress.current
        samples, fit = self._in_memory(current)
        with self.costs.spending("predicting"):
            fit.learn_spread()
        lam = current.lam
        self.features = with_parameters(self._settings.preset.features, lam)
        steps, values = self._path
        self._path = (
            np.append(steps[-REMEMBERED + 1 :], int(self.progress.newest)),
            np.vstack([values[-REMEMBERED + 1 :], lam]),
        )
        if self._settings.has_baseline:
            rows = samples[-max(1, len(samples) // BASELINE_SHARE) :]
            spare = fit if self.workspace is None else None  # the baseline takes its memory
            try:
                with self.costs.spending("tuning"):
                    small = self.model.thinned(FEWER_LANDMARKS, current.landmarks)
                    baseline = small.fit(rows, self._initial, spare)
            except FitError:  # the model may fail in the same way, and reports it
                self._baseline = None
            else:
                held = rows, baseline
                self._baseline = RebuildableFit(self._initial, runs_of(rows.t), held=held)
                self._baseline.release()  # its matrices are not needed again
        if self.workspace is None:
            current.release()

    def _keep_fit(self, error: FitError) -> None:
        """Keep the fit in force for another window."""
        logger.warning(
            "%sthe refit failed, and the fit in force is kept: %s", self._message_prefix, error
        )
        self.postpone_refit()

    @property
    def _message_prefix(self) -> str:
        return "" if self._settings.sensor is None else f"{self._settings.sensor}: "


def _policy(settings: Settings, costs: Costs) -> Policy:
    """Return the policy of Algorithm 1 if there is a tuner, else the policy of Algorithm 2."""
    preset = settings.preset
    if settings.tuner is None:
        return GradientPolicy.of(
            settings.model.space,
            update_every=settings.update_every,
            step=preset.step_rule,
            coordinates=partial(chart_of, preset.coordinates),
            learn=settings.learn,
            usual=preset.usual_values,
            pull=preset.pull,
        )
    return SearchPolicy.of(
        settings.model,
        settings.tuner,
        train_size=settings.train_size,
        validation_size=settings.validation_size,
        tune_every=settings.tune_every or None,
        seed=settings.seed,
        costs=costs,
    )
