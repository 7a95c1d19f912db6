"""A model that tunes itself: a learner, its guard, and the path of its hyperparameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, SameContent, Vector, require_finite, require_shape
from streamridge.errors import FitError, InvalidInputError, StateError, listed
from streamridge.features.base import made_with, numbers_of
from streamridge.forecaster.presets import usual_starts
from streamridge.forecaster.recollection import Recollection
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.coordinates import chart_of
from streamridge.hyperparameters.groups import GroupNames
from streamridge.learners.base import Policy, Tally
from streamridge.learners.companion import Companion
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import runs_of
from streamridge.learners.frame import Frame
from streamridge.learners.guard import Guard
from streamridge.learners.online import Descending, Losses
from streamridge.learners.packing import unpack
from streamridge.learners.rolling import Searching
from streamridge.learners.seeker import Seeker
from streamridge.learners.state import joined, part
from streamridge.learners.stream import StreamLearner
from streamridge.learners.workspace import Workspace
from streamridge.models.base import learn_spread
from streamridge.samples import Inputs
from streamridge.tuners.start import StartSearch

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # silent unless the user sets up logging

# How many refits the path of the hyperparameters keeps: about a month of daily ones.
REMEMBERED = 32

# Names of the events that are counted.
Event = Literal["fits", "rollbacks", "failed_refits"]


@dataclass(frozen=True, eq=False)
class HyperparameterPath(SameContent):
    """The path of the hyperparameters, refit by refit.

    Parameters
    ----------
    steps
        (n,), the step of each refit.
    groups
        The hyperparameters, group by group.
    values
        (n, d), the hyperparameters after each refit.
    """

    steps: NDArray[np.int64]
    groups: tuple[GroupNames, ...]
    values: Matrix

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters, shape (d,)."""
        return tuple(name for group in self.groups for name in group.names)

    def followed_by(self, later: HyperparameterPath) -> HyperparameterPath:
        """Return the path with the refits of another one that come after its own."""
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


