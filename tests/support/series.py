"""Hourly series and frames for runs."""

import numpy as np
import pandas as pd

from streamridge.series.clock import Clock
from streamridge.series.series import Series
from tests.support.forecasters import DAY, START, daily, hours, small


def frame(values, kind=pd.DataFrame):
    times = START + np.arange(len(values)) * np.timedelta64(60, "m")
    return kind({"time": times.astype("M8[ms]"), "ramp": values})


def series(name, seed):
    clock = Clock(small().settings.step)
    values = daily(5 * DAY, seed=seed)
    return Series(name, clock, int(clock.steps(np.array(hours(0, 1)))[0]), values)
