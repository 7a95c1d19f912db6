"""`StreamRidgeModel`, a model of fev, which scores it on the tasks of fev-bench."""

from __future__ import annotations

from typing import Any

from streamridge.adapters.sensors import Sensors, levels_between, quantiles, whole_series
from streamridge.errors import about, missing_library

try:
    import pandas as pd
    from fev import Task
    from fev.model import ForecastingModel
except ImportError as error:
    raise missing_library("fev", error) from error


class StreamRidgeModel(ForecastingModel):
    """A model that forecasts the windows of a task one after the other, as they come live.

    A series is fitted before its first window. Between windows its forecaster observes the new
    values. Several targets are forecast separately. Covariates are not used.

    Parameters
    ----------
    settings
        Settings of `streamridge.Forecaster`, such as `bounds`, and the `model`.
    """

    model_name = "streamridge"

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = settings

    def _fit_predict(self, task: Task) -> list[dict[str, list[dict[str, Any]]]]:
        """Return the predictions of each window, by target."""
        levels = levels_between(task.quantile_levels)
        sensors = {
            target: Sensors(task.horizon, levels, **self._settings)
            for target in task.target_columns
        }
        with self._record_inference_time():
            return [
                {
                    target: self._window(task, window, target, each)
                    for target, each in sensors.items()
                }
                for window in task.iter_windows()
            ]

    def _window(
        self, task: Task, window: Any, target: str, sensors: Sensors
    ) -> list[dict[str, Any]]:
        """Return the predictions of one target in the order of the window's series."""
        past, _ = window.get_input_data()
        made = []
        for row in past.to_pandas().to_dict("records"):
            name, times = str(row[task.id_column]), row[task.timestamp_column]
            with about(name):
                series = whole_series(pd.Series(row[target], pd.DatetimeIndex(times)))
                sensors.follow({name: series})
            forecast = sensors.predict_one(name)
            shares = quantiles(forecast, task.quantile_levels).T if task.quantile_levels else ()
            made.append(
                {
                    "predictions": forecast.value,
                    **dict(zip(map(str, task.quantile_levels), shares, strict=True)),
                }
            )
        return made