class SelfTuningModel:
    """A learner with the search for its start, its guard and the path of its hyperparameters.

    Parameters
    ----------
    settings
        Model, sizes and cadence.
    learner
        The learner, which forecasts and learns.
    losses
        Function that gives the mean squared errors of the model and of its companion in the window
        that has ended, (2,); None where they are not known.
    """

    def __init__(
        self,
        settings: Settings,
        learner: StreamLearner[Any],
        losses: Callable[[], Vector | None],
    ) -> None:
        self.learner = learner
        self._losses = losses
        start = settings.model.space.values
        seeks = settings.start == "search" and settings.learn and settings.tuner is None
        self._guard = Guard(learner, settings.model, start) if settings.has_companion else None
        self._companion = Companion(learner, start) if settings.has_companion else None
        self._seeker = _seeker(settings, learner) if seeks else None
        self._settings = settings
        self._initial = settings.preset.features
        self.features = made_with(self._initial, learner.lam)  # what makes the next row
        self._about = "" if settings.sensor is None else f"{settings.sensor}: "
        self._naming = settings.model.space.naming
        self._path = np.empty(0, dtype=np.int64), np.empty((0, len(learner.lam)))

    @classmethod
    def started(
        cls,
        settings: Settings,
        record: Recollection,
        costs: Costs,
        workspace: Workspace,
        issued: Losses,
        losses: Callable[[], Vector | None],
    ) -> SelfTuningModel:
        """Return the model after its first fit, which is made to a record in this memory.

        It learns from the losses of its forecasts as they are `issued`; `losses` tell the guard
        whether that pays.
        """
        frame, newest = _frame(settings, costs), float(record.sensor.timeline.newest)
        policy = _policy(settings, costs, issued)
        progress = frame.started(record, policy, workspace, newest=newest, since=newest)
        model = cls(settings, StreamLearner(frame, progress, workspace), losses)
        model._seek()
        model._settle()
        return model

    @classmethod
    def resumed(
        cls,
        settings: Settings,
        state: Mapping[str, NDArray[Any]],
        record: Recollection,
        costs: Costs,
        issued: Losses,
        losses: Callable[[], Vector | None],
    ) -> SelfTuningModel:
        """Return the model that the state was taken from; its settings were the same."""
        frame, learned = _frame(settings, costs), part(state, "learner")
        if "current.runs" not in learned:
            learned = _fitted_again(frame, learned, record)
        progress = unpack(learned, frame, _policy(settings, costs, issued), record)
        model = cls(settings, StreamLearner(frame, progress), losses)
        if model._guard:
            model._guard.restore(part(state, "guard"))
        if model._companion:
            model._companion.restore(part(state, "companion"))
        if model._seeker:
            model._seeker.restore(part(state, "seeker"))
        steps, values = state["path.steps"], require_finite("path", state["path.values"])
        require_shape("path", values, (len(steps), len(model.learner.hyperparameters)))
        model._path = steps.astype(np.int64), values
        return model

    @property
    def newest(self) -> int:
        """Return the step of the latest value."""
        return int(self.learner.newest)

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far, with the searches for a start."""
        learned = self.learner.tally
        return learned if self._seeker is None else learned.plus(self._seeker.tally)

    @property
    def path(self) -> HyperparameterPath:
        """Return the path of the hyperparameters."""
        steps, values = self._path
        return HyperparameterPath(steps, self._naming, values)

    def hold(self, workspace: Workspace | None) -> None:
        """Use this memory for all refits from now on; None holds none between them."""
        self.learner.workspace = workspace
        self._rest()

    @property
    def has_companion(self) -> bool:
        """Return whether there is a companion, and it could be fitted."""
        return self._companion is not None and self._companion.is_fitted

    def companion(self, inputs: Inputs) -> Vector:
        """Return what the companion forecasts for one input, (H,); NaN while there is none."""
        said = self._companion.predict(inputs) if self._companion else None
        return np.full(self._settings.horizon, np.nan) if said is None else said

    def observe(self, step: int, value: float) -> tuple[Event, ...]:
        """Learn from a value, and return the events that happened."""
        refits = self.learner.refits
        try:
            self.learner.observe(step, None, value)
        except FitError as error:
            self._survive(error)
            self.learner.observe(step, None, value)
            return ("failed_refits",)
        return self._watched() if self.learner.refits > refits else ()

    def refit(self, workspace: Workspace | None) -> tuple[Event, ...]:
        """Refit now, in this memory, and return the events that happened."""
        held = self.learner.workspace
        self.learner.workspace = workspace or held
        try:
            self.learner.refit()
            return self._watched()
        except FitError as error:
            self._survive(error)
            return ("failed_refits",)
        finally:
            self.hold(held)

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit at once."""
        self.learner.assign(values)
        if self._guard:
            self._guard.trust()
        self._settle()

    def release(self) -> None:
        """Drop all that can be recomputed, at the cost of a factorization at the next refit."""
        self.learner.release()
        if self._companion:
            self._companion.rest()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `resumed`."""
        path = self.path
        return joined(
            {
                "learner": self.learner.state(),
                "guard": self._guard.state() if self._guard else {},
                "companion": self._companion.state() if self._companion else {},
                "seeker": self._seeker.state() if self._seeker else {},
                "path": {"steps": path.steps, "values": path.values},
            }
        )

    def _settle(self) -> None:
        """Let a new fit learn the size of its errors, and go on from its hyperparameters."""
        self.learner.learn_spread()
        self.features = made_with(self._initial, self.learner.lam)
        steps, values = self._path
        self._path = (
            np.append(steps[-REMEMBERED + 1 :], self.newest),
            np.vstack([values[-REMEMBERED + 1 :], self.learner.lam]),
        )
        if self._companion:
            self._companion.renew()
        self._rest()

    def _rest(self) -> None:
        """Keep nothing but the numbers of a fit, unless memory is held for the next one."""
        if self.learner.workspace is None:
            self.learner.rest()

    def _survive(self, error: FitError) -> None:
        """Keep the fit in force for another window."""
        logger.warning("%sthe refit failed, and the fit in force is kept: %s", self._about, error)
        self.learner.postpone_refit()

    def _seek(self, error: float = np.nan, *, rolled_back: bool = False) -> None:
        """Search where learning should start, or start again, if it is time to."""
        if self._seeker is None:
            return
        with self.learner.costs.spending("tuning"):
            found = self._seeker.watch(error, changed=rolled_back)
        if found and self._guard:
            self._guard.trust()

    def _watched(self) -> tuple[Event, ...]:
        """Return the events of a refit that was made, after the guard has judged the window."""
        losses = self._losses()
        with self.learner.costs.spending("tuning"):
            rolled_back = losses is not None and bool(self._guard and self._guard.watch(losses))
        self._seek(np.nan if losses is None else float(losses[0]), rolled_back=rolled_back)
        self._settle()
        if rolled_back:
            logger.warning(
                "%sself-tuning was worse than its start and was rolled back", self._about
            )
        return ("fits", "rollbacks") if rolled_back else ("fits",)


def _fitted_again(
    frame: Frame[Any], learned: Mapping[str, NDArray[Any]], record: Recollection
) -> dict[str, NDArray[Any]]:
    """Return the state of an earlier format, with its fit made again from the readings it holds."""
    rows = record.between(-np.inf, np.inf)
    times = rows.t[np.isin(rows.t, learned["current.t"])]
    if not len(times):
        raise StateError("readings must make one row of the fit at least, got none. Start anew.")
    with frame.costs.spending("fitting"):
        fit = frame.model.fit(record.at(times, 0), learned["current.lam"])
    learn_spread(fit)
    numbers = {f"current.fit.{name}": array for name, array in fit.state().items()}
    kept = {name: array for name, array in learned.items() if not name.startswith("retired.")}
    return {**kept, **numbers, "current.runs": runs_of(times)}


def _frame(settings: Settings, costs: Costs) -> Frame[Any]:
    return Frame(
        settings.model,
        settings.preset.features.layout,
        settings.horizon,
        settings.train_size,
        settings.update_every,
        costs,
        deferred=settings.defer_refits,
    )


def _seeker(settings: Settings, learner: StreamLearner[Any]) -> Seeker:
    return Seeker(
        StartSearch(settings.model, usual_starts(settings.preset)),
        learner,
        train_size=settings.train_size,
        seed=settings.seed,
        constant=numbers_of(settings.preset.features).names,
    )


def _policy(settings: Settings, costs: Costs, issued: Losses) -> Policy:
    """Return the policy of Algorithm 1 if there is a tuner, else the policy of Algorithm 2."""
    preset = settings.preset
    if settings.tuner is None:
        return Descending.of(
            settings.model.space,
            update_every=settings.update_every,
            step=preset.step_rule,
            coordinates=partial(chart_of, preset.coordinates),
            learn=settings.learn,
            losses=issued,
        )
    return Searching.of(
        settings.model,
        settings.tuner,
        train_size=settings.train_size,
        validation_size=settings.validation_size,
        tune_every=settings.tune_every or None,
        seed=settings.seed,
        costs=costs,
    )
