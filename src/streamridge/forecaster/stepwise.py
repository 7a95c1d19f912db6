"""The state of a forecaster, and what each step changes in it.

A step is a prediction, a reading or a gap, and learning from it. `Forecaster` adds constructors,
checks of arguments, and saving.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part
from streamridge.errors import FitError, InvalidInputError, counted
from streamridge.features.base import input_at, steps_ahead
from streamridge.features.seasonal_columns import SeasonalRows
from streamridge.features.simple_forecasts import SimpleForecasts
from streamridge.forecaster.blend import Blend, BlendedForecast
from streamridge.forecaster.burst_correction import BurstCorrection, BurstForecast
from streamridge.forecaster.calibration import Calibration, ModelForecast
from streamridge.forecaster.correction import CorrectionLog
from streamridge.forecaster.ensemble import LAST, Ensemble, EnsembleForecast
from streamridge.forecaster.extra_columns import filled_forward
from streamridge.forecaster.far_ahead import FarAhead, FarForecast
from streamridge.forecaster.forecast import JUDGED, Levels, Source
from streamridge.forecaster.pattern_correction import PatternCorrection, PatternForecast
from streamridge.forecaster.plausibility import Limits, clipped
from streamridge.forecaster.self_tuning import Event, SelfTuningModel
from streamridge.forecaster.sensor_history import SensorHistory
from streamridge.forecaster.settings import Settings
from streamridge.learners.base import Costs
from streamridge.learners.workspace import Workspace
from streamridge.series.lengths import season_name
from streamridge.series.series import Series

# A first fit needs at least this many rows.
LEAST_ROWS = 12
# Errors of more than this number of half bands are large: five deviations at 90 %.
LARGE = 3.0


@dataclass(frozen=True)
class NextForecast:
    """The forecast of the next steps, with the parts that learn from its errors."""

    values: Vector
    source: Source
    by_model: ModelForecast | None = None  # None without a model
    by_ensemble: EnsembleForecast | None = None  # None without an ensemble
    by_blend: BlendedForecast | None = None  # None without a blend
    by_pattern: PatternForecast | None = None  # None without a correction of patterns
    by_bursts: BurstForecast | None = None  # None unless most readings are equal


class StepwiseForecaster:
    """The parts of a forecaster, and the steps that change them; it owns all mutable state.

    Its parts are the sensor's history, the self-tuning model, the ensemble, the calibration, the
    corrections of bursts and of patterns, and `Blend` and `FarAhead` for steps far ahead. They do
    not know each other: values pass between them here. Readings are checked before they get here.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._history = SensorHistory(settings)
        self._model: SelfTuningModel | None = None
        self._calibration = Calibration.start(
            settings.near, settings.levels, corrects=settings.preset.corrects
        )
        self._ensemble = _ensemble_of(settings) if settings.has_ensemble else None
        self._counts: Counter[str] = Counter()
        self._costs = Costs()
        self._workspace: Workspace | None = None
        self._next_try = 0  # the number of steps at which a first fit is tried again
        self._next: dict[bytes, NextForecast] = {}  # the next forecast, by its further columns
        self._blend = _blend_of(settings)  # None if the model forecasts all steps
        self._simple = _simple_forecasts_of(settings)  # None one step ahead, or with a blend
        self._pattern: PatternCorrection | None = None
        if self._simple is not None:
            self._pattern = PatternCorrection.start(settings.day, settings.near)
        self._bursts: BurstCorrection | None = None  # until most readings are equal
        self._far = _far_ahead_of(settings)  # None if the model forecasts all steps
        self._next_far: FarForecast | None = None  # the next forecast of the far steps
        self._next_rows: SeasonalRows | None = None  # the rows of the regressions for these steps

    @property
    def refit_due(self) -> bool:
        """Return whether it is time for a refit, or for the first fit.

        It becomes due with a reading, and only with `defer_refits` does it stay due after it. Gaps
        count as well: after a long gap, the first reading is the last of its window.
        """
        if self._model is None:
            return len(self._history.timeline) >= self._first_try
        return self._model.refit_due

    def _next_forecast(self, columns: Matrix | None) -> NextForecast:
        """Return the forecast of the next steps, given their extra columns; computed once."""
        upcoming = self._upcoming(columns)
        key = b"" if upcoming is None else upcoming.tobytes()
        if key in self._next:
            return self._next[key]
        history, model, ensemble = self._history, self._model, self._ensemble
        if model is None or history.silent > self._settings.patience:
            forecast = NextForecast(*history.naive_forecast())
        else:
            step, limits = history.next_step, history.limits
            inputs = input_at(model.features, history.past(upcoming), step)
            raw, spreads, baseline = model.forecast(inputs)
            sizes = self._calibration.smoothed(np.maximum(spreads, history.least))
            wider: Vector | float = 1.0
            if history.silent:
                naive = history.naive_offsets(sizes, (JUDGED,))
                wider = self._calibration.widening(sizes, history.silent, naive)
            made = self._calibration.forecast(step, raw, sizes, limits, wider)
            if ensemble is None:
                forecast = NextForecast(made.values, "model", made)
            else:
                forecast = self._mixed(ensemble, made, baseline, limits)
        self._next = {key: forecast}
        return forecast

    def _next_far_forecast(self, far: FarAhead) -> FarForecast:
        """Return the forecast of the steps that are too far ahead for the model; computed once."""
        if self._next_far is None:
            history, settings = self._history, self._settings
            naive, _ = history.naive_forecast(settings.near, settings.horizon)
            below, above = history.naive_offsets(history.naive_forecast()[0], (JUDGED,))
            width = float((above - below).max())
            self._next_far = far.forecast(
                self._next_seasonal_rows(far), naive, width, history.least, history.limits
            )
        return self._next_far

    def _next_seasonal_rows(self, far: FarAhead) -> SeasonalRows:
        """Return the rows of the next steps for regressions on seasonal profiles; computed once.

        The regressions of near and of far steps have the same columns, so they share the rows.
        """
        if self._next_rows is None:
            self._next_rows = far.regression.next_rows(self._history.past())
        return self._next_rows

    def _upcoming(self, columns: Matrix | None) -> Matrix | None:
        """Return the extra columns of the steps ahead, (A, E), given those of the first k steps.

        The last known value replaces unknown ones. None if there are no extra columns.
        """
        features, timeline = self._settings.preset.features, self._history.timeline
        if not features.extras or not self._history.has_readings:
            return None
        known = np.full((steps_ahead(features), len(features.extras)), np.nan)
        if columns is not None:
            known[: len(columns)] = columns
        return filled_forward(known, timeline.last_extras) if np.isnan(known).any() else known

    def _mixed(
        self, ensemble: Ensemble, made: ModelForecast, baseline: Vector | None, limits: Limits
    ) -> NextForecast:
        """Return the mixture of the model's forecast with the baseline and naive forecasts."""
        history, settings = self._history, self._settings
        bounds = None if settings.bounds is None else settings.limits
        naive, blended = history.naive_forecasts(), None
        small = np.full(len(made.raw), np.nan) if baseline is None else clipped(baseline, limits)
        raw = np.array([made.raw, small])
        # Both fits miss the same changes of the level, so one correction serves both.
        fitted = np.array([made.values, raw[1] + (made.values - made.raw)])
        if self._blend is not None and self._far is not None:
            rows = self._next_seasonal_rows(self._far)
            blended = self._blend.forecast(rows, made.step, made.values)
            raw, fitted = (self._blend.blended(blended, each) for each in (raw, fitted))
            made = replace(made, values=clipped(fitted[0], limits))
        mixed = ensemble.mix(made.step, fitted, raw, naive, limits, bounds)
        values, source = ensemble.issued(mixed, LARGE * self._judged_width(made, made.values))
        bursts = pattern = None
        if history.plausibility.common is not None:  # most readings are equal
            correction = self._bursts or BurstCorrection(settings.day)
            bursts = correction.forecast(float(values[0]), history.mean_of_days())
            values = values if bursts is None else bursts.corrected(values, limits)
        if self._pattern is not None and self._simple is not None:
            simple = self._simple.ahead(history.past(), made.step + 1)
            pattern = self._pattern.forecast(values, simple)
            values = pattern.corrected(values, limits)
        made = replace(made, values=values)
        return NextForecast(values, source, made, mixed, blended, pattern, bursts)

    def _offsets(self, forecast: NextForecast, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far the bands of the next forecast reach below and above it, (H, L) each."""
        if forecast.by_model is None:
            near = self._history.naive_offsets(forecast.values, levels)
        else:
            near = self._calibration.bands.offsets(forecast.by_model.spreads, levels)
        if self._far is None:
            return near
        far = self._far.offsets(self._next_far_forecast(self._far), levels)
        below, above = (np.concatenate(each) for each in zip(near, far, strict=True))
        return below, above

    def _values(self, forecast: NextForecast) -> Vector:
        """Return the values of the next forecast at all steps ahead, (H,)."""
        if self._far is None:
            return forecast.values.copy()
        return np.append(forecast.values, self._next_far_forecast(self._far).values)

    def _advance(self, value: float, columns: Matrix | None) -> None:
        """Take the next step; the value is NaN without a reading.

        `columns` are its extra columns and those of steps after it, (k, E); None if not known.
        """
        own = None if columns is None else columns[0]
        history, bounds = self._history, self._settings.bounds
        impossible = bounds is not None and not history.is_possible(value)
        if impossible:
            self._counts["implausible"] += 1
            value = np.nan
        if not history.has_readings:
            if not isnan(value):  # there is nothing to fill a gap with before the first reading
                history.push(value, value, None, own)
            return
        forecast, step = self._next_forecast(columns), history.next_step
        self._forget_next()
        if isnan(value):
            excluded = history.excluded and history.is_excluded(step)
            self._counts["missing"] += not (impossible or excluded)
            self._calibration = self._calibration.skip()
            history.push_gap(float(forecast.values[0]), own)
            self._catch_up()
            if self._model is not None:
                self._model.skip(step)
        else:
            self._learn(step, value, forecast, own)

    def _learn(
        self, step: int, value: float, forecast: NextForecast, columns: Vector | None
    ) -> None:
        """Learn from a reading and its forecast."""
        made, values = forecast.by_model, forecast.values
        judges = self._settings.guard and self._model is not None
        width = self._judged_width(made, values) if judges or made is not None else np.inf
        half_width, large = width if judges else None, np.inf if made is None else LARGE * width
        verdict = self._history.push(value, float(values[0]), half_width, columns)
        self._catch_up()  # before a first fit forgets or doubts readings
        learns, plausible = verdict == "good", verdict != "implausible"
        self._calibration = self._calibration.observe(
            step, value, forecast.by_model, learns=learns, plausible=plausible
        )
        if self._ensemble is not None:
            self._ensemble = self._ensemble.observe(
                step,
                value,
                forecast.by_ensemble,
                learns=learns,
                plausible=plausible,
                large=large,
            )
        if self._blend is not None:
            self._blend = self._blend.observe(step, value, forecast.by_blend, learns=learns)
        if self._pattern is not None:
            self._pattern = self._pattern.observe(step, value, forecast.by_pattern, learns=learns)
        if forecast.by_bursts is not None and learns:
            correction = self._bursts or BurstCorrection(self._settings.day)
            self._bursts = correction.observe(value, forecast.by_bursts)
        if self._model is None:
            self._try_first_fit()
        elif learns:
            self._count(self._model.observe(step, *self._window()))
        else:
            self._model.skip(step)
            self._counts[verdict] += 1

    def _judged_width(self, made: ModelForecast | None, values: Vector) -> float:
        """Return half the band that the next reading is judged by, of the model or of the values.

        Volatility does not widen it: a glitch must not make the next one usual.
        """
        if made is None:
            below, above = self._history.naive_offsets(values, (JUDGED,))
            return float(max(above[0, 0], -below[0, 0]))
        return self._calibration.bands.half_width(float(made.spreads[0] / made.factors[0]))

    def _window(self) -> tuple[CorrectionLog | None, Vector | None]:
        """Return the issued forecasts since the last refit, and losses of model and baseline.

        The first is None if forecasts are issued as predicted, the second if there are no losses.
        """
        calibration, ensemble = self._calibration, self._ensemble
        issued = None if calibration.correction is None else calibration.log
        return issued, None if ensemble is None else ensemble.losses

    def _add_late(self, step: int, value: float) -> None:
        """Add a reading of a past step; the next refit learns from it."""
        if isnan(value):
            return
        arrival = self._history.add_late(step, value)
        self._counts[arrival] += 1
        if arrival == "late":
            self._forget_next()
            self._try_first_fit()

    def _fill_gap(self, count: int) -> None:
        """Take `count` steps without a reading; after a season of them, the rest is one leap."""
        history = self._history
        if not history.has_readings:
            return
        alone = min(count, history.patience + 1)
        for _ in range(alone):
            self._advance(np.nan, None)
        leap = count - alone
        if leap:
            history.leap(leap)
            self._counts["missing"] += leap
            self._calibration = self._calibration.skip(leap)
            self._forget_next()
            self._catch_up()
            if self._model is not None:
                self._model.skip(history.next_step - 1, leap)

    def _add_history(self, series: Series) -> None:
        """Add a whole series at once, and make the first fit at its end.

        The result is the same as after `observe` of each step, with a warm-up of the same length.
        """
        names = self._settings.preset.features.extras
        columns = np.column_stack([series.extras[name] for name in names]) if names else None
        self._history.begin(series.clock, series.start, series.time_format)
        for at, value in enumerate(series.values.tolist()):
            self._add_early(value, None if columns is None else columns[at])
        self._catch_up()
        self._try_first_fit()

    def _add_early(self, value: float, columns: Vector | None) -> None:
        """Add a step of a history: a reading, or a gap filled by a naive forecast."""
        history, missing = self._history, isnan(value)
        self._counts["readings"] += not missing
        if not history.is_possible(value):
            self._counts["implausible"] += 1
            value = np.nan
        elif missing:
            self._counts["missing"] += history.has_readings
        if not isnan(value):
            history.push(value, value, None, columns)
        elif history.has_readings:
            history.push_gap(float(history.naive_forecast()[0][0]), columns)
        else:
            history.timeline.start_at(history.next_step + 1)
        if history.has_unneeded(self._settings.kept_steps):
            self._catch_up()
            history.forget_unneeded(self._settings.kept_steps)

    @property
    def _first_try(self) -> int:
        """Return the number of steps after which a first fit is tried."""
        return max(self._settings.warmup, self._next_try)

    def _try_first_fit(self) -> None:
        """Make the first fit once there is enough history, unless refits are deferred."""
        if self._model is not None:
            return
        self._history.forget_unneeded(self._settings.kept_steps)
        if self.refit_due and not self._settings.defer_refits:
            self._first_fit(None)

    def _first_fit(self, workspace: Workspace | None) -> None:
        """Make the first fit if there are enough rows; otherwise try again some steps later."""
        settings, history = self._settings, self._history
        self._next_try = len(history.timeline) + settings.update_every // 8 + 1
        if settings.guard:
            history.doubt_outliers()
        least = max(LEAST_ROWS, settings.near)
        if len(history.rows.latest(least, settings.model.space.values)) < least:
            return
        memory = workspace or self._workspace or Workspace()
        try:
            model = SelfTuningModel.started(settings, history, self._costs, memory)
        except FitError:  # it may succeed with more readings
            self._counts["failed_refits"] += 1
            return
        model.hold(self._workspace)
        self._model = model
        self._count(("fits",))

    def _count(self, events: tuple[Event, ...]) -> None:
        """Count events of the model; after a refit, all parts start a new window."""
        self._counts.update(events)
        if "fits" in events and self._model is not None:
            self._history.mark_refit(self._model.progress.oldest)
            self._calibration = self._calibration.after_refit(self._history.next_step - 1)
            if self._ensemble is not None:
                self._ensemble = self._ensemble.after_refit()

    def _set(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit."""
        model = self._require_model()
        model.set(values)
        self._history.mark_refit(model.progress.oldest)
        self._counts["fits"] += 1
        self._forget_window()

    def _catch_up(self) -> None:
        """Let regressions on seasonal profiles learn from the steps that are new to them."""
        if not self._history.has_readings:
            return
        past = self._history.past()
        if self._blend is not None:
            self._blend = self._blend.caught_up(past)
        if self._far is not None:
            self._far = self._far.caught_up(past)

    def _forget_next(self) -> None:
        """Forget the next forecast, which is computed anew when it is needed."""
        self._next, self._next_far, self._next_rows = {}, None, None

    def _forget_window(self) -> None:
        """Forget the next forecast, and the errors in this window, after an operator's change."""
        self._forget_next()
        if self._ensemble is not None:
            self._ensemble = self._ensemble.after_refit()

    def _require_model(self) -> SelfTuningModel:
        if self._model is None:
            raise InvalidInputError(
                "the model must have been fitted first, after "
                f"{counted(self._first_try, 'step')} at the earliest, "
                f"got {len(self._history.timeline)} so far."
            )
        return self._model

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return everything that is saved: plain values and arrays."""
        plain = {
            "settings": self._settings.described(),
            "clock": self._history.clock.state(),
            "counts": dict(self._counts),
            "fitted": self._model is not None,
        }
        arrays = joined(
            {
                "history": self._history.state(),
                "calibration": self._calibration.state(),
                "ensemble": self._ensemble.state() if self._ensemble else {},
                "blend": self._blend.state() if self._blend else {},
                "pattern": self._pattern.state() if self._pattern else {},
                "bursts": self._bursts.state() if self._bursts else {},
                "far": self._far.state() if self._far else {},
                "model": self._model.state() if self._model else {},
                "costs": {"seconds": np.array(astuple(self._costs))},
                "own": {"next_try": np.array(self._next_try)},
            }
        )
        return plain, arrays

    def _restore(self, header: Mapping[str, Any], state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a forecaster with the same settings."""
        self._counts.update(header["counts"])
        self._costs = Costs(*state["costs.seconds"].tolist())
        self._next_try = int(state["own.next_try"])
        self._history.clock.restore(header["clock"])
        self._history.restore(part(state, "history"))
        self._calibration = self._calibration.restore(part(state, "calibration"))
        if self._ensemble is not None:
            self._ensemble = self._ensemble.restore(part(state, "ensemble"))
        if self._blend is not None:
            self._blend = self._blend.restore(part(state, "blend"))
        pattern = part(state, "pattern")
        if self._pattern is not None:
            self._pattern = self._pattern.restore(pattern)
        bursts = part(state, "bursts")
        self._bursts = BurstCorrection(self._settings.day).restore(bursts) if bursts else None
        if self._far is not None:
            self._far = self._far.restore(part(state, "far"))
        if header["fitted"]:
            self._model = SelfTuningModel.restored(
                self._settings, self._history, self._costs, part(state, "model")
            )


def _far_ahead_of(settings: Settings) -> FarAhead | None:
    """Return the forecasts of steps beyond the model's, before any reading; None for no such."""
    if settings.columns is None or settings.horizon == settings.near:
        return None
    leads = settings.near + 1, settings.horizon
    return FarAhead.start(settings.columns, leads)


def _blend_of(settings: Settings) -> Blend | None:
    """Return the blend of the model with a regression before any reading; None for no such.

    Forecasts of few steps ahead have none: a regression costs as much time as the model's step.
    """
    if settings.columns is None or not settings.has_ensemble or settings.horizon == settings.near:
        return None
    return Blend.start(settings.columns, settings.near, settings.day)


def _simple_forecasts_of(settings: Settings) -> SimpleForecasts | None:
    """Return the simple forecasts that correct a changed pattern; None if nothing is corrected.

    Forecasts one step ahead are not, and near steps of long forecasts have a blend instead. The
    seasons are the shortest two, usually the day and the week.
    """
    near = settings.near
    seasons = [each for each in settings.periods if each >= near][:2]
    if near == 1 or not seasons or not settings.has_ensemble or _blend_of(settings) is not None:
        return None
    return SimpleForecasts((seasons[0], seasons[-1]), near - 1)


def _ensemble_of(settings: Settings) -> Ensemble:
    """Return the ensemble of a forecaster before any error is known."""
    seasons = tuple(season_name(season) for season in settings.seasons[::-1])
    return Ensemble.start(
        (*seasons, LAST),
        settings.near,
        settings.day,
        has_baseline=settings.has_baseline,
    )
