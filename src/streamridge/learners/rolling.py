"""Algorithm 1, the rolling protocol: tune on the past every n steps, refit every m steps.

Between a search and the next refit, the fit in force stays. Forecasting, refitting and searching
each have their own cadence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_shape
from streamridge.hyperparameters.feasible import require_feasible
from streamridge.hyperparameters.space import Space
from streamridge.learners.base import Costs, Tally
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT, Model, Tangents, WindowLoss
from streamridge.samples import Samples
from streamridge.tuners.base import Backtest, Tuner, split

# A backtest needs at least this number of samples.
LEAST_SAMPLES = 24


@dataclass(frozen=True)
class SearchPolicy:
    """The policy of Algorithm 1: a tuner searches hyperparameters on the past, repeatedly."""

    model: Model[Any]
    tuner: Tuner
    found: Vector  # (d,), the result of the last search
    held: Mask  # (d,), mask of the hyperparameters that are not searched
    # The number of samples that a search fits, and the number of latest samples that it forecasts,
    # at most half of the known samples.
    train_size: int
    validation_size: int
    # n, the steps between searches; None searches once, as soon as enough is known.
    tune_every: int | None
    seed: int  # seed of the tuner's random draws
    costs: Costs  # counter of the seconds spent on searches
    untuned: int = 0  # observations since the last search
    tally: Tally = field(default_factory=Tally)  # the amount of searching so far
    skipped: ClassVar[int] = 0  # there are no moves
    learns: ClassVar[bool] = False  # it learns from searches only

    @classmethod
    def of(
        cls,
        model: Model[Any],
        tuner: Tuner,
        *,
        train_size: int,
        validation_size: int,
        tune_every: int | None,
        seed: int = 0,
        costs: Costs | None = None,
    ) -> SearchPolicy:
        """Return the policy at the initial hyperparameters of a model, before any search."""
        initial = model.space.values
        return cls(
            model,
            tuner,
            initial,
            np.zeros(len(initial), dtype=bool),
            require_count("train_size", train_size),
            require_count("validation_size", validation_size),
            None if tune_every is None else require_count("tune_every", tune_every),
            require_count("seed", seed, least=0),
            Costs() if costs is None else costs,
        )

    @property
    def lam(self) -> Vector:
        return self._space.feasible.project(self.found)  # rounding may change the sum of weights

    @property
    def look_back(self) -> int:
        return self.validation_size

    @property
    def search_due(self) -> bool:
        if self.tally.tunings == 0:  # the history was too short for the first search
            return True
        return self.tune_every is not None and self.untuned >= self.tune_every

    def observed(self) -> Self:
        return replace(self, untuned=self.untuned + 1)

    def learned(
        self,
        fit: Any,
        lam: Vector,
        window: Samples,
        tangents: Tangents | None,
        loss: WindowLoss | None,
    ) -> Self:
        return self

    def moved(self, windows: int = 1) -> Self:
        return self

    def reported(self) -> Self:
        return self

    def moved_to(self, lam: Vector) -> Self:
        return replace(self, found=require_feasible(lam, self._space.feasible))

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        return replace(self, held=self.held | chosen, found=np.where(chosen, lam, self.found))

    def free(self, chosen: Mask) -> Self:
        return replace(self, held=self.held & ~chosen)

    def state(self) -> dict[str, Matrix | float]:
        return {
            "found": self.found,
            "held": self.held.astype(np.float64),
            "untuned": self.untuned,
            **asdict(self.tally),
        }

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        held = np.asarray(state["held"], dtype=bool)
        require_shape("held", held, self.held.shape)
        counts = {
            each.name: require_count(each.name, state[each.name], least=0) for each in fields(Tally)
        }
        return replace(
            self,
            found=require_feasible(state["found"], self._space.feasible),
            held=held,
            untuned=require_count("untuned", state["untuned"], least=0),
            tally=Tally(**counts),
        )

    @property
    def _space(self) -> Space:
        return self.model.space

    def searched(self, known: Samples) -> Self:
        # Fits lose H - 1 samples, whose labels reach into the time of the validation set.
        if len(known) < LEAST_SAMPLES + 2 * (known.y.shape[1] - 1):
            return self
        samples = split(known, self.train_size, self.validation_size)
        backtest = Backtest(self.model, *samples, self._space.holding(self.found, self.held))
        rng = np.random.default_rng([self.seed, self.tally.tunings])
        with self.costs.spending("tuning"):
            tuned = self.tuner.tune(backtest, self.found, rng)
        tally = self.tally.plus(Tally(1, tuned.fits, tuned.gradients))
        return replace(self.moved_to(tuned.lam), tally=tally, untuned=0)


class RollingLearner(StreamLearner[FitT]):
    """A learner whose hyperparameters are searched on its past by a tuner, repeatedly.

    Parameters
    ----------
    model
        The model that is fitted; the first search starts at its hyperparameters.
    history
        Samples before the first prediction, as in `OnlineLearner`; the first search uses them.
    tuner
        The search.
    train_size, update_every
        N, the samples of a fit, and m, the steps between refits.
    tune_every
        n, the steps between searches; None searches once, at the start or as soon as enough is
        known.
    validation_size
        The number of latest samples that a search forecasts, with fits to the N samples before
        them; at most half of the known samples.
    seed
        Seed of the tuner's random draws.
    costs
        Counter of the seconds spent; a new one by default.

    Notes
    -----
    Paper: Algorithm 1. A search sees only samples whose labels were all observed before it.

    Examples
    --------
    >>> from streamridge.models.autoregressive import AutoregressiveRidge
    >>> from streamridge.tuners.candidates import RandomSearch
    >>> y = np.sin(np.arange(60) / 3)
    >>> x = np.column_stack([y[1:-1], y[:-2]])  # the two values before each
    >>> history = Samples.of(np.arange(2, 42), x[:40], y[2:42])
    >>> model = AutoregressiveRidge([1.0, 1.0])
    >>> learner = RollingLearner(model, history, RandomSearch(10), update_every=4, tune_every=8)
    >>> for t in range(42, 50):
    ...     forecast = learner.predict(t, x[t - 2])
    ...     learner.observe(t, x[t - 2], y[t])
    >>> learner.refits, learner.tally.tunings, learner.tally.fits
    (3, 2, 22)
    """

    def __init__(
        self,
        model: Model[FitT],
        history: Samples,
        tuner: Tuner,
        *,
        train_size: int = 2880,
        update_every: int = 96,
        tune_every: int | None = 672,
        validation_size: int = 2880,
        seed: int = 0,
        costs: Costs | None = None,
    ) -> None:
        costs = Costs() if costs is None else costs
        policy = SearchPolicy.of(
            model,
            tuner,
            train_size=train_size,
            validation_size=validation_size,
            tune_every=tune_every,
            seed=seed,
            costs=costs,
        )
        super().__init__(
            model,
            history,
            policy,
            train_size=train_size,
            update_every=update_every,
            costs=costs,
        )
