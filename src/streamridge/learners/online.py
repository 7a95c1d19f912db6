"""Algorithm 2: online hyperparameter learning, over any model with a hyper-gradient.

Each step: predict with the fit in force, observe the label, remember both. Every m steps: add up
the gradients of the window's losses, move the hyperparameters, refit on the last N samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.hyperparameters.coordinates import Chart
from streamridge.hyperparameters.feasible import Product
from streamridge.hyperparameters.space import Space
from streamridge.kernels.periodic import PERIOD_TRUST
from streamridge.learners.base import Tally
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import Fitted
from streamridge.learners.frame import Frame
from streamridge.learners.lazy_descent import LazyDescent
from streamridge.learners.steps import AdaGradStep, RateFree, StepRule
from streamridge.learners.stream import StreamLearner
from streamridge.learners.workspace import Workspace
from streamridge.models.base import FitT, Model, WindowLoss
from streamridge.samples import Samples

# Called with the coordinates z of a fit and the gradients of rows that it predicted.
Watcher = Callable[[Vector, Matrix], None]
# Called with the times of rows; it returns the loss of their errors, None for squared errors.
Losses = Callable[[Vector], WindowLoss | None]


@dataclass(frozen=True)
class Descending:
    """The policy of Algorithm 2: hyperparameters follow the gradient of the learner's own errors.

    Parameters
    ----------
    space
        The space of the hyperparameters.
    chart
        The coordinates in which they move.
    descent
        Algorithm 3 on these coordinates.
    learns
        False keeps every hyperparameter fixed and computes no gradient.
    watch
        Function that is given the gradient of every single step, if any.
    unseen
        What `watch` has not been given yet.
    losses
        Function that gives the loss of rows by their times, where forecasts are not issued as the
        model makes them; None is squared errors.
    """

    space: Space
    chart: Chart
    descent: LazyDescent
    learns: bool = True
    watch: Watcher | None = None
    unseen: tuple[tuple[Vector, Matrix], ...] = ()
    losses: Losses | None = None

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
        losses: Losses | None = None,
    ) -> Descending:
        """Return the policy at the initial hyperparameters of a space."""
        chart = coordinates(space.feasible)
        descent = LazyDescent.start(
            chart.encode(space.values),
            chart.feasible,
            step or AdaGradStep(),
            update_every=update_every,
            reach=_reach(space, chart, step),
        )
        learns = learn and bool(space.learned.any())
        return cls(space, chart, descent, learns, watch, losses=losses)

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters at the descent's point, shape (d,)."""
        # exp(log(bound)) may miss the bound by rounding.
        return self.space.feasible.project(self.chart.decode(self.descent.z))

    @property
    def held(self) -> Mask:
        """Return a mask of the coordinates that cannot move, shape (d,)."""
        return np.asarray(self.descent.reach == 0)

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: one gradient per window, and no extra fit.

        With several horizons, a window's gradient is computed in two parts, as some labels are
        late.
        """
        return Tally(gradients=self.descent.moves + self.descent.skipped)

    @property
    def skipped(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""
        return self.descent.skipped

    @property
    def look_back(self) -> int:
        """Return zero: nothing before the training set is needed."""
        return 0

    def start(self, known: Samples) -> Self:
        """Return the policy unchanged: the first fit is made at the initial hyperparameters."""
        return self

    def waited(self) -> Self:
        """Return the policy unchanged: it counts moves, not observations."""
        return self

    def tune(self, known: Callable[[], Samples]) -> Self:
        """Return the policy unchanged: it moves only at the ends of windows."""
        return self

    def absorb(self, fitted: Fitted[Any], window: Samples) -> Self:
        """Return the policy with the gradients of a window that `fitted` predicted, lines 13-14."""
        if self.watch is None:
            loss = None if self.losses is None else self.losses(window.t)
            in_lam = fitted.gradient_of(window, loss)
            return self._added(self.chart.pull_back(fitted.lam, in_lam), len(window))
        each = self.chart.pull_back(fitted.lam, fitted.step_gradients(window))
        unseen = (*self.unseen, (self.chart.encode(fitted.lam), each))
        return replace(self._added(each.sum(axis=0), len(window)), unseen=unseen)

    def move(self) -> Self:
        """Return the policy after one projected step, lines 3 and 4."""
        return replace(self, descent=self.descent.move())

    def settle(self) -> Self:
        """Give the watcher what it has not seen yet, and return the policy after that."""
        if self.watch is None or not self.unseen:
            return self
        for z, gradients in self.unseen:
            self.watch(z, gradients)
        return replace(self, unseen=())

    def put(self, lam: Vector) -> Self:
        """Return the policy at other hyperparameters, with the gradients so far forgotten."""
        return replace(self, descent=self.descent.moved_to(self.chart.encode(lam)))

    def hold(self, chosen: Mask, lam: Vector) -> Self:
        """Return the policy whose chosen coordinates cannot move."""
        return self._with_reach(np.where(chosen, 0.0, self.descent.reach))

    def free(self, chosen: Mask) -> Self:
        """Return the policy whose chosen coordinates can move as far as at the start."""
        return self._with_reach(
            np.where(chosen, _reach(self.space, self.chart, self.descent.step), self.descent.reach)
        )

    def state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, for `restore`."""
        return dict(self.descent.state())

    def restore(self, state: Mapping[str, Matrix | float]) -> Self:
        """Return this policy with the state of another one of the same settings."""
        return replace(self, descent=self.descent.restore(state))

    def _added(self, g: Vector, count: int) -> Self:
        return replace(self, descent=self.descent.add(g, count))

    def _with_reach(self, reach: Vector) -> Self:
        return replace(self, descent=replace(self.descent, reach=reach))


def _reach(space: Space, chart: Chart, step: StepRule | None) -> Vector:
    """Return the largest change of each coordinate in one move, shape (d,).

    A rule without a rate moves every coordinate by some percent: much too far for a period.
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
        `Chart.log` moves positive hyperparameters in logarithms, `Chart.natural` as they are.
    learn
        False keeps every hyperparameter fixed and computes no gradient.
    watch
        Function that is called while learning, with the coordinates of the fit that made the
        forecasts and the gradient of every step. It is called at each window's end, and again once
        the labels that come after it are known.
    costs
        Counter of the seconds spent; a new one by default.

    Notes
    -----
    Paper: Algorithm 2. With more than one horizon, a row is learned from once its last label is
    known, with the gradient of the fit that predicted it.

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
        costs = Costs() if costs is None else costs
        policy = Descending.of(
            model.space,
            update_every=update_every,
            step=step,
            coordinates=coordinates,
            learn=learn,
            watch=watch,
        )
        frame = Frame.around(history, model, train_size, update_every, costs)
        workspace = Workspace()
        super().__init__(frame, frame.begun(history, policy, workspace), workspace)
