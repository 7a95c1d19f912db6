"""The ensemble of a forecaster: several forecasts of each step, weighted by their past errors.

The members are the self-tuned model, its baseline fit, and naive forecasts. Three mixtures of all
members follow changes within a day, within days and within weeks. A final mixture combines the
model with these three, so they cost next to nothing where the model is right. Weights need many
readings to follow a jump of the level. Until then the last reading replaces the mixture: while the
errors of the last two readings are large, while the errors of the last ten exceed its own errors,
or while nearly all of the last four errors exceed its own. An error that both made, as at the jump
itself, does not count in the last comparison. The mixture stays if the last reading was worse after
earlier errors of this kind, as after bursts that end at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import (
    Mask,
    Matrix,
    Vector,
    joined,
    part,
    require_count,
    require_finite,
    require_shape,
    stacked,
)
from streamridge.forecaster.aggregation import MLPoly
from streamridge.forecaster.forecast import Source
from streamridge.forecaster.plausibility import Limits, clipped

# The memories of the mixtures of all members, and of the final mixture, in days.
MIXTURE_DAYS, FINAL_DAYS = (1, 4, 16), 7
# Names of the fitted members, and of the member that repeats the last reading.
MODEL, BASELINE, LAST = "model", "start", "last"
# The weights of the newest squared error in the three means that show a jump, and how many times as
# large as that of the last reading the second mean may be.
NEWEST, MOST = (0.5, 0.1, 0.25), 2.0
# The third mean counts errors beyond those of the other only. That of the mixture must exceed this
# share of a large error, and this many times that of the last reading.
NOTABLE, FAR_MORE = 0.2, 8.0
# The weight of the newest squared error in the means over steps at which a jump was suspected.
SUSPECTED = 0.01
# The weights of the newest squared error in all four means: if no jump is suspected, and if one is.
PACES = tuple(np.array([*NEWEST, pace])[:, None] for pace in (0.0, SUSPECTED))


@dataclass(frozen=True)
class EnsembleForecast:
    """The forecasts of all members, kept until all of the values are known."""

    step: int  # the first step that is forecast
    raw: Matrix  # (2, H), model and baseline before their correction; NaN without a fit
    members: Matrix  # (K + G, H), the forecasts of all members and of their mixtures; NaN for none
    values: Vector  # (H,), the forecast that is issued


@dataclass(frozen=True)
class Ensemble:
    """The weights of the members."""

    names: tuple[str, ...]  # (K,), the names of the members, the model's first
    mixtures: MLPoly  # the weights of all members in each of G mixtures
    final: MLPoly  # the weights of the model and of the mixtures
    has_baseline: bool  # whether the second member is a baseline fit
    # Forecasts of steps whose values are still to come, newest first.
    pending: tuple[EnsembleForecast, ...] = ()
    # (2,), sums of the squared errors of the model and of its baseline since the last refit, and
    # their number.
    squares: Vector = field(default_factory=lambda: np.zeros(2))
    seen: int = 0
    # (4, 2), fast and slow means of the last squared errors one step ahead, means of what exceeds
    # the error of the other, and means over steps at which a jump was suspected; of the mixture and
    # of the last reading.
    latest: Matrix = field(default_factory=lambda: np.zeros((4, 2)))

    @classmethod
    def start(
        cls, naive: tuple[str, ...], horizon: int, day: int, *, has_baseline: bool
    ) -> Ensemble:
        """Return the ensemble before any error is known: the model alone has weight.

        `naive` are names, `day` is a number of steps.
        """
        names = (MODEL, BASELINE, *naive) if has_baseline else (MODEL, *naive)
        memories = tuple(float(days * day) for days in MIXTURE_DAYS)
        even, model = np.full(len(names), 1 / len(names)), np.eye(1 + len(memories))[0]
        return cls(
            names,
            MLPoly.start(horizon, even, memories),
            MLPoly.start(horizon, model, (float(FINAL_DAYS * day),), lead=model),
            has_baseline,
        )

    def mix(
        self,
        step: int,  # the first step that is forecast
        fitted: Matrix,  # (2, H), forecasts of the model and of its baseline; NaN without a fit
        raw: Matrix,  # (2, H), the same before their correction
        naive: Matrix,  # (K', H), the naive forecasts; NaN for a member without a forecast
        limits: Limits,  # the smallest and the largest plausible forecast of a fit
        bounds: Limits | None,  # known bounds of the sensor, which apply to the mixture
    ) -> EnsembleForecast:
        """Return the forecasts of all members and their mixture."""
        fits = clipped(fitted if self.has_baseline else fitted[:1], limits)
        members = np.concatenate((fits, naive))
        every = np.concatenate((members, self.mixtures.mixed(members)))
        voters = _voters(len(self.names), len(self.mixtures.largest))
        values = self.final.mixed(every[voters])[0]
        if bounds is not None:  # a mean of equal numbers may miss them by rounding
            values = clipped(values, bounds)
        return EnsembleForecast(step, raw, every, values)

    def issued(self, forecast: EnsembleForecast, large: float) -> tuple[Vector, Source]:
        """Return the forecast to issue, and its kind: the mixture, unless it missed a jump.

        It missed one if its last errors are large, or larger than those of the last reading. It
        then moves to the last reading, as far as that had smaller errors.
        """
        values, reading = forecast.values, forecast.members[len(self.names) - 1]
        mixture_error, last_error = self.latest[3].tolist()
        # The forecast stays where it is if moving to the last reading did not pay before.
        share = 0.0 if last_error > mixture_error else self._suspicion(large)
        if isnan(reading.item(0)) or not share:
            return values, self.source(forecast)
        moved = np.where(reading == values, values, (1 - share) * values + share * reading)
        return moved, "last" if share >= 0.5 else self.source(forecast)

    def _suspicion(self, large: float) -> float:
        """Return how far the last errors suggest a move; 0 if the mixture missed no jump."""
        fast, slow, (more, less), _ = self.latest.tolist()
        is_lost, share = fast[0] > large * large, 0.0
        if is_lost or slow[0] > MOST * slow[1]:
            mixture, last = fast if is_lost else slow
            share = 1 / (1 + (last / mixture) ** 2)  # squares of tiny means would vanish
        if more > max((NOTABLE * large) ** 2, FAR_MORE * less):
            share = max(share, more / (more + FAR_MORE * less))
        return share

    def source(self, forecast: EnsembleForecast) -> Source:
        """Return the kind of forecast that has most of the weight in a mixture."""
        members = forecast.members[: len(self.names), 0]
        awake = ~np.isnan(members)
        weights = self.weights(None if awake.all() else awake).tolist()
        naive = weights[1 + self.has_baseline :]
        if sum(naive) <= 0.5:
            return "model"
        return "last" if naive.index(max(naive)) == len(naive) - 1 else "seasonal"

    def weights(self, awake: Mask | None = None) -> Vector:
        """Return the weights of the members one step ahead, (K,), given which have a forecast."""
        voters = None
        if awake is not None:
            voters = np.ones(1 + len(self.mixtures.largest), dtype=bool)
            voters[0] = awake[0]
        final, within = self.final.weights(voters)[0, 0], self.mixtures.weights(awake)[:, 0]
        weights = final[1:].dot(within)
        weights[0] += final[0]
        return weights

    @property
    def losses(self) -> Vector | None:
        """Return the mean squared errors of model and baseline since the last refit, (2,).

        None if there are no errors yet.
        """
        return self.squares / self.seen if self.seen else None

    def observe(
        self,
        step: int,
        value: float,
        forecast: EnsembleForecast | None,
        *,
        learns: bool,
        plausible: bool,
        large: float = np.inf,
    ) -> Ensemble:
        """Return the ensemble after a value; `forecast` is its forecast, if there was a model.

        Implausible values change no weights. Only values that the model learns from compare it with
        its baseline.
        """
        pending = self.pending if forecast is None else (forecast, *self.pending)
        mixtures, final, latest = self.mixtures, self.final, self.latest
        horizon = final.weighting.horizon
        squares, seen, count = self.squares, self.seen, len(self.names)
        made = {step - each.step: each for each in pending if step - each.step < horizon}
        if made and plausible:
            members, values = self._forecasts_of(made)
            voters = members[_voters(count, len(mixtures.largest))]
            mixtures = mixtures.observe(members[:count], members[count:], value)
            final = final.observe(voters, values, value)
        if made and learns and self.has_baseline:
            model, baseline = squares.tolist()
            for h, each in made.items():
                own, error = value - each.raw.item(0, h), value - each.raw.item(1, h)
                if not isnan(error):
                    model, baseline, seen = model + own * own, baseline + error * error, seen + 1
            squares = np.array([model, baseline])
        if forecast is not None and plausible:
            own = value - forecast.values.item(0)
            error = value - forecast.members.item(count - 1, 0)
            if not isnan(error):
                errors, least = (own * own, error * error), min(own * own, error * error)
                newest = np.array([errors, errors, (errors[0] - least, errors[1] - least), errors])
                latest = latest + PACES[self._suspicion(large) > 0] * (newest - latest)
        made.pop(horizon - 1, None)  # all of its values are known
        return Ensemble(
            self.names,
            mixtures,
            final,
            self.has_baseline,
            tuple(made.values()),
            squares,
            seen,
            latest,
        )

    def _forecasts_of(self, made: Mapping[int, EnsembleForecast]) -> tuple[Matrix, Matrix]:
        """Return the forecasts of a step by lead: of the members, (K + G, H), and issued, (1, H).

        They are NaN at leads at which the step was not forecast.
        """
        newest = next(iter(made.values()))
        horizon = self.final.weighting.horizon
        if horizon == 1:
            return newest.members, newest.values[None]
        members = np.full(newest.members.shape, np.nan)
        values = np.full((1, horizon), np.nan)
        for h, each in made.items():
            members[:, h], values[0, h] = each.members[:, h], each.values.item(h)
        return members, values

    def after_refit(self) -> Ensemble:
        """Return the ensemble after a refit: a new comparison of model and baseline begins."""
        return replace(self, squares=np.zeros(2), seen=0)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        steps = np.array([each.step for each in self.pending], dtype=np.int64)
        return joined(
            {
                "mixtures": self.mixtures.state(),
                "final": self.final.state(),
                "pending": {"steps": steps, **stacked(self.pending, self._shapes(len(steps)))},
                "window": {"squares": self.squares, "seen": np.array(self.seen)},
                "latest": {"squares": self.latest},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Ensemble:
        """Return the ensemble with a saved state of the same members."""
        pending, window = part(state, "pending"), part(state, "window")
        columns = []
        for name, shape in self._shapes(len(pending["steps"])).items():
            columns.append(np.asarray(pending[name], dtype=np.float64))
            require_shape("pending", columns[-1], shape)
        for each in (columns[0][:, 0], columns[-1]):
            require_finite("pending", each)
        forecasts = zip(pending["steps"].tolist(), *columns, strict=True)
        squares, latest = window["squares"], state["latest.squares"]
        for each, shape in ((squares, (2,)), (latest, (4, 2))):
            require_shape("squares", require_finite("squares", each), shape)
        return Ensemble(
            self.names,
            self.mixtures.restore(part(state, "mixtures")),
            self.final.restore(part(state, "final")),
            self.has_baseline,
            tuple(EnsembleForecast(*each) for each in forecasts),
            squares,
            require_count("seen", window["seen"], least=0),
            latest,
        )

    def _shapes(self, count: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the arrays of `count` pending forecasts."""
        members = len(self.names) + len(self.mixtures.largest)
        horizon = self.final.weighting.horizon
        shapes = {"raw": (2, horizon), "members": (members, horizon), "values": (horizon,)}
        return {name: (count, *shape) for name, shape in shapes.items()}


@lru_cache(maxsize=64)
def _voters(members: int, mixtures: int) -> NDArray[np.intp]:
    """Return the places of the model and of the mixtures among all forecasts."""
    return np.array([0, *range(members, members + mixtures)])
