"""Calibration: earlier errors correct the next forecast and set the band around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Vector, require_finite, require_shape
from streamridge.forecaster.bands import ConformalBands
from streamridge.forecaster.correction import ErrorCorrection
from streamridge.forecaster.issued import IssuedErrors, Trail
from streamridge.forecaster.levels import Level
from streamridge.forecaster.recent import RecentErrors
from streamridge.forecaster.unrest import Unrest
from streamridge.learners.state import joined, part


@dataclass(frozen=True)
class Made:
    """A forecast of a model, kept until all of its values are known.

    Parameters
    ----------
    step
        The first step that is forecast.
    raw, values, spreads
        (H,), the model's forecast, the corrected one, and the expected size of its errors.
    factors
        (H,), what unrest multiplied the sizes by that the model expected.
    means
        (L,), means of the last errors when the forecast was made; empty without a correction.
    """

    step: int
    raw: Vector
    values: Vector
    spreads: Vector
    factors: Vector
    means: Vector

    @property
    def calm(self) -> Vector:
        """Return the sizes of error that the model itself expects, without unrest; shape (H,)."""
        return self.spreads / self.factors

    def issued(self, values: Vector) -> Made:
        """Return the forecast with other values: those that are issued."""
        return Made(self.step, self.raw, values, self.spreads, self.factors, self.means)


@dataclass(frozen=True)
class Calibration:
    """The correction of a model's forecasts, and the bands around them.

    Parameters
    ----------
    correction
        Correction by the last errors; None leaves forecasts as the model makes them.
    bands
        How far the bands reach.
    errors
        The recent errors of the forecasts.
    unrest
        How much larger errors are of late than the model expects.
    trail
        How the forecasts since the last refit were corrected.
    pending
        Forecasts whose values are still to come, newest first.
    """

    correction: ErrorCorrection | None
    bands: ConformalBands
    errors: RecentErrors
    unrest: Unrest
    trail: Trail
    pending: tuple[Made, ...] = ()

    @classmethod
    def start(cls, horizon: int, level: Level, *, corrects: bool) -> Calibration:
        """Return the state before any error is known."""
        return cls(
            ErrorCorrection.start(horizon) if corrects else None,
            ConformalBands.start(horizon, level),
            RecentErrors.start(1),
            Unrest.start(horizon),
            Trail.start(horizon),
        )

    def made(self, step: int, raw: Vector, spreads: Vector) -> Made:
        """Return a model's forecast with its correction, and the sizes of error with unrest."""
        factors = self.unrest.factors()
        if self.correction is None:
            return Made(step, raw, raw, spreads * factors, factors, np.zeros(0))
        values, means = raw + self.correction.offsets(), self.correction.means
        return Made(step, raw, values, spreads * factors, factors, means)

    def observe(
        self,
        step: int,
        value: float,
        made: Made | None,
        *,
        learns: bool,
        plausible: bool = True,
    ) -> Calibration:
        """Return the state after a value; `made` is its forecast, if a model made one.

        The bands learn from every value, the correction only from values that the model learns
        from. A glitch that is not plausible would swamp what is of late, and is left out there.
        """
        pending = self.pending if made is None else (made, *self.pending)
        trail = self._trail(step) if made is not None and learns else self.trail
        correction, bands, unrest = self.correction, self.bands, self.unrest
        horizon, sizes = len(bands.seen), []
        for each in pending:
            h = step - each.step
            if h >= horizon:
                continue
            error = value - float(each.values[h])
            sizes.append(abs(error))
            spread = float(each.spreads[h])
            bands = bands.observe(h, error, spread)
            if plausible:
                unrest = unrest.observe(h, abs(error) * float(each.factors[h]) / spread)
            if correction is not None and learns:
                correction = correction.learn(h, value - float(each.raw[h]), each.means)
        if correction is not None:
            said = None if made is None or not learns else value - float(made.raw[0])
            correction = correction.forget() if said is None else correction.observe(said)
        waiting = tuple(each for each in pending if step - each.step < horizon - 1)
        size = sum(sizes) / len(sizes) if sizes and plausible else np.nan
        errors = self.errors.observe(np.array([size]))
        return Calibration(correction, bands, errors, unrest, trail, waiting)

    def _trail(self, step: int) -> Trail:
        """Return the trail with the forecast that was made for a step just before it."""
        if self.correction is None:
            return self.trail
        return self.trail.after(step, self.correction.pulls(), self.correction.offsets())

    def renewed(self, step: int) -> Calibration:
        """Return the state after a refit at a step; forecasts that wait for values stay known."""
        return replace(self, trail=self.trail.since(step - len(self.bands.seen) + 1))

    def issued(self, times: Vector) -> IssuedErrors | None:
        """Return the loss of forecasts at these times as they were issued; None if as made."""
        return None if self.correction is None else self.trail.loss(times)

    def pass_over(self, steps: int = 1) -> Calibration:
        """Return the state after steps without a value."""
        return replace(self, correction=self.correction and self.correction.forget(steps))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return joined(
            {
                "bands": self.bands.state(),
                "errors": self.errors.state(),
                "unrest": self.unrest.state(),
                "trail": self.trail.state(),
                "correction": self.correction.state() if self.correction else {},
                "pending": {
                    "steps": np.array([made.step for made in self.pending], dtype=np.int64),
                    **{
                        name: np.array([getattr(made, name) for made in self.pending]).reshape(rows)
                        for name, rows in self._forms(len(self.pending)).items()
                    },
                },
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Calibration:
        """Return the calibration with a saved state of the same horizon and levels."""
        pending = part(state, "pending")
        columns = []
        for name, form in self._forms(len(pending["steps"])).items():
            columns.append(require_finite(name, pending[name]))
            require_shape("pending", columns[-1], form)
        made = zip(pending["steps"].tolist(), *columns, strict=True)
        return Calibration(
            self.correction and self.correction.restore(part(state, "correction")),
            self.bands.restore(part(state, "bands")),
            self.errors.restore(part(state, "errors")),
            self.unrest.restore(part(state, "unrest")),
            self.trail.restore(part(state, "trail")),
            tuple(Made(*each) for each in made),
        )

    def _forms(self, count: int) -> dict[str, tuple[int, int]]:
        """Return the shapes of what is kept of so many forecasts."""
        each = (count, len(self.bands.seen))
        means = (count, len(self.correction.means) if self.correction else 0)
        return {"raw": each, "values": each, "spreads": each, "factors": each, "means": means}
