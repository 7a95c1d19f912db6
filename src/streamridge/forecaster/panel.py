"""The panel of a forecaster: what each expert says of the next steps, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.forecaster.correction import ErrorCorrection
from streamridge.forecaster.experts import Experts
from streamridge.learners.state import joined, part


@dataclass(frozen=True)
class Heard:
    """What all experts said of some steps, kept until all of the values are known.

    Parameters
    ----------
    step
        The first step that is forecast.
    raw
        (C, H), the companions' forecasts before their correction; NaN where there are none.
    means
        (C, L), means of their last errors when they made them.
    opinions
        (K + 1, H), the forecasts of all experts, and that of their committee; NaN for none.
    mixture
        (H,), the forecast that was issued.
    """

    step: int
    raw: Matrix
    means: Matrix
    opinions: Matrix
    mixture: Vector


@dataclass(frozen=True)
class Panel:
    """The experts of a forecaster, with the corrections of its model's companions.

    Parameters
    ----------
    experts
        How far each expert is trusted: the model, its companions, and the naive forecasts.
    corrections
        (C,), of each companion.
    pending
        What was said of steps whose values are still to come, newest first.
    """

    experts: Experts
    corrections: tuple[ErrorCorrection, ...]
    pending: tuple[Heard, ...] = ()

    @classmethod
    def start(
        cls, companions: tuple[str, ...], naive: tuple[str, ...], horizon: int, day: int
    ) -> Panel:
        """Return the panel before any error is known; `day` is the steps of a day."""
        experts = Experts.start(("model", *companions, *naive), horizon, day)
        return cls(experts, tuple(ErrorCorrection.start(horizon) for _ in companions))

    @property
    def horizon(self) -> int:
        """Return how many steps are forecast."""
        return len(self.experts.vote.largest)

    def corrected(self, raw: Matrix) -> Matrix:
        """Return the companions' forecasts, corrected by the last errors of each."""
        offsets = [correction.offsets() for correction in self.corrections]
        return raw + np.reshape(offsets, raw.shape)

    def heard(self, step: int, raw: Matrix, opinions: Matrix) -> Heard:
        """Return what was said, with what is made of it.

        Parameters
        ----------
        step
            The first step that is forecast.
        raw
            (C, H), the companions' forecasts before their correction.
        opinions
            (K, H), the forecasts of all experts; NaN for none.
        """
        means = [correction.means for correction in self.corrections]
        every = self.experts.heard(opinions)
        mixture = self.experts.mixed(every)
        return Heard(step, raw, np.reshape(means, (len(raw), self._lives)), every, mixture)

    def weights(self, asleep: tuple[str, ...]) -> dict[str, float]:
        """Return the weights of the next step's forecasts by name, given who has none."""
        names = self.experts.names
        weights = self.experts.weights(np.array([name not in asleep for name in names]))[0]
        return dict(zip(names, weights.tolist(), strict=True))

    def observe(
        self, step: int, value: float, heard: Heard | None, *, learns: bool, plausible: bool
    ) -> Panel:
        """Return the panel after a value; `heard` is what was said of it, if there was a model.

        A glitch that is not plausible tells nothing of the experts. The corrections learn from
        values that the model learns from.
        """
        pending = self.pending if heard is None else (heard, *self.pending)
        experts, corrections = self.experts, self.corrections
        for each in pending:
            h = step - each.step
            if h >= self.horizon:
                continue
            if plausible:
                experts = experts.observe(h, each.opinions[:, h], float(each.mixture[h]), value)
            if learns:
                corrections = _learned(corrections, h, value - each.raw[:, h], each.means)
        said = None if heard is None or not learns else value - heard.raw[:, 0]
        waiting = tuple(each for each in pending if step - each.step < self.horizon - 1)
        return Panel(experts, _told(corrections, said), waiting)

    def pass_over(self, steps: int = 1) -> Panel:
        """Return the panel after steps without a value."""
        return replace(self, corrections=tuple(each.forget(steps) for each in self.corrections))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        named = {str(at): each.state() for at, each in enumerate(self.corrections)}
        kept = {
            name: np.array([getattr(heard, name) for heard in self.pending]).reshape(form)
            for name, form in self._forms(len(self.pending)).items()
        }
        return joined(
            {
                "experts": self.experts.state(),
                "corrections": joined(named),
                "pending": {"steps": np.array([each.step for each in self.pending], int), **kept},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Panel:
        """Return the panel with a saved state of the same experts; unchanged if there is none."""
        if not state:
            return self
        pending, saved = part(state, "pending"), part(state, "corrections")
        columns = []
        for name, form in self._forms(len(pending["steps"])).items():
            columns.append(np.asarray(pending[name], dtype=np.float64))
            require_shape("pending", columns[-1], form)
        require_finite("mixture", columns[-1])
        heard = zip(pending["steps"].tolist(), *columns, strict=True)
        return Panel(
            self.experts.restore(part(state, "experts")),
            tuple(each.restore(part(saved, str(at))) for at, each in enumerate(self.corrections)),
            tuple(Heard(*each) for each in heard),
        )

    @property
    def _lives(self) -> int:
        """Return how many means each companion's correction has; 0 without companions."""
        return len(self.corrections[0].means) if self.corrections else 0

    def _forms(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of what is kept of so many forecasts."""
        companions, horizon = len(self.corrections), self.horizon
        return {
            "raw": (count, companions, horizon),
            "means": (count, companions, self._lives),
            "opinions": (count, len(self.experts.names) + 1, horizon),
            "mixture": (count, horizon),
        }


def _learned(
    corrections: tuple[ErrorCorrection, ...], horizon: int, errors: Vector, means: Matrix
) -> tuple[ErrorCorrection, ...]:
    """Return corrections after the errors of forecasts are known; NaN is none."""
    return tuple(
        each if np.isnan(error) else each.learn(horizon, error, mean)
        for each, error, mean in zip(corrections, errors.tolist(), means, strict=True)
    )


def _told(
    corrections: tuple[ErrorCorrection, ...], errors: Vector | None
) -> tuple[ErrorCorrection, ...]:
    """Return corrections after the errors one step ahead; None or NaN is none."""
    said = np.full(len(corrections), np.nan) if errors is None else errors
    return tuple(
        each.forget() if np.isnan(error) else each.observe(error)
        for each, error in zip(corrections, said.tolist(), strict=True)
    )
