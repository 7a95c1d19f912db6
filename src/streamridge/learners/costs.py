"""The cost of a learner: the seconds of tuning, fitting and predicting.

They are processor seconds of the calling thread, with linear algebra on one thread. What else the
machine does meanwhile does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time


@dataclass
class Costs:
    """The seconds spent on each kind of work."""

    tuning: float = 0.0
    fitting: float = 0.0
    predicting: float = 0.0

    def __post_init__(self) -> None:
        self._counting = False

    @property
    def total(self) -> float:
        """Return the sum of all seconds."""
        return self.tuning + self.fitting + self.predicting

    @contextmanager
    def spending(self, kind: str) -> Iterator[None]:
        """Count the seconds of the block as "tuning", "fitting" or "predicting".

        A block inside another one is counted with the outer one: a fit made while tuning counts as
        tuning.
        """
        if self._counting:
            yield
            return
        self._counting = True
        start = thread_time()
        try:
            yield
        finally:
            self._counting = False
            setattr(self, kind, getattr(self, kind) + thread_time() - start)
