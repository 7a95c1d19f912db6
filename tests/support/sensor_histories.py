"""Histories of sensors whose rows can be checked by hand."""

from dataclasses import replace

import numpy as np

from streamridge import ConstantStep, Features, KernelRidge, Linear, Preset
from streamridge.forecaster.sensor_history import SensorHistory
from streamridge.forecaster.training_rows import TrainingRows
from tests.support.forecasters import small

LAGS, FIRST, HORIZON = 2, 1000, 3
MODEL = KernelRidge(Linear())
LAM = MODEL.space.values


def recalled(count, *, gaps=(), horizon=HORIZON, reach=LAGS):
    """Return a history with rows of two lags, after `count` readings; the value of step t is t."""
    preset = Preset(Features(lags=LAGS), MODEL, ConstantStep(0.1))
    history = SensorHistory(replace(small().settings, preset=preset, horizon=horizon))
    history.reach = reach  # a row may look back further than it must
    history.rows = TrainingRows(
        preset.features, history.timeline, history.clock, horizon=horizon, reach=reach
    )
    history.place(np.datetime64(FIRST, "h"))
    for step in range(FIRST, FIRST + count):
        history.timeline.push(float(step), read=step not in gaps, trusted=step not in gaps)
    return history
