"""Algorithm 1: the rolling protocol. Tune every n steps on the past, refit every m.

Between a tuning and the next refit the fit in force stays; forecasts are made whenever one is asked
for. So forecasting, refitting and tuning each have their own cadence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_shape
from streamridge.hyperparameters.feasible import require_feasible
from streamridge.hyperparameters.space import Space
from streamridge.learners.costs import Costs
from streamridge.learners.frame import Frame
from streamridge.learners.policy import Fitted, Tally
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT, Model
from streamridge.samples import Samples
from streamridge.tuners.backtest import Backtest, split
from streamridge.tuners.base import Tuner

# A backtest on fewer samples says nothing.
LEAST_SAMPLES = 24


@dataclass(frozen=True)
class Searching:
    """The policy of Algorithm 1: a tuner searches hyperparameters on the past, again and again.

    Parameters
    ----------
    model
        What a search fits.
    tuner
        How to search.
    found
        (d,), where the last search has led.
    held
        (d,), which of them stay where they are.
    train_size, validation_size
        How many samples a search fits, and how many of the latest it forecasts; at most half of
        what is known.
    tune_every
        n, the steps between searches; None searches once, as soon as enough is known.
    seed
        Of the tuner's draws.
    costs
        Where the seconds of searches are counted.
    untuned
        Observations since the last search.
    tally
        What searches have cost so far.
    """

    model: Model[Any]
    tuner: Tuner
    found: Vector
    held: Mask
    train_size: int
    validation_size: int
    tune_every: int | None
    seed: int
    costs: Costs
    untuned: int = 0
    tally: Tally = field(default_factory=Tally)

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
    ) -> Searching:
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
        """Return the hyperparameters of the next fit, shape (d,)."""
        return self._space.feasible.project(self.found)  # weights may sum to one but for a rounding

    @property
    def skipped(self) -> int:
        """Return zero: there are no moves."""
        return 0

    @property
    def look_back(self) -> int:
        """Return the size of the validation set."""
        return self.validation_size

    def start(self, known: Samples) -> Self:
        """Return the policy after the first search, if enough is known."""
        return self._searched(known)

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy after a search, if one is due; with too little known it stays due."""
        waited = replace(self, untuned=self.untuned + 1)
        return waited._searched(known()) if waited._is_due else waited

    def absorb(self, fitted: Fitted[Any], window: Samples) -> Self:
        """Return the policy as it is: it learns from searches only."""
        return self

    def move(self) -> Self:
        """Return the policy as it is: the refit is made where the last search has led."""
        return self

    def settle(self) -> Self:
        """Return the policy as it is: nobody watches a search."""
        return self

    def put(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, until the next search."""
        return replace(self, found=require_feasible(lam, self._space.feasible))

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy with the chosen ones at lam, whatever a search found for them."""
        return replace(self, held=self.held | chosen, found=np.where(chosen, lam, self.found))

    def free(self, chosen: Mask) -> Self:
        """Return the policy that searches the chosen ones again."""
        return replace(self, held=self.held & ~chosen)

    def state(self) -> dict[str, Matrix | float]:
        """Return all that changes."""
        return {
            "found": self.found,
            "held": self.held.astype(np.float64),
            "untuned": self.untuned,
            **asdict(self.tally),
        }

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy at a state taken from one like it."""
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

    @property
    def _is_due(self) -> bool:
        if self.tally.tunings == 0:  # the history was too short for the first search
            return True
        return self.tune_every is not None and self.untuned >= self.tune_every

    def _searched(self, known: Samples) -> Self:
        """Return the policy where a search leads, or as it is where too little is known for one."""
        # Labels that reach into the time of the validation set cost the fits H - 1 samples.
        if len(known) < LEAST_SAMPLES + 2 * (known.y.shape[1] - 1):
            return self
        samples = split(known, self.train_size, self.validation_size)
        backtest = Backtest(self.model, *samples, self._space.holding(self.found, self.held))
        rng = np.random.default_rng([self.seed, self.tally.tunings])
        with self.costs.spending("tuning"):
            tuned = self.tuner.tune(backtest, self.found, rng)
        tally = self.tally.after(tuned.fits, tuned.gradients)
        return replace(self.put(tuned.lam), tally=tally, untuned=0)


class RollingLearner(StreamLearner[FitT]):
    """A learner with hyperparameters that a tuner finds on its past, again and again.

    Parameters
    ----------
    model
        What is fitted; its hyperparameters are where the first search starts.
    history
        Samples before the first prediction, as of `OnlineLearner`; the first search looks at them.
    tuner
        How to search.
    train_size, update_every
        N, the samples of a fit, and m, the steps between refits.
    tune_every
        n, the steps between searches; None searches once, at the start or as soon as enough is
        known.
    validation_size
        How many of the latest samples a search forecasts, with fits on the N before them; at most
        half of what is known.
    seed
        Of the tuner's draws.
    costs
        Where the seconds are counted.

    Notes
    -----
    Paper: Algorithm 1. A search sees no sample whose labels were not all observed before it.

    Examples
    --------
    >>> from streamridge.models.autoregressive import AutoregressiveRidge
    >>> from streamridge.tuners.random_search import RandomSearch
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
        policy = Searching.of(
            model,
            tuner,
            train_size=train_size,
            validation_size=validation_size,
            tune_every=tune_every,
            seed=seed,
            costs=costs,
        )
        frame = Frame.around(history, model, train_size, update_every, costs)
        super().__init__(frame, frame.begun(history, policy))
