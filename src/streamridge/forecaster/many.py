"""The next forecasts of many sensors at once."""

from __future__ import annotations

from collections.abc import Iterable

from streamridge.errors import InvalidInputError, shown
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.levels import Level


def predict_many(
    forecasters: Iterable[Forecaster], *, level: Level | None = None
) -> list[Forecast]:
    """Return the forecasts of many sensors, in their order: what `predict` returns of each.

    Sensors share the tables of their calendar and their zone, which are kept for all alike. What
    else a forecast costs is the sensor's own, so that this takes as long as the loop that it is.

    Parameters
    ----------
    forecasters
        The forecasters, of any settings. None of them may have further columns, whose values only
        its own `predict` takes.
    level
        The level of the bands, or several; those of each forecaster by default.

    Examples
    --------
    >>> pair = [Forecaster("1h", sensor=name) for name in ("north", "south")]
    >>> for forecaster, value in zip(pair, (3.0, 5.0)):
    ...     forecaster.observe("2021-06-13T08:00", value)
    >>> [forecast.value.tolist() for forecast in predict_many(pair)]
    [[3.0], [5.0]]
    """
    every = list(forecasters)
    for each in every:
        if not isinstance(each, Forecaster):
            raise InvalidInputError(f"forecasters must hold forecasters only, got {shown(each)}.")
    return [each.predict(level=level) for each in every]
