"""A program that uses the installed package. Type checkers find nothing in it."""

from datetime import datetime
from pathlib import Path

import streamridge as sr
from streamridge.errors import StreamRidgeError


def forecast_live(readings: list[tuple[datetime, float | None]], path: Path) -> list[float]:
    """Return the first value of each forecast."""
    forecaster = sr.Forecaster(step="15min", horizon=4)
    values: list[float] = []
    for time, value in readings:
        forecast: sr.Forecast = forecaster.predict()
        values.append(float(forecast.value[0]))
        forecaster.observe(time, value)
    forecaster.save(path)
    return values


def run_file(path: str) -> sr.Run:
    """Return a replay of a file."""
    started = sr.Forecaster.start(path, step="15min", train_size=480, gap="skip")
    return sr.replay(started, path, from_="2021-06-13", last_steps=96)


def other_functions(path: str) -> None:
    """Call the other functions that take options."""
    sr.compare(path, ["ohl"], level=(0.8, 0.95), decimal=",", tz="Europe/London")
    sr.read(path, sensors=["ramp-3"], missing=-9999)
    sr.forecast(path, 96, level=(0.8, 0.95), gap="skip", extras=("rain=0",))


def own_kernel() -> sr.KernelRidge:
    """Return a model with a kernel of two parts."""
    try:
        return sr.KernelRidge(sr.Mixture([sr.Linear(), sr.ARD([0.1, 0.2])]), regularization=0.1)
    except StreamRidgeError as error:
        raise SystemExit(str(error)) from None
