"""All that changes in a learner, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from streamridge.learners.policy import Fitted, Policy
from streamridge.learners.rows import Rows
from streamridge.models.base import FitT
from streamridge.samples import Samples


@dataclass(frozen=True)
class Progress(Generic[FitT]):
    """All that changes in a learner; one observation replaces it whole.

    Parameters
    ----------
    current
        The fit in force.
    policy
        What is done about the hyperparameters, and where that stands.
    window
        Rows that fall to the current fit and whose labels are all known.
    waiting
        Rows that fall to it with labels to come, NaN until then; at first the end of the history.
    retired
        The fit before, while rows that it predicted wait for labels; else None.
    late, overdue
        What `window` and `waiting` are, for fits before the current one.
    admitted
        Rows of the past that became known later; they join the next training set.
    newest
        Time of the newest row.
    earlier
        Samples before the training set that are kept for a search to look back on.
    steps
        Observations since the refit.
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
