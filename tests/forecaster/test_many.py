"""The forecasts of many sensors are those of each."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, predict_many

START, HOUR = np.datetime64("2021-06-13T00:00"), np.timedelta64(1, "h")


def lived(count, **settings):
    """Return a forecaster after some hours of a daily wave."""
    forecaster = Forecaster("1h", train_size=60, warmup=40, **settings)
    for hour in range(count):
        forecaster.observe(START + hour * HOUR, 100.0 + hour % 24 + 0.1 * (hour * 7 % 5))
    return forecaster


@pytest.mark.parametrize("level", [None, 0.5, (0.8, 0.95)])
def test_each_forecast_is_the_one_that_its_forecaster_makes(level):
    every = [lived(80), lived(0), lived(20), lived(70, horizon=3, tz="Europe/Berlin"), lived(90)]
    twins = [Forecaster.from_bytes(each.to_bytes()) for each in every]

    forecasts = predict_many(iter(every), level=level)

    assert {each.source for each in forecasts} == {"model", "none", "seasonal"}
    assert forecasts == [twin.predict(level=level) for twin in twins]


def test_of_no_forecasters_there_are_no_forecasts():
    assert predict_many([]) == []


def test_what_is_no_forecaster_is_named():
    with pytest.raises(InvalidInputError, match="forecasters must hold forecasters only, got 'a'"):
        predict_many([lived(1), "a"])


def test_an_error_begins_with_the_name_of_its_sensor():
    rainy = Forecaster("1h", extras=("rain",), sensor="ramp-7")

    with pytest.raises(InvalidInputError, match=r"^ramp-7: extras must give rain, got none"):
        predict_many([lived(1), rainy])
