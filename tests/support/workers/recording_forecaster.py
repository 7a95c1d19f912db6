"""A fake forecaster that records its readings and computes nothing.

Other tests prove that a real forecaster depends only on its readings and their order. This one
shows, a hundred times faster, that it gets the same readings in the same order.
"""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np

from streamridge_service.workers import snapshots, tracker
from tests.support.workers.logs import STEP


class RecordingForecaster:
    """The readings of a forecaster, behind its interface."""

    refit_due = False

    def __init__(self, readings=()):
        self.readings = [tuple(reading) for reading in readings]
        self.counts, self.hyperparameters = {}, {}
        self.tuning = SimpleNamespace(
            has_model=False, costs=SimpleNamespace(), experts={}, active_bounds={}, frozen=()
        )

    @classmethod
    def from_settings(cls, settings, series=None):
        return cls()

    @classmethod
    def from_bytes(cls, content):
        return cls(msgspec.json.decode(content))

    def to_bytes(self):
        return msgspec.json.encode(self.readings)

    @property
    def next_time(self):
        return self.readings[-1][0] + STEP if self.readings else None

    def observe(self, time, value):
        self.readings.append((time, value))

    def predict(self):
        """Return the last value as the forecast of the next step."""
        time, value = self.readings[-1]
        numbers = np.array([value])
        first = np.array([time + STEP]).astype("M8[us]")
        return SimpleNamespace(
            time=first, value=numbers, lower=numbers, upper=numbers, source="last"
        )


def record_readings(monkeypatch):
    """Replace the forecasters of all trackers by fakes that record their readings."""
    for module in (tracker, snapshots):
        monkeypatch.setattr(module, "Forecaster", RecordingForecaster)
    monkeypatch.setattr(tracker, "to_datetime", lambda time: time)
