"""Algorithm 1: the rolling protocol. Tune every n steps on the past, refit every m.

Between a tuning and the next refit the fit in force stays; forecasts are made whenever one is asked
for. So forecasting, refitting and tuning each have their own cadence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamridge.arrays import require_count
from streamridge.hyperparameters.feasible import Chart
from streamridge.learners.lazy_descent import ConstantStep, LazyDescent
from streamridge.learners.progress import Progress, Tally
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT, Model
from streamridge.models.timed import Costs
from streamridge.samples import Samples
from streamridge.tuners.backtest import Backtest, holding, split
from streamridge.tuners.base import Tuner

# A backtest on fewer samples says nothing.
LEAST_SAMPLES = 24


class RollingLearner(StreamLearner[FitT]):
    """Predicts a stream with hyperparameters that a tuner finds on its past, again and again.

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
        Where the seconds of searches are counted.

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
        self._tuner = tuner
        self._tune_every = None if tune_every is None else require_count("tune_every", tune_every)
        self._validation_size = require_count("validation_size", validation_size)
        self._seed = require_count("seed", seed, least=0)
        self._costs = Costs() if costs is None else costs
        super().__init__(
            model,
            history,
            train_size=train_size,
            update_every=update_every,
            step=ConstantStep(1.0),  # no gradient is ever added to its descent
            coordinates=Chart.natural,
            keep=self._validation_size,
        )

    @property
    def costs(self) -> Costs:
        """Return where the seconds of searches are counted."""
        return self._costs

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters where they are, whatever a search has found for the next refit."""
        super().freeze(*names)
        progress = self._progress
        held = self._space.groups_of(names)
        z = np.where(held, progress.current.lam, progress.descent.z)
        self._progress = replace(progress, descent=replace(progress.descent, z=z))

    def _started(self, descent: LazyDescent, known: Samples) -> tuple[LazyDescent, Tally]:
        return self._search(descent, Tally(), known)

    def _tuned(self, progress: Progress[FitT]) -> Progress[FitT]:
        if not self._is_due(progress):
            return progress
        known = self._known(progress)
        descent, tally = self._search(progress.descent, progress.tally, known)
        if tally.tunings == progress.tally.tunings:
            return progress  # too little is known: the search stays due
        return replace(progress, descent=descent, tally=tally, untuned=0)

    def _is_due(self, progress: Progress[FitT]) -> bool:
        if progress.tally.tunings == 0:  # the history was too short for the first search
            return True
        return self._tune_every is not None and progress.untuned >= self._tune_every

    def _search(
        self, descent: LazyDescent, tally: Tally, known: Samples
    ) -> tuple[LazyDescent, Tally]:
        """Return where a search leads, and what all have cost; frozen hyperparameters stay.

        Where too little is known for one, nothing has changed.
        """
        # Labels that reach into the time of the validation set cost the fits H - 1 samples.
        if len(known) < LEAST_SAMPLES + 2 * (known.y.shape[1] - 1):
            return descent, tally
        lam = descent.z
        space = holding(self._space, lam, descent.reach == 0)
        samples = split(known, self._train_size, self._validation_size)
        backtest = Backtest(self._model, *samples, space)
        rng = np.random.default_rng([self._seed, tally.tunings])
        with self._costs.spending("tuning"):
            found = self._tuner.tune(backtest, lam, rng)
        return descent.moved_to(found.lam), tally.after(found.fits, found.gradients)
