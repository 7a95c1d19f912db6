"""A model that tunes itself: a learner, its guard, and the path of its hyperparameters."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import FitError, InvalidInputError, listed
from streamridge.forecaster.settings import Settings
from streamridge.hyperparameters.coordinates import chart_of
from streamridge.hyperparameters.groups import GroupNames
from streamridge.learners.base import Learner, Policy
from streamridge.learners.costs import Costs
from streamridge.learners.frame import Frame
from streamridge.learners.guard import Guard
from streamridge.learners.online import Descending
from streamridge.learners.packing import unpack
from streamridge.learners.rolling import Searching
from streamridge.learners.state import joined, part
from streamridge.learners.stream import StreamLearner
from streamridge.samples import Samples

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # silent unless the user sets up logging

# How many refits the path of the hyperparameters keeps: about a year of daily ones.
REMEMBERED = 400

# Names of the events that are counted.
Event = Literal["fits", "rollbacks", "failed_refits"]


@dataclass(frozen=True)
class HyperparameterPath:
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

    def __getitem__(self, name: str) -> Vector:
        if name not in self.names:
            raise InvalidInputError(
                f"hyperparameter must be one of {listed(self.names)}, got {name!r}."
            )
        return self.values[:, self.names.index(name)]


class SelfTuningModel:
    """A learner with its guard and the path of its hyperparameters.

    Parameters
    ----------
    settings
        Model, sizes and cadence.
    learner
        The learner, which forecasts and learns.
    """

    def __init__(self, settings: Settings, learner: Learner) -> None:
        self.learner = learner
        # A search compares its result with its start; only steps along gradients can go astray.
        watched = settings.guard and settings.learn and settings.tuner is None
        self._guard = Guard(settings.preset.model, learner) if watched else None
        self._about = "" if settings.sensor is None else f"{settings.sensor}: "
        self._naming = settings.preset.model.space.naming
        self._path = [(self.newest, learner.lam)]

    @classmethod
    def started(cls, settings: Settings, history: Samples, costs: Costs) -> SelfTuningModel:
        """Return the model after its first fit, which is made to a history."""
        frame = _frame(settings, costs)
        learner = StreamLearner(frame, frame.begun(history, _policy(settings, costs)))
        learner.learn_spread()
        return cls(settings, learner)

    @classmethod
    def resumed(
        cls, settings: Settings, state: Mapping[str, NDArray[Any]], costs: Costs
    ) -> SelfTuningModel:
        """Return the model that the state was taken from; its settings were the same."""
        frame = _frame(settings, costs)
        progress = unpack(part(state, "learner"), frame, _policy(settings, costs))
        model = cls(settings, StreamLearner(frame, progress))
        if model._guard:
            model._guard.restore(part(state, "guard"))
        steps, values = state["path.steps"], require_finite("path", state["path.values"])
        require_shape("path", values, (len(steps), len(model.learner.hyperparameters)))
        model._path = list(zip(steps.tolist(), values, strict=True))
        return model

    @property
    def newest(self) -> int:
        """Return the step of the latest value."""
        return int(self.learner.newest)

    @property
    def path(self) -> HyperparameterPath:
        """Return the path of the hyperparameters."""
        steps, values = zip(*self._path, strict=True)
        return HyperparameterPath(np.array(steps), self._naming, np.array(values))

    def observe(self, step: int, x: Vector | None, value: float) -> tuple[Event, ...]:
        """Learn from a value, and return the events that happened."""
        refits = self.learner.refits
        failed: tuple[Event, ...] = ()
        try:
            self.learner.observe(step, x, value)
        except FitError as error:
            logger.warning(
                "%sthe refit failed, and the fit in force is kept: %s", self._about, error
            )
            self.learner.postpone_refit()
            self.learner.observe(step, x, value)
            failed = ("failed_refits",)
        if self.learner.refits == refits:
            return failed
        with self.learner.costs.spending("tuning"):
            rolled_back = self._guard.watch() if self._guard else False
        self._settle()
        if rolled_back:
            logger.warning("%sself-tuning was worse than before and was rolled back", self._about)
        return ("fits", "rollbacks") if rolled_back else ("fits",)

    def admit(self, samples: Samples) -> None:
        """Add rows that became known late to the next training set."""
        self.learner.admit(samples[: int(np.searchsorted(samples.t, self.newest, side="right"))])

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit at once."""
        self.learner.assign(values)
        if self._guard:
            self._guard.trust()
        self._settle()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `resumed`."""
        path = self.path
        return joined(
            {
                "learner": self.learner.state(),
                "guard": self._guard.state() if self._guard else {},
                "path": {"steps": path.steps, "values": path.values},
            }
        )

    def _settle(self) -> None:
        """Let a new fit learn the size of its errors, and add its hyperparameters to the path."""
        self.learner.learn_spread()
        self._path = [*self._path[-REMEMBERED + 1 :], (self.newest, self.learner.lam)]


def _frame(settings: Settings, costs: Costs) -> Frame[Any]:
    preset = settings.preset
    layout, horizon = preset.features.layout, settings.horizon
    return Frame(preset.model, layout, horizon, settings.train_size, settings.update_every, costs)


def _policy(settings: Settings, costs: Costs) -> Policy:
    """Return the policy of Algorithm 1 if there is a tuner, else the policy of Algorithm 2."""
    preset = settings.preset
    if settings.tuner is None:
        return Descending.of(
            preset.model.space,
            update_every=settings.update_every,
            step=preset.step_rule,
            coordinates=partial(chart_of, preset.coordinates),
            learn=settings.learn,
            costs=costs,
        )
    return Searching.of(
        preset.model,
        settings.tuner,
        train_size=settings.train_size,
        validation_size=settings.validation_size,
        tune_every=settings.tune_every or None,
        seed=settings.seed,
        costs=costs,
    )
