"""A model that tunes itself and is watched: the learner, its guard, and the path it has taken."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError, NotPositiveDefiniteError, listed
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.state import joined, part
from streamridge.hyperparameters.feasible import chart_of
from streamridge.learners.guard import Guard
from streamridge.learners.online import OnlineLearner
from streamridge.learners.rolling import RollingLearner
from streamridge.learners.stream import StreamLearner
from streamridge.models.timed import Costs, TimedModel
from streamridge.samples import Samples

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # what is not asked for is not printed

# How many refits are remembered in the path of the hyperparameters: about a year of days.
REMEMBERED = 400

# What is counted: names of happenings.
Event = Literal["fits", "rollbacks", "failed_refits"]


@dataclass(frozen=True)
class HyperparameterPath:
    """Is where hyperparameters have been, refit by refit.

    Parameters
    ----------
    steps
        (n,), the step of the refit.
    names
        Of the hyperparameters.
    values
        (n, d).
    """

    steps: NDArray[np.int64]
    names: tuple[str, ...]
    values: Matrix

    def __getitem__(self, name: str) -> Vector:
        if name not in self.names:
            raise InvalidInputError(
                f"hyperparameter must be one of {listed(self.names)}, got {name!r}."
            )
        return self.values[:, self.names.index(name)]


class SelfTuningModel:
    """Forecasts rows while it learns its hyperparameters from its own errors.

    Parameters
    ----------
    settings
        Model, sizes and cadence.
    history
        What the first fit is made on.
    costs
        Where seconds are counted.
    """

    def __init__(self, settings: Settings, history: Samples, costs: Costs) -> None:
        self._learner = _make_learner(settings, history, costs)
        # A search compares itself with where it began; only steps along gradients can go astray.
        watched = settings.guard and settings.learn and settings.tuner is None
        self._guard = Guard(settings.preset.model, self._learner) if watched else None
        self._costs = costs
        self._learn_spread()
        self._path = [(self.newest, self._learner.lam)]

    @property
    def newest(self) -> int:
        """Return the step of the latest value."""
        return int(self._learner.newest)

    @property
    def learner(self) -> StreamLearner[Any]:
        """Return the learner itself."""
        return self._learner

    @property
    def path(self) -> HyperparameterPath:
        """Return where the hyperparameters have been."""
        steps, values = zip(*self._path, strict=True)
        names = tuple(self._learner.hyperparameters)
        return HyperparameterPath(np.array(steps), names, np.array(values))

    def predict(self, step: int, x: Vector) -> tuple[Vector, Vector]:
        """Return the forecasts of a row, and the size of error to expect of each."""
        return self._learner.predict_with_spread(step, x)

    def observe(self, step: int, x: Vector | None, value: float) -> tuple[Event, ...]:
        """Learn from a value, and return what happened."""
        refits = self._learner.refits
        failed: tuple[Event, ...] = ()
        try:
            self._learner.observe(step, x, value)
        except NotPositiveDefiniteError as error:
            logger.warning("the fit in force is kept: %s", error)
            self._learner.postpone_refit()
            self._learner.observe(step, x, value)
            failed = ("failed_refits",)
        return failed if self._learner.refits == refits else self._refitted()

    def pass_over(self, step: int) -> None:
        """Let a step go by that there is nothing to learn from."""
        self._learner.pass_over(step)

    def admit(self, samples: Samples) -> None:
        """Take rows that became known late into the next training set."""
        self._learner.admit(samples[: int(np.searchsorted(samples.t, self.newest, side="right"))])

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name."""
        self._learner.assign(values)
        self._learn_spread()
        if self._guard:
            self._guard.trust()
        self._remember()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that changes."""
        path = self.path
        return joined(
            {
                "learner": self._learner.state(),
                "guard": self._guard.state() if self._guard else {},
                "path": {"steps": path.steps, "values": path.values},
            }
        )

    @classmethod
    def resumed(
        cls, settings: Settings, state: Mapping[str, NDArray[Any]], costs: Costs
    ) -> SelfTuningModel:
        """Return the model whose state was taken, of the same settings."""
        rows = max(2, settings.horizon)
        layout = settings.preset.features.layout
        blank = Samples.of(
            np.arange(rows),
            np.zeros((rows, layout.width)),
            np.zeros((rows, settings.horizon)),
            layout,
        )
        model = cls(settings, blank, costs)  # a fit to nothing, which the state takes the place of
        model._restore(state)
        return model

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._learner.restore(part(state, "learner"))
        if self._guard:
            self._guard.restore(part(state, "guard"))
        steps, values = state["path.steps"], require_finite("path", state["path.values"])
        require_shape("path", values, (len(steps), len(self._learner.hyperparameters)))
        self._path = list(zip(steps.tolist(), values, strict=True))

    def _refitted(self) -> tuple[Event, ...]:
        with self._costs.spending("tuning"):
            rolled_back = self._guard.watch() if self._guard else False
        self._learn_spread()
        self._remember()
        if rolled_back:
            logger.warning("self-tuning was worse than its own past and was rolled back")
        return ("fits", "rollbacks") if rolled_back else ("fits",)

    def _learn_spread(self) -> None:
        """Let the new fit learn the size of its errors, while its factor is there.

        A factor that is made again elsewhere in memory gives other last bits for several horizons.
        """
        self._learner.fit.predict_with_spread(self._learner.training[-1:].inputs)

    def _remember(self) -> None:
        self._path = [*self._path[-REMEMBERED + 1 :], (self.newest, self._learner.lam)]


def _make_learner(settings: Settings, history: Samples, costs: Costs) -> StreamLearner[Any]:
    """Return the learner of Algorithm 1 where there is a tuner, else that of Algorithm 2."""
    preset = settings.preset
    model = TimedModel(preset.model, costs)
    if settings.tuner is None:
        return OnlineLearner(
            model,
            history,
            train_size=settings.train_size,
            update_every=settings.update_every,
            step=preset.step_rule,
            coordinates=partial(chart_of, preset.coordinates),
            learn=settings.learn,
        )
    return RollingLearner(
        model,
        history,
        settings.tuner,
        train_size=settings.train_size,
        update_every=settings.update_every,
        tune_every=settings.tune_every or None,
        validation_size=settings.validation_size,
        seed=settings.seed,
        costs=costs,
    )
