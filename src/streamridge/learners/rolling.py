"""Algorithm 1, the rolling protocol: tune on the past every n steps, refit every m steps.

Between a tuning and the next refit, the fit in force stays. A forecast is made whenever one is
asked for. So forecasting, refitting and tuning each have their own cadence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_shape
from streamridge.hyperparameters.feasible import require_feasible
from streamridge.hyperparameters.space import Space
from streamridge.learners.base import Tally
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import Fitted
from streamridge.learners.frame import Frame
from streamridge.learners.stream import StreamLearner
from streamridge.learners.workspace import Workspace
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
        The model that a search fits.
    tuner
        The search.
    found
        (d,), the result of the last search.
    held
        (d,), mask of the hyperparameters that are not searched.
    train_size, validation_size
        How many samples a search fits, and how many of the latest it forecasts, which are at most
        half of the known samples.
    tune_every
        n, the steps between searches; None searches once, as soon as enough is known.
    seed
        Seed of the tuner's random draws.
    costs
        Counter of the seconds spent on searches.
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
        return self._space.feasible.project(self.found)  # rounding may move weights off their sum

    @property
    def skipped(self) -> int:
        """Return zero: there are no moves."""
        return 0

    @property
    def learns(self) -> bool:
        """Return False: it learns from searches only."""
        return False

    @property
    def look_back(self) -> int:
        """Return the size of the validation set."""
        return self.validation_size

    def start(self, known: Samples) -> Self:
        """Return the policy after the first search, if enough is known."""
        return self._searched(known)

    def waited(self) -> Self:
        """Return the policy after one more observation."""
        return replace(self, untuned=self.untuned + 1)

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy after a search, if one is due; it stays due if too little is known."""
        return self._searched(known()) if self._is_due else self

    def absorb(self, fitted: Fitted[Any], window: Samples) -> Self:
        """Return the policy unchanged: it learns from searches only."""
        return self

    def move(self) -> Self:
        """Return the policy unchanged: the refit uses the result of the last search."""
        return self

    def settle(self) -> Self:
        """Return the policy unchanged: a search has no watcher."""
        return self

    def put(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, until the next search."""
        return replace(self, found=require_feasible(lam, self._space.feasible))

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy that holds the chosen hyperparameters at lam, whatever was found."""
        return replace(self, held=self.held | chosen, found=np.where(chosen, lam, self.found))

    def free(self, chosen: Mask) -> Self:
        """Return the policy that searches the chosen hyperparameters again."""
        return replace(self, held=self.held & ~chosen)

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, for `restore`."""
        return {
            "found": self.found,
            "held": self.held.astype(np.float64),
            "untuned": self.untuned,
            **asdict(self.tally),
        }

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy with the state of another one of the same settings."""
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
        """Return the policy with the result of a search; unchanged if too little is known."""
        # Fits lose H - 1 samples, whose labels reach into the time of the validation set.
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
    """A learner whose hyperparameters are searched on its past by a tuner, again and again.

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
        How many of the latest samples a search forecasts, with fits to the N before them; at most
        half of the known samples.
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
        workspace = Workspace()
        super().__init__(frame, frame.begun(history, policy, workspace), workspace)
