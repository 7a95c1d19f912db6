"""`StreamRidgePredictor`, a predictor of GluonTS, which the GIFT-Eval harness can score."""

from typing import Any

import numpy as np

from streamridge.adapters.sensors import Sensors, levels_between, quantiles, whole_series
from streamridge.errors import InvalidInputError, about, missing_library

try:
    import pandas as pd
    from gluonts.core.component import validated
    from gluonts.model.forecast import QuantileForecast
    from gluonts.model.predictor import RepresentablePredictor
except ImportError as error:
    raise missing_library("gluonts", error) from error

DECILES = tuple(tenth / 10 for tenth in range(1, 10))


class StreamRidgePredictor(RepresentablePredictor):
    """A predictor that forecasts the deciles of each series of a dataset.

    It keeps a forecaster for each item. Rolling windows give the same item with longer and longer
    targets: the forecaster then observes only the new values, and continues as it does live. A
    target that does not continue the last one starts a new forecaster. Covariates are not used.

    Parameters
    ----------
    prediction_length
        The number of steps to forecast.
    settings
        Settings of `streamridge.Forecaster`, such as {"bounds": [0, None]}, and the `model`.

    Examples
    --------
    >>> start = pd.Period("2021-06-14 00:00", "h")
    >>> target = 100 + 50 * np.sin(2 * np.pi * np.arange(240) / 24)
    >>> forecasts = StreamRidgePredictor(prediction_length=3).predict(
    ...     [{"start": start, "target": target, "item_id": "ramp"}]
    ... )
    >>> next(forecasts).quantile(0.5).round()
    array([100., 113., 125.])
    """

    @validated()
    def __init__(self, prediction_length: int, settings: dict[str, Any] = {}) -> None:  # noqa: B006
        super().__init__(prediction_length=prediction_length)
        self._sensors = Sensors(prediction_length, levels_between(DECILES), **settings)

    def predict_item(self, item: dict[str, Any]) -> QuantileForecast:
        """Return the forecast of the steps after the target of an item."""
        name, start = str(item.get("item_id", "")), item["start"]
        target = np.asarray(item["target"], dtype=np.float64)
        if target.ndim != 1 or np.isnan(target).all():
            raise InvalidInputError(
                f"{name}: target must be one series with a value, got {target.shape} numbers and "
                f"{np.isnan(target).sum()} missing ones."
            )
        times = pd.period_range(start, periods=len(target), freq=start.freq)
        with about(name):
            self._sensors.follow({name: whole_series(pd.Series(target, times))})
        shares = quantiles(self._sensors.predict_one(name), DECILES).T
        return QuantileForecast(
            shares, start + len(target), [str(each) for each in DECILES], item.get("item_id")
        )
