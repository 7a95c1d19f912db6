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
from streamridge.forecaster.levels import Level
from streamridge.forecaster.recent import RecentErrors
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
    mean
        Mean of the last errors when the forecast was made.
    """

    step: int
    raw: Vector
    values: Vector
    spreads: Vector
    mean: float


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
    pending
        Forecasts whose values are still to come, newest first.
    """

    correction: ErrorCorrection | None
    bands: ConformalBands
    errors: RecentErrors
    pending: tuple[Made, ...] = ()

    @classmethod
    def start(cls, horizon: int, level: Level, *, corrects: bool) -> Calibration:
        """Return the state before any error is known."""
        correction = ErrorCorrection.start(horizon) if corrects else None
        return cls(correction, ConformalBands.start(horizon, level), RecentErrors.start(1))

    def made(self, step: int, raw: Vector, spreads: Vector) -> Made:
        """Return a model's forecast with its correction."""
        if self.correction is None:
            return Made(step, raw, raw, spreads, 0.0)
        return Made(step, raw, raw + self.correction.offsets(), spreads, self.correction.mean)

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
        from. A glitch that is not plausible would swamp the mean of recent errors, and is left out.
        """
        pending = self.pending if made is None else (made, *self.pending)
        correction, bands = self.correction, self.bands
        horizon, sizes = len(bands.seen), []
        for each in pending:
            h = step - each.step
            if h >= horizon:
                continue
            error = value - float(each.values[h])
            sizes.append(abs(error))
            bands = bands.observe(h, error, float(each.spreads[h]))
            if correction is not None and learns:
                correction = correction.learn(h, value - float(each.raw[h]), each.mean)
        if correction is not None:
            said = None if made is None or not learns else value - float(made.raw[0])
            correction = correction.forget() if said is None else correction.observe(said)
        waiting = tuple(each for each in pending if step - each.step < horizon - 1)
        size = np.mean(sizes) if sizes and plausible else np.nan
        return Calibration(correction, bands, self.errors.observe(np.array([size])), waiting)

    def pass_over(self, steps: int = 1) -> Calibration:
        """Return the state after steps without a value."""
        return replace(self, correction=self.correction and self.correction.forget(steps))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        rows = (len(self.pending), len(self.bands.seen))
        return joined(
            {
                "bands": self.bands.state(),
                "errors": self.errors.state(),
                "correction": self.correction.state() if self.correction else {},
                "pending": {
                    "steps": np.array([made.step for made in self.pending], dtype=np.int64),
                    "means": np.array([made.mean for made in self.pending], dtype=np.float64),
                    **{
                        name: np.array([getattr(made, name) for made in self.pending]).reshape(rows)
                        for name in ("raw", "values", "spreads")
                    },
                },
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Calibration:
        """Return the calibration with a saved state of the same horizon and levels."""
        pending = part(state, "pending")
        columns = [require_finite(name, pending[name]) for name in ("raw", "values", "spreads")]
        for column in columns:
            require_shape("pending", column, (len(pending["steps"]), len(self.bands.seen)))
        made = zip(pending["steps"].tolist(), *columns, pending["means"].tolist(), strict=True)
        return Calibration(
            self.correction and self.correction.restore(part(state, "correction")),
            self.bands.restore(part(state, "bands")),
            self.errors.restore(part(state, "errors")),
            tuple(Made(*each) for each in made),
        )
