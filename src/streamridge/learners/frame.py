"""The part of a learner that changes, the part that stays, and how progress is made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import require_count, require_finite, require_shape
from streamridge.errors import FitError, InvalidInputError
from streamridge.learners.base import Policy
from streamridge.learners.costs import Costs
from streamridge.learners.fitted import Fitted
from streamridge.learners.record import KeptRows, Record
from streamridge.learners.rows import Row, require_history
from streamridge.learners.workspace import Workspace
from streamridge.models.base import FitT, Model
from streamridge.samples import Layout, Samples, require_width


@dataclass(frozen=True)
class Progress(Generic[FitT]):
    """Everything that changes in a learner; each observation replaces it as a whole.

    Parameters
    ----------
    record
        The rows that can be learned from.
    current
        The fit in force.
    policy
        How hyperparameters are chosen, with all that it remembers.
    newest
        Time of the newest value.
    retired
        The previous fit, while rows that it predicted wait for labels; else None.
    steps
        Observations since the last refit.
    refits
        Fits made so far.
    """

    record: Record
    current: Fitted[FitT]
    policy: Policy
    newest: float
    retired: Fitted[FitT] | None = None
    steps: int = 0
    refits: int = 1

    @property
    def fits(self) -> tuple[Fitted[FitT], ...]:
        """Return the fit in force, and the retired one if there is one."""
        return (self.current,) if self.retired is None else (self.current, self.retired)

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
    deferred
        Whether refits and searches wait until they are asked for.
    """

    model: Model[FitT]
    layout: Layout
    horizon: int
    train_size: int
    update_every: int
    costs: Costs = field(default_factory=Costs)
    deferred: bool = False

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

    def begun(self, history: Samples, policy: Policy, workspace: Workspace) -> Progress[FitT]:
        """Return the progress after the first fit, which is made to kept rows.

        Parameters
        ----------
        history
            Samples before the first prediction. Labels later than the last sample's time are not
            used before they are observed. With more than one horizon, times must count steps,
            because labels are matched to rows by time.
        policy
            How hyperparameters are chosen.
        workspace
            Memory for the fit.
        """
        require_history(history, self.update_every)
        record = KeptRows.of(history)
        newest, since = float(history.t[-1]), float(record.settled.t[-1])
        return self.started(record, policy, workspace, newest, since)

    def started(
        self, record: Record, policy: Policy, workspace: Workspace, newest: float, since: float
    ) -> Progress[FitT]:
        """Return the progress after the first fit to a record.

        Rows later than `since` count as predicted by this fit.
        """
        policy = policy.start(record.latest(self._wanted(policy)))
        first = self._fitted(record, policy, since, workspace)
        return Progress(first.record, first, policy, newest)

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

    def known(self, progress: Progress[FitT]) -> Samples:
        """Return all samples that a search may use, in order of time."""
        return progress.record.latest(self._wanted(progress.policy) + progress.steps)

    def taken(
        self,
        progress: Progress[FitT],
        t: float,
        row: Row | None,
        value: float,
        workspace: Workspace,
    ) -> Progress[FitT]:
        """Return the progress after a value; it may be the last label of the retired fit's rows.

        These are then learned from, unless refits wait to be asked for: that would take as long.
        """
        progress = Progress(
            progress.record.taken(row, t, value),
            progress.current,
            progress.policy.waited(),
            t,
            progress.retired,
            progress.steps + 1,
            progress.refits,
        )
        labelled = t >= progress.current.since + self.horizon - 1
        return self._closed(progress, workspace) if labelled and not self.deferred else progress

    def refitted(self, progress: Progress[FitT], workspace: Workspace) -> Progress[FitT]:
        """Return the progress after its window was learned from, and a new fit was made."""
        progress = self._closed(progress, workspace)
        current = progress.current
        policy = self._absorbed(progress, current, current.since, progress.newest, workspace)
        return self.renewed(progress, policy.move(), current, workspace)

    def _closed(self, progress: Progress[FitT], workspace: Workspace) -> Progress[FitT]:
        """Return the progress after the rows of the retired fit were learned from, if any."""
        retired, until = progress.retired, progress.current.since
        if retired is None:
            return progress
        after = max(until - self.horizon + 1, retired.since)
        policy = self._absorbed(progress, retired, after, until, workspace)
        return replace(progress, retired=None, policy=policy)

    def renewed(
        self,
        progress: Progress[FitT],
        policy: Policy,
        retiring: Fitted[FitT] | None,
        workspace: Workspace,
    ) -> Progress[FitT]:
        """Return the progress with a new fit to the last N samples at the policy's hyperparameters.

        The fit `retiring` is kept while rows that it predicted wait for labels.
        """
        retired = retiring if self.horizon > 1 else None
        fitted = self._fitted(progress.record, policy, progress.newest, workspace, retired)
        if retired is not None:
            retired.refits_ago = 1
        return Progress(
            record=fitted.record,
            current=fitted,
            policy=policy,
            newest=progress.newest,
            retired=retired,
            refits=progress.refits + 1,
        )

    def _wanted(self, policy: Policy) -> int:
        """Return how many samples a fit and a search need at most, with H - 1 between the two."""
        return self.train_size + policy.look_back + self.horizon - 1

    def _absorbed(
        self,
        progress: Progress[FitT],
        fitted: Fitted[FitT],
        after: float,
        until: float,
        workspace: Workspace,
    ) -> Policy:
        """Return the policy after it has learned from rows of a span that `fitted` predicted."""
        policy = progress.policy
        if not policy.learns:
            return policy
        record = progress.record.under(fitted.lam)
        window = record.between(after, until, waited=fitted is progress.retired)
        if not len(window):
            return policy
        with self.costs.spending("tuning"):
            return policy.absorb(workspace.solved(fitted), window)

    def _fitted(
        self,
        record: Record,
        policy: Policy,
        since: float,
        workspace: Workspace,
        retired: Fitted[FitT] | None = None,
    ) -> Fitted[FitT]:
        """Return a new fit to the last N rows, with the record as it is after that."""
        lam = policy.lam
        record = record.under(lam)
        known = record.latest(self._wanted(policy))
        if not len(known):
            raise FitError(
                "a fit needs one row at least, got none: no reading of late can be used."
            )
        samples = known[-self.train_size :]
        with self.costs.spending("fitting"):
            fit = workspace.fit(self.model, samples, lam, retired)
        oldest = float(known.t[0]) if retired is None else min(float(known.t[0]), retired.first)
        fitted = Fitted.made(self.model, record.renewed(oldest), lam, since, (samples, fit))
        workspace.own(fitted)
        return fitted
