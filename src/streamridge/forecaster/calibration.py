"""Calibration: past errors correct the next forecast, and set the width of its bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part, require_finite, require_shape, stacked
from streamridge.forecaster.bands import ConformalBands, Volatility
from streamridge.forecaster.correction import CorrectionLog, ErrorCorrection
from streamridge.forecaster.forecast import JUDGED, Level
from streamridge.forecaster.plausibility import Limits, clipped

# The expected size of an error shrinks by at most this share from a step ahead to the next.
SHRINKAGE = 0.1
# A naive forecast repeats the error of a reading: its variance is twice that around a mean.
REPEATED = sqrt(2.0)


@dataclass(frozen=True)
class ModelForecast:
    """A forecast of the model, kept until all of its values are known."""

    step: int  # the first step that is forecast
    raw: Vector  # (H,), the prediction of the model
    values: Vector  # (H,), the forecast that is issued
    spreads: Vector  # (H,), the expected sizes of its errors
    factors: Vector  # (H,), the factors of volatility in these sizes
    sizes: Vector  # (H,), the expected sizes before volatility and silence
    # (L,), means of the last errors when the forecast was made; empty without a correction.
    means: Vector


@dataclass(frozen=True)
class Calibration:
    """The correction of a model's forecasts, and the bands around them."""

    # Correction by the last errors; None leaves the model's predictions unchanged.
    correction: ErrorCorrection | None
    bands: ConformalBands
    volatility: Volatility  # the ratio of recent errors to the errors that the model expects
    log: CorrectionLog  # the corrections of the forecasts since the last refit
    # (H,), the expected sizes of error in the last forecast; empty before there is one.
    sizes: Vector = field(default_factory=lambda: np.zeros(0))
    # Forecasts whose values are still to come, newest first.
    pending: tuple[ModelForecast, ...] = ()

    @classmethod
    def start(cls, horizon: int, level: Level, *, corrects: bool) -> Calibration:
        """Return the state before any error is known."""
        return cls(
            ErrorCorrection.start(horizon) if corrects else None,
            ConformalBands.start(horizon, level),
            Volatility.start(horizon),
            CorrectionLog.start(horizon),
        )

    def forecast(
        self, step: int, raw: Vector, sizes: Vector, limits: Limits, wider: Vector | float = 1.0
    ) -> ModelForecast:
        """Return the corrected forecast of a model, given the sizes of error to expect.

        `wider` are factors of these sizes, (H,), for steps after a silence.
        """
        raw, factors, correction = clipped(raw, limits), self.volatility.factors(), self.correction
        spreads = sizes * wider * factors
        if correction is None:
            return ModelForecast(step, raw, raw, spreads, factors, sizes, np.zeros(0))
        values = clipped(raw + correction.offsets(), limits)
        return ModelForecast(step, raw, values, spreads, factors, sizes, correction.means)

    def smoothed(self, spreads: Vector) -> Vector:
        """Return the sizes of error to expect, given those that the model expects, (H,).

        They are smooth in time, by a geometric mean with the sizes of the last forecast, and hardly
        shrink with the steps ahead.
        """
        sizes = np.sqrt(self.sizes) * np.sqrt(spreads) if len(self.sizes) else spreads
        if len(sizes) == 1:
            return sizes
        shrinking = SHRINKAGE * np.arange(len(sizes))
        return np.exp(np.maximum.accumulate(np.log(sizes) + shrinking) - shrinking)

    def widening(self, sizes: Vector, silent: int, naive: tuple[Matrix, Matrix]) -> Vector:
        """Return factors of the expected sizes of error after steps without a reading, (H,).

        They grow with the square root of the time, up to the errors around the mean of a season.
        The band of 90 % of a naive forecast is `naive`, (H, 1) each.
        """
        ahead = 1 + np.arange(len(sizes))
        below, above = self.bands.offsets(sizes, (JUDGED,))
        most = ((naive[1] - naive[0]) / (above - below))[:, 0] / REPEATED
        return np.maximum(np.minimum(np.sqrt((silent + ahead) / ahead), most), 1.0)

    def observe(
        self,
        step: int,
        value: float,
        forecast: ModelForecast | None,
        *,
        learns: bool,
        plausible: bool = True,
    ) -> Calibration:
        """Return the state after a value; `forecast` is its forecast, if a model made one.

        The bands learn from every value, the correction only from values that the model learns
        from. Volatility ignores implausible values.
        """
        correction, bands, volatility, log = self.correction, self.bands, self.volatility, self.log
        pending = self.pending if forecast is None else (forecast, *self.pending)
        if forecast is not None and learns and correction is not None:
            log = log.after(step, correction.pulls, correction.offsets())
        horizon, sizes = len(bands.seen), self.sizes if forecast is None else forecast.sizes
        errors = []
        for each in pending:
            h = step - each.step
            if h >= horizon:
                continue
            errors.append((h, value - float(each.raw[h]), each.means))
            error, spread = value - float(each.values[h]), float(each.spreads[h])
            bands = bands.observe(h, error, spread)
            if plausible:
                volatility = volatility.observe(h, abs(error) * float(each.factors[h]) / spread)
        if correction is not None and learns:
            correction = correction.learn_all(errors)
        if correction is not None and forecast is not None and learns:
            correction = correction.observe(value - float(forecast.raw[0]))
        elif correction is not None:
            correction = correction.forget()
        waiting = tuple(each for each in pending if step - each.step < horizon - 1)
        return Calibration(correction, bands, volatility, log, sizes, waiting)

    def after_refit(self, step: int) -> Calibration:
        """Return the state after a refit; the log keeps forecasts that wait for values."""
        return replace(self, log=self.log.since(step - len(self.bands.seen) + 1))

    def skip(self, steps: int = 1) -> Calibration:
        """Return the state after steps without a value."""
        return replace(self, correction=self.correction and self.correction.forget(steps))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        steps = np.array([each.step for each in self.pending], dtype=np.int64)
        return joined(
            {
                "bands": self.bands.state(),
                "volatility": self.volatility.state(),
                "log": self.log.state(),
                "correction": self.correction.state() if self.correction else {},
                "last": {"sizes": self.sizes},
                "pending": {"steps": steps, **stacked(self.pending, self._shapes(len(steps)))},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Calibration:
        """Return the calibration with a saved state of the same horizon and levels."""
        pending, sizes = part(state, "pending"), require_finite("sizes", state["last.sizes"])
        if len(sizes):
            require_shape("sizes", sizes, self.bands.seen.shape)
        columns = []
        for name, shape in self._shapes(len(pending["steps"])).items():
            columns.append(require_finite(name, pending[name]))
            require_shape("pending", columns[-1], shape)
        forecasts = zip(pending["steps"].tolist(), *columns, strict=True)
        return Calibration(
            self.correction and self.correction.restore(part(state, "correction")),
            self.bands.restore(part(state, "bands")),
            self.volatility.restore(part(state, "volatility")),
            self.log.restore(part(state, "log")),
            sizes,
            tuple(ModelForecast(*each) for each in forecasts),
        )

    def _shapes(self, count: int) -> dict[str, tuple[int, int]]:
        """Return the shapes of the arrays of `count` pending forecasts."""
        each = (count, len(self.bands.seen))
        means = (count, len(self.correction.means) if self.correction else 0)
        names = ("raw", "values", "spreads", "factors", "sizes")
        return {**dict.fromkeys(names, each), "means": means}
