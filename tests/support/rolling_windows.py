"""Hourly series in rolling windows, and the forecasts of a live forecaster for them."""

import numpy as np
import pandas as pd

import streamridge as sr

H, WINDOWS = 12, 3
START = pd.Period("2021-06-14 00:00", "h")
SETTINGS = {"train_size": 96}


def entries(count: int = 2) -> list[dict]:
    rng, hours = np.random.default_rng(0), np.arange(240)
    return [
        {
            "start": START,
            "target": 100 + 50 * np.sin(2 * np.pi * (hours + 6 * at) / 24) + rng.normal(0, 5, 240),
            "item_id": f"road-{at}",
        }
        for at in range(count)
    ]


def by_hand(target: np.ndarray) -> list[sr.Forecast]:
    """Return the forecast before each window, of one forecaster that observes all steps."""
    times = START.to_timestamp() + pd.to_timedelta(np.arange(len(target)), unit="h")
    first, made = len(target) - WINDOWS * H, []
    own = sr.Forecaster.start(
        pd.Series(target, times)[:first], horizon=H, level=(0.2, 0.4, 0.6, 0.8), **SETTINGS
    )
    for at in range(first, len(target)):
        if (len(target) - at) % H == 0:
            made.append(own.predict())
        own.observe(times[at], target[at])
    return made
