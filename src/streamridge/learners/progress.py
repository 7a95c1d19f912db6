"""The progress of a learner: everything that changes in it, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic

from streamridge.learners.policy import Fitted, Policy
from streamridge.learners.rows import Rows
from streamridge.models.base import FitT
from streamridge.samples import Samples


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
