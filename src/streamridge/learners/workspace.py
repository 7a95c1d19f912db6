"""Memory for refits, which many learners can use in turn."""

from __future__ import annotations

from typing import Any

from streamridge.arrays import Vector
from streamridge.learners.fitted import Fitted
from streamridge.models.base import FitT, Model, TakesOver
from streamridge.models.joint import kind_of
from streamridge.samples import Samples


class Workspace:
    """The memory of the latest refits: large matrices, which the next refit takes over.

    A refit at N = 2880 fills about 130 MB. Give one workspace to many forecasters that are refitted
    one after the other, and this memory is taken once. Give one forecaster a workspace of its own,
    and the factor of its last refit is still there when the next one needs it. Results do not
    depend on it. It must not be used by two threads at a time.

    Examples
    --------
    >>> from datetime import datetime, timedelta
    >>> import streamridge as sr
    >>> forecaster, workspace = sr.Forecaster("1h", defer_refits=True), sr.Workspace()
    >>> for hour in range(80):
    ...     time = datetime(2021, 6, 13) + timedelta(hours=hour)
    ...     forecaster.observe(time, float(hour % 24))
    ...     if forecaster.refit_due:
    ...         forecaster.refit(workspace)
    >>> forecaster.counts["fits"]
    1
    """

    def __init__(self) -> None:
        # Fits that hold their matrices, and whose they are; those used last come last.
        self._solved: list[tuple[Fitted[Any], Any]] = []

    def solved(self, fitted: Fitted[FitT]) -> Fitted[FitT]:
        """Return a fit with its factor in memory: the one that is still there, or made again."""
        samples, lam = fitted.samples, fitted.lam
        fit = next((fit for owner, fit in self._solved if owner is fitted), None)
        if fit is None:
            fit = fitted.model.resume(samples, lam, fitted.numbers)
            spare = self._spare(fitted.model, None)
            if spare is not None and isinstance(fit, TakesOver):
                fit.take_over(spare)
            self._solved.append((fitted, fit))
        solved = Fitted.made(fitted.model, fitted.record, lam, fitted.since, (samples, fit))
        solved.refits_ago = fitted.refits_ago
        return solved

    def fit(
        self, model: Model[FitT], samples: Samples, lam: Vector, sparing: Fitted[FitT] | None = None
    ) -> FitT:
        """Return a model fitted in the memory of an earlier fit, but not in that of `sparing`."""
        return model.fit(samples, lam, self._spare(model, sparing))

    def own(self, fitted: Fitted[FitT]) -> None:
        """Remember whose fit was made last."""
        self._solved.append((fitted, fitted.fit))

    def clear(self) -> None:
        """Give all memory back."""
        self._solved = []

    def _spare(self, model: Model[FitT], sparing: Fitted[FitT] | None) -> FitT | None:
        """Return an earlier fit of such a model, whose memory may be taken; forget all others."""
        free = [fit for owner, fit in self._solved if self._fits(owner, model, sparing)]
        self._solved = [each for each in self._solved if each[0] is sparing]
        return free[0] if free else None

    @staticmethod
    def _fits(owner: Fitted[Any], model: Model[Any], sparing: Fitted[Any] | None) -> bool:
        return owner is not sparing and kind_of(owner.model) is kind_of(model)
