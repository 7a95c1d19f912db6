"""Algorithm 2: online hyperparameter learning, over any model with a hyper-gradient.

Each step: predict with the fit in force, observe the label, remember both. Every m steps: add up
the gradients of the window's losses, move the hyperparameters, refit on the last N samples.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.feasible import Chart, Product
from streamridge.learners.lazy_descent import AdaGradStep, LazyDescent, StepRule
from streamridge.learners.progress import Fitted, Tally
from streamridge.learners.rows import Rows
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import FitT, Model
from streamridge.samples import Samples

# Called with the coordinates z of a fit and the gradients of rows that it predicted.
Watcher = Callable[[Vector, Matrix], None]


class OnlineLearner(StreamLearner[FitT]):
    """Predicts a stream while its hyperparameters follow the gradient of its own errors.

    Parameters
    ----------
    model
        What is fitted; its hyperparameters are where learning starts.
    history
        Samples before the first prediction; the number of their target columns is the horizon.
        Labels later than the last sample's time are not used before they are observed. With more
        than one horizon times count steps, for labels are matched to rows by them.
    train_size
        N, the samples of a fit; fewer are used until there are as many.
    update_every
        m, the steps between moves of the hyperparameters and refits.
    step
        How far to move; `ConstantStep` is the paper's.
    coordinates
        `Chart.log` moves positive hyperparameters in logarithms, `Chart.natural` as they are.
    learn
        False keeps every hyperparameter fixed and computes no gradient.
    watch
        Called while learning, at each window's end and once labels that came after it are there,
        with the coordinates of the fit that made the forecasts and the gradient of every step.

    Notes
    -----
    Paper: Algorithm 2. With more than one horizon a row is learned from once its last label is
    known, by the gradient of the fit that predicted it.

    Examples
    --------
    >>> import numpy as np
    >>> from streamridge.models.autoregressive import AutoregressiveRidge
    >>> y = np.sin(np.arange(60) / 3)
    >>> x = np.column_stack([y[1:-1], y[:-2]])  # the two values before each
    >>> history = Samples.of(np.arange(2, 42), x[:40], y[2:42])
    >>> learner = OnlineLearner(AutoregressiveRidge([1.0, 1.0]), history, update_every=4)
    >>> for t in range(42, 50):
    ...     forecast = learner.predict(t, x[t - 2])
    ...     learner.observe(t, x[t - 2], y[t])
    >>> learner.refits, learner.hyperparameters["penalties[0]"] < 1
    (3, True)
    """

    def __init__(
        self,
        model: Model[FitT],
        history: Samples,
        *,
        train_size: int = 2880,
        update_every: int = 96,
        step: StepRule | None = None,
        coordinates: Callable[[Product], Chart] = Chart.log,
        learn: bool = True,
        watch: Watcher | None = None,
    ) -> None:
        super().__init__(
            model,
            history,
            train_size=train_size,
            update_every=update_every,
            step=step or AdaGradStep(),
            coordinates=coordinates,
        )
        self._learns = learn and bool(self._space.learned.any())
        self._watch = watch
        self._unseen: list[tuple[Vector, Matrix]] = []  # what the watcher gets once all went well

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: a gradient per window, and no fit of its own.

        With several horizons a window's gradient is made in two parts, for labels that come late.
        """
        descent = self._progress.descent
        return Tally(gradients=descent.moves + descent.skipped)

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, and tell the watcher what was learned."""
        self._unseen.clear()
        super().observe(time, x, y)
        if self._watch is not None:
            for z, gradients in self._unseen:
                self._watch(z, gradients)

    def _moved(self, descent: LazyDescent) -> LazyDescent:
        """Return the descent after one projected step; lines 3 and 4."""
        return descent.move()

    def _absorb(self, descent: LazyDescent, fitted: Fitted[FitT], rows: Rows) -> LazyDescent:
        """Return the descent with the gradients of rows that `fitted` predicted; lines 13-14."""
        if not self._learns or not rows:
            return descent
        window = self._stack(rows)
        if self._watch is None:
            g = self._chart.pull_back(fitted.lam, fitted.fit.loss_and_gradient(window)[1])
        else:
            each = self._chart.pull_back(fitted.lam, fitted.fit.step_gradients(window))
            self._unseen.append((self._chart.encode(fitted.lam), each))
            g = each.sum(axis=0)
        return descent.add(g, len(rows))
