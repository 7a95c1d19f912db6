"""`StreamRidge`, a forecaster of sktime whose `update` observes the new rows and fits nothing."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streamridge.adapters.sensors import levels_between, quantiles, whole_series
from streamridge.arrays import Matrix
from streamridge.errors import InvalidInputError, missing_library
from streamridge.forecaster.forecast import Level
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.plausibility import BoundPair
from streamridge.forecaster.settings import require_readings

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster
except ImportError as error:
    raise missing_library("sktime", error) from error


class StreamRidge(BaseForecaster):
    """A forecaster with bands that tunes its hyperparameters while it learns.

    The horizon must be given in `fit`, since the model depends on it; it lies in the future.
    `update` observes the new rows, which is cheap: the model is refitted only once in
    `update_every` rows, and never with `update_params=False`.

    Parameters
    ----------
    seasons
        Periods after which the series tends to repeat itself, such as ("1d", "7d"), or (24, 168)
        for an index of whole numbers. The default depends on the step.
    tz, lags, train_size, update_every, warmup, bounds
        As for `streamridge.Forecaster`.
    model
        The size of the model: "default", "compact" or "long".
    level
        The levels whose bands are calibrated by errors; others are derived from them.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from streamridge.adapters.sktime import StreamRidge
    >>> hours = pd.date_range("2021-06-14", periods=240, freq="h")
    >>> y = pd.Series(100 + 50 * np.sin(2 * np.pi * np.arange(240) / 24), hours)
    >>> model = StreamRidge().fit(y[:-1], fh=[1, 2])
    >>> model.update(y[-1:]).predict().round(-1).tolist()
    [100.0, 110.0]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["The streamridge developers"],
        "maintainers": ["The streamridge developers"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": True,
        "capability:update": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:insample": False,
        "capability:missing_values": True,
        "capability:exogenous": False,
        "capability:multivariate": False,
        "capability:categorical_in_X": False,
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}

    def __init__(
        self,
        seasons: Any = None,
        tz: str | None = None,
        lags: int = 16,
        model: str = "default",
        train_size: int | None = None,
        update_every: int | None = None,
        warmup: int | None = None,
        bounds: BoundPair | None = None,
        level: Level = 0.9,
    ) -> None:
        self.seasons = seasons
        self.tz = tz
        self.lags = lags
        self.model = model
        self.train_size = train_size
        self.update_every = update_every
        self.warmup = warmup
        self.bounds = bounds
        self.level = level
        super().__init__()
        self._y = self._X = None  # sktime fills them if a user sets remember_data later

    def _fit(self, y: Any, X: Any, fh: Any) -> Self:
        horizon = int(self._steps(fh).max())
        series = whole_series(y, self.tz)
        if isinstance(series.clock.step, int) and series.clock.step != 1:
            raise InvalidInputError(
                f"y must have an index of consecutive whole numbers, got {y.index!r}. "
                "Pass y.reset_index(drop=True)."
            )
        settings = self.get_params(deep=False)
        self.forecaster_ = Forecaster.start(series, horizon=horizon, defer_refits=True, **settings)
        if self.forecaster_.refit_due:
            self.forecaster_.refit()
        self._name, self._latest = y.name, self.cutoff
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Self:
        forecaster, given = self.forecaster_, self.cutoff
        self._set_cutoff(self._latest)  # sktime moves it first, to late rows or to bad ones as well
        require_readings("y", y.to_numpy())
        times = y.index.to_timestamp() if isinstance(y.index, pd.PeriodIndex) else y.index
        for time, value in zip(times, y.to_numpy(), strict=True):
            forecaster.observe(time, value)
            if update_params and forecaster.refit_due:
                forecaster.refit()
        self._latest = max(self._latest, given, key=lambda each: each[0])
        self._set_cutoff(self._latest)
        return self

    def _predict(self, fh: Any, X: Any = None) -> Any:
        values = self.forecaster_.predict().value[self._steps(fh) - 1]
        return pd.Series(values, fh.to_absolute_index(self.cutoff), name=self._name)

    def _predict_interval(self, fh: Any, X: Any, coverage: list[float]) -> Any:
        ends = [end for each in coverage for end in ((1 - each) / 2, (1 + each) / 2)]
        columns = pd.MultiIndex.from_product([self._get_varnames(), coverage, ["lower", "upper"]])
        return pd.DataFrame(self._quantiles(fh, ends), fh.to_absolute_index(self.cutoff), columns)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(self._quantiles(fh, alpha), fh.to_absolute_index(self.cutoff), columns)

    def _quantiles(self, fh: Any, shares: list[float]) -> Matrix:
        """Return the quantiles of the steps of a horizon, shape (steps, shares)."""
        forecast = self.forecaster_.predict(level=levels_between(shares))
        return quantiles(forecast, shares)[self._steps(fh) - 1]

    def _steps(self, fh: Any) -> NDArray[np.int64]:
        """Return the numbers of the steps ahead; sktime refuses other steps than those of fit."""
        return np.asarray(fh.to_relative(self.cutoff).to_numpy(), np.int64)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings for tests of sktime, which are small."""
        return [{"train_size": 32, "warmup": 8, "lags": 4}, {"model": "compact", "level": 0.8}]
