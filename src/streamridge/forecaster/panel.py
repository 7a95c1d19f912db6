"""The panel of a forecaster: what each expert says of the next steps, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, require_count, require_finite, require_shape
from streamridge.forecaster.correction import KEEPS, ErrorCorrection
from streamridge.forecaster.experts import Experts
from streamridge.learners.state import joined, part

# Where the model and its companion stand among the experts.
DUEL = slice(0, 2)


@dataclass(frozen=True)
class Heard:
    """What all experts said of some steps, kept until all of the values are known.

    Parameters
    ----------
    step
        The first step that is forecast.
    raw
        (H,), the companion's forecast before its correction; NaN if there is none.
    means
        (L,), means of its last errors when it was made.
    opinions
        (K + G, H), the forecasts of all experts, and those of their committees; NaN for none.
    mixture
        (H,), the forecast that was issued.
    """

    step: int
    raw: Vector
    means: Vector
    opinions: Matrix
    mixture: Vector

    def issued(self, mixture: Vector) -> Heard:
        """Return what was said, with the forecast that is issued."""
        return Heard(self.step, self.raw, self.means, self.opinions, mixture)


@dataclass(frozen=True)
class Panel:
    """The experts of a forecaster, with the correction of its model's companion.

    Parameters
    ----------
    experts
        How far each expert is trusted: the model, its companion if it has one, and the naive
        forecasts.
    accompanied
        Whether the second expert is a companion of the model, the first one.
    correction
        Correction of the companion; None leaves its forecasts as it makes them.
    pending
        What was said of steps whose values are still to come, newest first.
    squares, seen
        (2,), sums of the squared errors of the model and of its companion since the last refit, and
        how many there were.
    """

    experts: Experts
    accompanied: bool
    correction: ErrorCorrection | None
    pending: tuple[Heard, ...] = ()
    squares: Vector = field(default_factory=lambda: np.zeros(2))
    seen: int = 0

    @classmethod
    def start(cls, experts: Experts, *, accompanied: bool, corrects: bool) -> Panel:
        """Return the panel before any error is known."""
        correction = ErrorCorrection.start(experts.horizon) if accompanied and corrects else None
        return cls(experts, accompanied, correction)

    def corrected(self, raw: Vector) -> Vector:
        """Return the companion's forecasts, corrected by its last errors."""
        return raw if self.correction is None else raw + self.correction.offsets()

    def heard(self, step: int, raw: Vector, opinions: Matrix) -> Heard:
        """Return what was said, with what is made of it.

        Parameters
        ----------
        step
            The first step that is forecast.
        raw
            (H,), the companion's forecasts before their correction.
        opinions
            (K, H), the forecasts of all experts; NaN for none.
        """
        every = self.experts.heard(opinions)
        return Heard(step, raw, self._means, every, self.experts.mixed(every))

    def weights(self, asleep: tuple[str, ...]) -> dict[str, float]:
        """Return the weights of the next step's forecasts by name, given who has none."""
        names = self.experts.names
        awake = np.array([name not in asleep for name in names]) if asleep else None
        return dict(zip(names, self.experts.weights(awake)[0].tolist(), strict=True))

    @property
    def losses(self) -> Vector | None:
        """Return the mean squared errors of model and companion since the last refit, (2,).

        None where none are known.
        """
        return self.squares / self.seen if self.seen else None

    def observe(
        self, step: int, value: float, heard: Heard | None, *, learns: bool, plausible: bool
    ) -> Panel:
        """Return the panel after a value; `heard` is what was said of it, if there was a model.

        A glitch that is not plausible tells nothing of the experts. The correction learns from
        values that the model learns from, and only by these are model and companion compared.
        """
        pending = self.pending if heard is None else (heard, *self.pending)
        experts, correction, horizon = self.experts, self.correction, self.experts.horizon
        squares, seen = self.squares, self.seen
        for each in pending:
            h = step - each.step
            if h >= horizon:
                continue
            if plausible:
                experts = experts.observe(h, each.opinions[:, h], float(each.mixture[h]), value)
            error = value - float(each.raw[h])
            if learns and self.accompanied and not isnan(error):
                squares, seen = squares + np.square(value - each.opinions[DUEL, h]), seen + 1
                if correction is not None:
                    correction = correction.learn(h, error, each.means)
        if correction is not None:
            said = nan if heard is None or not learns else value - float(heard.raw[0])
            correction = correction.forget() if isnan(said) else correction.observe(said)
        waiting = tuple(each for each in pending if step - each.step < horizon - 1)
        return Panel(experts, self.accompanied, correction, waiting, squares, seen)

    def renewed(self) -> Panel:
        """Return the panel after a refit: model and companion are compared anew."""
        return replace(self, squares=np.zeros(2), seen=0)

    def pass_over(self, steps: int = 1) -> Panel:
        """Return the panel after steps without a value."""
        return replace(self, correction=self.correction and self.correction.forget(steps))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        kept = {
            name: np.array([getattr(heard, name) for heard in self.pending]).reshape(form)
            for name, form in self._forms(len(self.pending)).items()
        }
        return joined(
            {
                "experts": self.experts.state(),
                "correction": {} if self.correction is None else self.correction.state(),
                "pending": {"steps": np.array([each.step for each in self.pending], int), **kept},
                "window": {"squares": self.squares, "seen": np.array(self.seen)},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Panel:
        """Return the panel with a saved state of the same experts; unchanged if there is none."""
        if not state:
            return self
        pending, window = part(state, "pending"), part(state, "window")
        columns = []
        for name, form in self._forms(len(pending["steps"])).items():
            columns.append(np.asarray(pending[name], dtype=np.float64))
            require_shape("pending", columns[-1], form)
        require_finite("mixture", columns[-1])
        heard = zip(pending["steps"].tolist(), *columns, strict=True)
        squares = require_finite("squares", window["squares"])
        require_shape("squares", squares, (2,))
        return Panel(
            self.experts.restore(part(state, "experts")),
            self.accompanied,
            self.correction and self.correction.restore(part(state, "correction")),
            tuple(Heard(*each) for each in heard),
            squares,
            require_count("seen", window["seen"], least=0),
        )

    @property
    def _means(self) -> Vector:
        """Return the means of the companion's last errors, (L,); zeros without one."""
        return np.zeros(len(KEEPS)) if self.correction is None else self.correction.means

    def _forms(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of what is kept of so many forecasts."""
        experts = self.experts
        heard = len(experts.names) + experts.count
        return {
            "raw": (count, self.experts.horizon),
            "means": (count, len(KEEPS)),
            "opinions": (count, heard, self.experts.horizon),
            "mixture": (count, self.experts.horizon),
        }
