"""Algorithm 2: online hyperparameter learning, over any model with a hyper-gradient.

Each step: predict with the fit in force, observe the label, remember both. Every m steps: add up
the gradients of the window's losses, move the hyperparameters, refit on the last N samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.hyperparameters.feasible import Chart, Product
from streamridge.hyperparameters.space import Space
from streamridge.kernels.periodic import PERIOD_TRUST
from streamridge.learners.base import Costs, Tally
from streamridge.learners.lazy_descent import AdaGradStep, LazyDescent, RateFree, StepRule
from streamridge.learners.stream import StreamLearner
from streamridge.models.base import (
    FitT,
    Model,
    Tangents,
    WindowLoss,
)
from streamridge.samples import Samples

# Called with the coordinates z of a fit and the gradients of rows that it was not trained on.
Watcher = Callable[[Vector, Matrix], None]


@dataclass(frozen=True)
class GradientPolicy:
    """The policy of Algorithm 2: hyperparameters follow the gradient of the learner's errors."""

    space: Space
    chart: Chart  # the coordinates in which they move
    descent: LazyDescent  # Algorithm 3 on these coordinates
    learns: bool = True  # False keeps every hyperparameter fixed and computes no gradient
    # Function that is called with the gradient of every single step, if any.
    watch: Watcher | None = None
    # Gradients that `watch` has not been called with yet.
    unseen: tuple[tuple[Vector, Matrix], ...] = ()
    look_back: ClassVar[int] = 0  # no samples before the training set are needed
    search_due: ClassVar[bool] = False  # it does not search

    @classmethod
    def of(
        cls,
        space: Space,
        *,
        update_every: int,
        step: StepRule | None = None,
        coordinates: Callable[[Product], Chart] = Chart.log,
        learn: bool = True,
        watch: Watcher | None = None,
        usual: Vector | None = None,
        pull: float = 0.0,
    ) -> GradientPolicy:
        """Return the policy at the initial hyperparameters of a space.

        Each move undoes the share `pull` of the distance from the `usual` hyperparameters, which
        are the initial ones by default.
        """
        chart = coordinates(space.feasible)
        descent = LazyDescent.start(
            chart.encode(space.values),
            chart.feasible,
            step or AdaGradStep(),
            update_every=update_every,
            reach=_reach(space, chart, step),
            usual=None if usual is None else chart.encode(usual),
            pull=pull,
        )
        learns = learn and bool(space.learned.any())
        return cls(space, chart, descent, learns, watch)

    @property
    def lam(self) -> Vector:
        # exp(log(bound)) may miss the bound by rounding.
        return self.space.feasible.project(self.chart.decode(self.descent.z))

    @property
    def held(self) -> Mask:
        return np.asarray(self.descent.reach == 0)

    @property
    def tally(self) -> Tally:
        """Return the amount of tuning so far: one gradient per window, and no extra fit."""
        return Tally(gradients=self.descent.moves + self.descent.skipped)

    @property
    def skipped(self) -> int:
        return self.descent.skipped

    def searched(self, known: Samples) -> Self:
        return self

    def observed(self) -> Self:
        return self

    def learned(
        self,
        fit: Any,
        lam: Vector,
        window: Samples,
        tangents: Tangents | None,
        loss: WindowLoss | None,
    ) -> Self:
        """Return the policy with the gradients of a window by a fit, lines 13-14."""
        if self.watch is None:
            g = self.chart.pull_back(lam, fit.loss_and_gradient(window, tangents, loss)[1])
            return replace(self, descent=self.descent.add(g, len(window)))
        each = self.chart.pull_back(lam, fit.step_gradients(window, tangents))
        unseen = (*self.unseen, (self.chart.encode(lam), each))
        return replace(self, descent=self.descent.add(each.sum(axis=0), len(window)), unseen=unseen)

    def moved(self, windows: int = 1) -> Self:
        """Return the policy after one projected step, lines 3 and 4."""
        return replace(self, descent=self.descent.move(windows))

    def reported(self) -> Self:
        if self.watch is None or not self.unseen:
            return self
        for z, gradients in self.unseen:
            self.watch(z, gradients)
        return replace(self, unseen=())

    def moved_to(self, lam: Vector) -> Self:
        return replace(self, descent=self.descent.moved_to(self.chart.encode(lam)))

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        return self._with_reach(np.where(chosen, 0.0, self.descent.reach))

    def free(self, chosen: Mask) -> Self:
        return self._with_reach(
            np.where(chosen, _reach(self.space, self.chart, self.descent.step), self.descent.reach)
        )

    def state(self) -> dict[str, Matrix | float]:
        return dict(self.descent.state())

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        return replace(self, descent=self.descent.restore(state))

    def _with_reach(self, reach: Vector) -> Self:
        return replace(self, descent=replace(self.descent, reach=reach))


def _reach(space: Space, chart: Chart, step: StepRule | None) -> Vector:
    """Return the largest change of each coordinate in one move, shape (d,).

    A rule without a rate moves every coordinate by some percent, which is too far for a period.
    """
    trust = space.trust
    if isinstance(step, RateFree):
        trust = np.where(space.periods, np.minimum(trust, PERIOD_TRUST), trust)
    return chart.reach(chart.encode(space.values), trust)


class OnlineLearner(StreamLearner[FitT]):
    """A learner whose hyperparameters follow the gradient of its own errors.

    Parameters
    ----------
    model
        The model that is fitted; learning starts at its hyperparameters.
    history
        Samples before the first prediction; the number of their target columns is the horizon.
        Labels later than the last sample's time are not used before they are observed. With more
        than one horizon, times must count steps, because labels are matched to rows by time.
    train_size
        N, the samples of a fit; fewer are used until there are N.
    update_every
        m, the steps between moves of the hyperparameters and refits.
    step
        How far to move; `ConstantStep` is the paper's.
    coordinates
        `Chart.log` moves positive hyperparameters in logarithms, `Chart.natural` in own units.
    learn
        False keeps every hyperparameter fixed and computes no gradient.
    watch
        Function that is called at each window's end, with the coordinates of the fit in force and
        the gradient of every row that was learned from.
    costs
        Counter of the seconds spent; a new one by default.

    Notes
    -----
    Paper: Algorithm 2. A row is learned from once, at the end of the window in which its last label
    became known, with the gradient of the fit in force. With H horizons, the first H - 1 rows of a
    window were predicted by the fit before. The fit in force was not trained on them either.

    Examples
    --------
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
        costs: Costs | None = None,
    ) -> None:
        policy = GradientPolicy.of(
            model.space,
            update_every=update_every,
            step=step,
            coordinates=coordinates,
            learn=learn,
            watch=watch,
        )
        super().__init__(
            model,
            history,
            policy,
            train_size=train_size,
            update_every=update_every,
            costs=Costs() if costs is None else costs,
        )
