"""`StreamRidge`, a forecaster of river: `learn_one(y, x)` and `forecast(horizon, xs)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, counted, missing_library
from streamridge.forecaster.extra_columns import LAST_KNOWN, GivenExtras
from streamridge.forecaster.forecaster import Forecaster as OwnForecaster
from streamridge.forecaster.plausibility import BoundPair

try:
    from river.time_series.base import Forecaster
except ImportError as error:
    raise missing_library("river", error) from error


class StreamRidge(Forecaster):
    """A forecaster that tunes its hyperparameters while it learns.

    The times of observations are the numbers of their steps. Every call of `learn_one` is one step;
    a missing observation is None or NaN.

    Parameters
    ----------
    horizon
        The largest number of steps that `forecast` can be asked for.
    seasons
        Periods after which the series tends to repeat itself, in steps: (24, 168) for the day and
        the week of hours. None by default.
    extras
        Names of the features of `x` to use, which are known in advance; other features are ignored.
    train_size, update_every, warmup, bounds
        As for `streamridge.Forecaster`. Before the first fit, which needs `warmup` observations,
        forecasts are naive: the last observation, or the one a season ago.

    Examples
    --------
    >>> import math
    >>> model = StreamRidge(horizon=12, seasons=(24,))
    >>> for hour in range(120):
    ...     model.learn_one(100 + 50 * math.sin(2 * math.pi * hour / 24))
    >>> [round(each) for each in model.forecast(horizon=3)]
    [100, 113, 125]
    """

    def __init__(
        self,
        horizon: int = 12,
        seasons: tuple[int, ...] | None = None,
        extras: tuple[str, ...] | None = None,
        train_size: int | None = None,
        update_every: int | None = None,
        warmup: int | None = None,
        bounds: BoundPair | None = None,
    ) -> None:
        self.horizon = horizon
        self.seasons = seasons
        self.extras = extras
        self.train_size = train_size
        self.update_every = update_every
        self.warmup = warmup
        self.bounds = bounds
        self._steps = 0
        self._forecaster = OwnForecaster(
            step=1,
            horizon=horizon,
            seasons=seasons,
            extras=() if extras is None else extras,
            train_size=train_size,
            update_every=update_every,
            warmup=warmup,
            bounds=bounds,
        )

    def learn_one(self, y: float | None, x: Mapping[str, float] | None = None) -> None:
        """Learn from the observation of the next step; None or NaN is a missing one."""
        known = {name: (x or {}).get(name, nan) for name in self.extras or ()}
        self._forecaster.observe(self._steps, y, known or None)
        self._steps += 1

    def forecast(
        self, horizon: int, xs: Sequence[Mapping[str, float]] | None = None
    ) -> list[float]:
        """Return the forecast of each of the next steps; 0 before the first observation.

        `xs` holds the features of the steps ahead, if the model has extras.
        """
        if require_count("horizon", horizon) > self.horizon:
            raise InvalidInputError(
                f"horizon must be at most {self.horizon}, the horizon of the model, got {horizon}. "
                f"Create the model with horizon={horizon}."
            )
        if xs is not None and len(xs) != horizon:
            raise InvalidInputError(
                f"xs must hold the features of {counted(horizon, 'step')}, got {len(xs)}."
            )
        if self._forecaster.next_time is None:
            return [0.0] * horizon
        forecast = self._forecaster.predict(self._columns(xs or ()) if self.extras else None)
        return forecast.value[:horizon].tolist()

    def _columns(self, xs: Sequence[Mapping[str, float]]) -> GivenExtras:
        """Return the extras of all steps ahead; beyond `xs` the last ones are repeated."""
        if not xs:
            return LAST_KNOWN
        rows = [*xs, *[xs[-1]] * (self.horizon - len(xs))]
        return {name: [row.get(name) for row in rows] for name in self.extras or ()}
