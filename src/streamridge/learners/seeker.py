"""A seeker of hyperparameters within a stream: when a start is searched, and searched again.

The first search is made as soon as enough rows are known. Learning then goes on from its result.
Another search may follow when the stream has changed: when the guard has rolled tuning back, or
when errors have been far above their usual size for days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import require_count, require_number
from streamridge.learners.base import Learner, Tally
from streamridge.learners.guard import put_in_force
from streamridge.tuners.start import LEAST_ROWS, StartSearch

# The first search waits for this many rows, or for a whole training set if that is smaller.
ENOUGH_ROWS = 960
# At least this many refits lie between two searches: a search takes about as long as three.
PAUSE = 28
# A window's mean squared error is far above the usual one if it exceeds it by this factor.
FAR_ABOVE = 3.0
# This many windows in a row far above the usual tell that the stream has changed.
PATIENCE = 4
# Share of a window in the usual error: a window counts half after three weeks of daily ones.
NEWS = 1 / 30


@dataclass(frozen=True)
class Surge:
    """The usual error of a window, and for how many windows errors have been far above it.

    Examples
    --------
    >>> surge = Surge().after(2.0).after(2.0)
    >>> for _ in range(4):
    ...     surge = surge.after(9.0)
    >>> surge.usual, surge.windows, surge.lasts
    (2.0, 4, True)
    """

    usual: float = np.inf
    windows: int = 0

    def after(self, error: float) -> Surge:
        """Return the surge after a window with this mean squared error; NaN changes nothing."""
        if np.isnan(error):
            return self
        if not np.isfinite(self.usual):
            return Surge(error)
        if error > FAR_ABOVE * self.usual:
            return replace(self, windows=self.windows + 1)
        return Surge((1 - NEWS) * self.usual + NEWS * error)

    @property
    def lasts(self) -> bool:
        """Return whether errors have been far above the usual ones for long enough."""
        return self.windows >= PATIENCE


class Seeker:
    """A watch over a learner that searches where it should start, now and after a change.

    Parameters
    ----------
    search
        How a start is searched.
    learner
        The learner that gets the result; call `watch` after each of its refits.
    train_size
        The rows of a whole training set.
    seed
        Seed of the search's random draws.
    constant
        Names of hyperparameters that are not searched: rows are made with them before a search.
    """

    def __init__(
        self,
        search: StartSearch,
        learner: Learner,
        *,
        train_size: int,
        seed: int,
        constant: tuple[str, ...] = (),
    ) -> None:
        self.tally = Tally()
        self._search = search
        self._learner = learner
        self._enough = max(LEAST_ROWS, min(ENOUGH_ROWS, train_size))
        self._seed = seed
        self._constant = constant
        self._refits = 0  # since the last search
        self._surge = Surge()

    def watch(self, error: float = np.nan, *, changed: bool = False) -> bool:
        """Search if it is time to, and return whether other hyperparameters came into force.

        Parameters
        ----------
        error
            The mean squared error of the window that has just ended, NaN if it is not known.
        changed
            Whether something else tells that the stream has changed.
        """
        self._refits += 1
        self._surge = self._surge.after(error)
        if not self.tally.tunings:
            is_due = len(self._learner.training) >= self._enough
        else:
            is_due = self._refits >= PAUSE and (changed or self._surge.lasts)
        return is_due and self._sought()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        tally, surge = self.tally, self._surge
        counts = [tally.tunings, tally.fits, tally.gradients, self._refits, surge.windows]
        return {"counts": np.array(counts), "usual": np.array(surge.usual)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state; the learner must have been restored before."""
        *tally, refits, windows = (
            require_count("counts", count, least=0) for count in state["counts"].tolist()
        )
        usual = float(state["usual"])  # infinite before the first window
        if usual != np.inf:
            require_number("usual", usual)
        self.tally, self._refits, self._surge = Tally(*tally), refits, Surge(usual, windows)

    def _sought(self) -> bool:
        """Search, and return whether the learner got the result."""
        learner, space = self._learner, self._search.model.space
        start, held = learner.lam, space.groups_of((*learner.frozen, *self._constant))
        rng = np.random.default_rng([self._seed, self.tally.tunings])
        found = self._search.tune(learner.training, start, held, rng)
        self.tally = self.tally.after(found.fits, found.gradients)
        self._refits, self._surge = 0, Surge()
        return not np.array_equal(found.lam, start) and put_in_force(learner, found.lam)
