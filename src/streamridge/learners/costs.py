"""The cost of a learner: the seconds of tuning, fitting and predicting.

They are processor seconds of the calling thread, with linear algebra on one thread. What else the
machine does meanwhile does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time


@dataclass
class Costs:
    """The seconds spent on each kind of work."""

    tuning: float = 0.0
    fitting: float = 0.0
    predicting: float = 0.0

    def __post_init__(self) -> None:
        self.is_counting = False

    @property
    def total(self) -> float:
        """Return the sum of all seconds."""
        return self.tuning + self.fitting + self.predicting

    def spending(self, kind: str) -> Spending:
        """Count the seconds of a `with` block as "tuning", "fitting" or "predicting".

        A block within a block that is already counted adds nothing of its own: a fit made by
        tuning counts as tuning.
        """
        return Spending(self, kind)


class Spending:
    """A `with` block whose seconds are counted; written out, for every forecast passes one."""

    __slots__ = ("_costs", "_kind", "_start")

    def __init__(self, costs: Costs, kind: str) -> None:
        self._costs = costs
        self._kind = kind
        self._start: float | None = None  # None within a block that is already counted

    def __enter__(self) -> None:
        if not self._costs.is_counting:
            self._costs.is_counting = True
            self._start = thread_time()

    def __exit__(self, *_: object) -> None:
        if self._start is not None:
            costs, spent = self._costs, thread_time() - self._start
            costs.is_counting = False
            setattr(costs, self._kind, getattr(costs, self._kind) + spent)
