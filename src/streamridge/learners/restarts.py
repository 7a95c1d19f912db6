"""When self-tuning starts again: a rollback to its start, or a search for a better start.

Rollback. A small baseline fit at the initial hyperparameters forecasts every window too. The model
knows several times as much of the past. If it is still worse for long enough, tuning may have gone
astray, or only a short memory may be good for now. A backtest decides between the two settings on
equal terms, and the start is restored if it is better.

Search. The first search is made as soon as enough rows are known. Another search may follow when
the stream has changed: after a rollback, or when errors have been far above their usual size for
days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_count, require_finite, require_number, require_shape
from streamridge.learners.base import Tally
from streamridge.models.base import Model
from streamridge.samples import Samples
from streamridge.tuners.base import Backtest, split
from streamridge.tuners.start import LEAST_ROWS

# Tuning is worse when its recent squared errors exceed the baseline's by this share.
MARGIN = 0.02
# Tuning is tested when it was worse in this number of windows in a row.
DOUBTFUL_WINDOWS = 5
# The test forecasts the last eighth of a training set, by fits to a quarter before it.
FORECAST_PART, FITTED_PART = 8, 4
# Discount of squared errors per window: they count half after three windows.
MEMORY = 0.8

# The first search waits for this many rows, or for a whole training set if that is smaller.
ENOUGH_ROWS = 960
# At least this many refits lie between two searches: a search takes about as long as three.
REFITS_BETWEEN_SEARCHES = 28
# A window's mean squared error is far above the usual error if it exceeds it by this factor.
FAR_ABOVE = 3.0
# This many windows in a row far above the usual error indicate that the stream has changed.
CHANGED_WINDOWS = 4
# Share of a window in the usual error: a window counts half after three weeks of daily windows.
NEWS = 1 / 30


@dataclass(frozen=True)
class BaselineComparison:
    """The errors of the tuned model so far, compared with the errors of the baseline fit."""

    # (2,), discounted squared errors of the tuned model, and of the baseline.
    losses: Vector = field(default_factory=lambda: np.zeros(2))
    worse: int = 0  # windows in a row in which the tuned model was worse

    def after(self, losses: Vector) -> BaselineComparison:
        """Return the comparison after a window with these squared errors."""
        total = MEMORY * self.losses + losses
        worse = self.worse + 1 if total[0] > (1 + MARGIN) * total[1] else 0
        return replace(self, losses=total, worse=worse)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {"losses": self.losses, "worse": np.array(self.worse)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> BaselineComparison:
        """Return the comparison with a saved state."""
        losses = require_finite("losses", state["losses"])
        require_shape("losses", losses, (2,))
        return BaselineComparison(losses, int(state["worse"]))


def is_worse_in_backtest(model: Model[Any], known: Samples, tuned: Vector, start: Vector) -> bool:
    """Return whether tuned hyperparameters forecast the latest known samples worse than a start."""
    if len(known) < FORECAST_PART + known.y.shape[1]:
        return False
    parts = len(known) // FITTED_PART, len(known) // FORECAST_PART
    backtest = Backtest(model, *split(known, *parts))
    return backtest.loss(tuned) > (1 + MARGIN) * backtest.loss(start)


@dataclass(frozen=True)
class SearchSchedule:
    """When the start is searched: how often so far, how long ago, and how errors have been since.

    Examples
    --------
    >>> schedule = SearchSchedule().after_refit(2.0).after_refit(2.0)
    >>> for _ in range(4):
    ...     schedule = schedule.after_refit(9.0)
    >>> schedule.usual, schedule.windows
    (2.0, 4)
    """

    tally: Tally = field(default_factory=Tally)  # the work of the searches so far
    refits: int = 0  # refits since the last search
    usual: float = np.inf  # the usual mean squared error of a window; infinite before the first
    windows: int = 0  # for how many windows in a row errors have been far above it

    def after_refit(self, error: float = np.nan) -> SearchSchedule:
        """Return the schedule after a refit, whose window had this mean squared error, or NaN."""
        after = replace(self, refits=self.refits + 1)
        if np.isnan(error):
            return after
        if not np.isfinite(self.usual):
            return replace(after, usual=error, windows=0)
        if error > FAR_ABOVE * self.usual:
            return replace(after, windows=self.windows + 1)
        return replace(after, usual=(1 - NEWS) * self.usual + NEWS * error, windows=0)

    def is_due(self, rows: int, train_size: int, *, rolled_back: bool = False) -> bool:
        """Return whether to search now, given the rows of the fit and of a whole training set."""
        if not self.tally.tunings:
            return rows >= max(LEAST_ROWS, min(ENOUGH_ROWS, train_size))
        changed = rolled_back or self.windows >= CHANGED_WINDOWS
        return self.refits >= REFITS_BETWEEN_SEARCHES and changed

    def after_search(self, fits: int, gradients: int) -> SearchSchedule:
        """Return the schedule after a search that took this number of fits and gradients."""
        return SearchSchedule(self.tally.plus(Tally(1, fits, gradients)))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        tally = self.tally
        counts = [tally.tunings, tally.fits, tally.gradients, self.refits, self.windows]
        return {"counts": np.array(counts), "usual": np.array(self.usual)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> SearchSchedule:
        """Return the schedule with a saved state."""
        *tally, refits, windows = (
            require_count("counts", count, least=0) for count in state["counts"].tolist()
        )
        usual = float(state["usual"])  # infinite before the first window
        if usual != np.inf:
            require_number("usual", usual)
        return SearchSchedule(Tally(*tally), refits, usual, windows)
