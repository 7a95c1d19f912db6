"""A forecaster that writes down what it is told and computes nothing.

What a forecaster becomes depends on what it is told, in which order: that is proved with real ones.
A diary in its place shows, a hundred times as fast, that it is told the same in the same order.
"""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import numpy as np

from streamridge.service.fleet import making, tracker
from tests.service.fleet.logs import STEP


class Diary:
    """What a forecaster was told, with the face of a forecaster."""

    has_model = refit_due = False
    frozen = ()

    def __init__(self, pages=()):
        self.pages = [tuple(page) for page in pages]
        self.counts, self.costs = {}, SimpleNamespace()
        self.hyperparameters, self.experts, self.active_bounds = {}, {}, {}

    @classmethod
    def of(cls, settings, series=None):
        return cls()

    @classmethod
    def from_bytes(cls, content):
        return cls(msgspec.json.decode(content))

    def to_bytes(self):
        return msgspec.json.encode(self.pages)

    @property
    def has_readings(self):
        return bool(self.pages)

    def observe(self, time, value):
        self.pages.append((time, value))

    def predict(self):
        """Return the last value as the forecast of the next step."""
        time, value = self.pages[-1]
        numbers = np.array([value])
        first = np.array([time + STEP]).astype("M8[us]")
        return SimpleNamespace(
            time=first, value=numbers, lower=numbers, upper=numbers, source="last"
        )


def keep_diaries(monkeypatch):
    """Let all trackers keep a diary in the place of a forecaster."""
    for module in (tracker, making):
        monkeypatch.setattr(module, "Forecaster", Diary)
    monkeypatch.setattr(tracker, "stamp", lambda time: time)
