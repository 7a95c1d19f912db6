"""The part of a learner that changes, the part that stays, and how one progress becomes the next.

A row is labelled by the values that come after it. Then it joins the window of the fit that
predicted it, and at the window's end the training set of the next fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import require_count, require_finite, require_shape
from streamridge.errors import InvalidInputError
from streamridge.learners.base import Fitted, Policy
from streamridge.learners.costs import Costs
from streamridge.learners.rows import (
    Row,
    Rows,
    complete,
    known_at_the_end,
    require_history,
    stack,
    waiting,
)
from streamridge.models.base import FitT, Model
from streamridge.samples import Layout, Samples, concatenate, in_order, require_width


@dataclass(frozen=True)
class Progress(Generic[FitT]):
    """Everything that changes in a learner; each observation replaces it as a whole.

    Parameters
    ----------
    current
        The fit in force.
    policy
        How hyperparameters are chosen, with all that it remembers.
    window
        Rows of the current fit with all labels known.
    waiting
        Rows of the current fit with labels still to come, NaN until then; at first the end of the
        history.
    retired
        The previous fit, while rows that it predicted wait for labels; else None.
    late, overdue
        Like `window` and `waiting`, but for earlier fits.
    admitted
        Rows of the past that became known late; they join the next training set.
    newest
        Time of the newest row.
    earlier
        Samples before the training set that are kept for searches.
    steps
        Observations since the last refit.
    refits
        Fits made so far.
    """

    current: Fitted[FitT]
    policy: Policy
    newest: float
    earlier: Samples
    window: Rows = ()
    waiting: Rows = ()
    retired: Fitted[FitT] | None = None
    late: Rows = ()
    overdue: Rows = ()
    admitted: Rows = ()
    steps: int = 0
    refits: int = 1

    def under(self, policy: Policy) -> Progress[FitT]:
        """Return the progress with another policy; itself if it has that one already."""
        return self if policy is self.policy else replace(self, policy=policy)


@dataclass(frozen=True)
class Frame(Generic[FitT]):
    """The constant part of a learner: its model, the form of its samples, and its cadence.

    Parameters
    ----------
    model
        The model that is fitted.
    layout, horizon
        Form of the samples: the blocks of x, and H, the number of labels.
    train_size
        N, the samples of a fit; fewer are used until there are N.
    update_every
        m, the steps between refits.
    costs
        Counter of the seconds spent on fitting and predicting.
    """

    model: Model[FitT]
    layout: Layout
    horizon: int
    train_size: int
    update_every: int
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        require_count("train_size", self.train_size)
        require_count("update_every", self.update_every)

    @classmethod
    def around(
        cls,
        history: Samples,
        model: Model[FitT],
        train_size: int,
        update_every: int,
        costs: Costs,
    ) -> Frame[FitT]:
        """Return the frame of a learner that starts from this history."""
        layout, horizon = history.inputs.layout, history.y.shape[1]
        return cls(model, layout, horizon, train_size, update_every, costs)

    def begun(self, history: Samples, policy: Policy) -> Progress[FitT]:
        """Return the progress after the first fit.

        Parameters
        ----------
        history
            Samples before the first prediction. Labels later than the last sample's time are not
            used before they are observed. With more than one horizon, times must count steps,
            because labels are matched to rows by time.
        policy
            How hyperparameters are chosen.
        """
        require_history(history, self.update_every)
        settled, rest = known_at_the_end(history)
        newest = float(history.t[-1])
        policy = policy.start(settled)
        earlier, samples = self._parted(settled, policy.look_back)
        with self.costs.spending("fitting"):
            fitted = Fitted(samples, policy.lam, self.model.fit(samples, policy.lam))
        return Progress(fitted, policy, newest, earlier=earlier, waiting=waiting(rest, newest))

    def row(self, t: float, x: ArrayLike) -> Row:
        """Return a checked row whose labels are not known yet."""
        features = require_finite("x", x)
        require_shape("x", features, (None,))
        require_width(features, self.layout)
        # The caller may fill the same array with the next features.
        return Row(t, features.copy(), np.full(self.horizon, np.nan))

    def require_step(self, t: float) -> None:
        """Raise if labels could not be matched to this time."""
        if self.horizon > 1 and not t.is_integer():
            raise InvalidInputError(f"time must be a whole number of steps, got {t:.15g}.")

    def taken(self, progress: Progress[FitT], t: float, rows: Rows, value: float) -> Progress[FitT]:
        """Return the progress with new rows, and with the value as a label where rows wait for it.

        A row that can no longer get all its labels is dropped and not learned from.
        """
        mine = [each.labelled(t, value) for each in progress.waiting + rows]
        earlier = [each.labelled(t, value) for each in progress.overdue]
        progress = replace(
            progress,
            newest=t,
            window=progress.window + complete(mine),
            waiting=waiting(mine, t),
            late=progress.late + complete(earlier),
            overdue=waiting(earlier, t),
            steps=progress.steps + 1,
        )
        if progress.retired is None or progress.overdue:
            return progress
        policy = progress.policy.absorb(progress.retired, self.stacked(progress.late))
        return replace(progress, retired=None, policy=policy)

    def renewed(
        self, progress: Progress[FitT], policy: Policy, retiring: Fitted[FitT] | None
    ) -> Progress[FitT]:
        """Return the progress with a new fit to the last N samples at the policy's hyperparameters.

        The fit `retiring` is kept while rows that it predicted wait for labels.
        """
        earlier, samples = self._parted(self.known(progress), policy.look_back)
        overdue = progress.overdue + progress.waiting
        retired = retiring if overdue else None
        lam, before = policy.lam, None if retired else progress.current.fit
        with self.costs.spending("fitting"):
            fit = self.model.fit(samples, lam, before)
        return Progress(
            current=Fitted(samples, lam, fit),
            policy=policy,
            newest=progress.newest,
            earlier=earlier,
            retired=retired,
            overdue=overdue,
            refits=progress.refits + 1,
        )

    def known(self, progress: Progress[FitT]) -> Samples:
        """Return all kept samples whose labels are known, in order of time."""
        fresh = self.stacked(progress.late + progress.window)
        samples = concatenate([progress.earlier, progress.current.samples, fresh])
        if progress.admitted:
            samples = in_order(concatenate([samples, self.stacked(progress.admitted)]))
        return samples

    def stacked(self, rows: Rows) -> Samples:
        """Return rows as samples."""
        return stack(rows, self.layout, self.horizon)

    def _parted(self, known: Samples, look_back: int) -> tuple[Samples, Samples]:
        """Return the samples to keep before the training set, and the training set."""
        samples = known[-self.train_size :]
        before = known[: len(known) - len(samples)]
        return before[len(before) - min(look_back, len(before)) :], samples
