"""The rows that a forecaster's model learns from, built from the readings of its sensor.

A fit sees the readings that are known at that moment. Late readings and later exclusions change
rows from the next refit on. Until then the training set is rebuilt with the readings that were
trusted at the refit.
"""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import StateError
from streamridge.features.base import (
    FeatureSet,
    Past,
    has_parameters,
    samples_at,
    with_parameters,
)
from streamridge.features.timeline import Timeline
from streamridge.models.base import Tangents
from streamridge.samples import Samples
from streamridge.series.sensor_clock import SensorClock
from streamridge.series.times import Steps


class TrainingRows:
    """The rows of one sensor, a `RowSource`; it reads the timeline and changes nothing."""

    def __init__(
        self,
        features: FeatureSet,
        timeline: Timeline,
        clock: SensorClock,
        *,
        horizon: int,  # H, the number of labels of a row
        reach: int,  # how many steps a row looks back
    ) -> None:
        self._features, self._timeline, self._clock = features, timeline, clock
        self._horizon, self._reach = horizon, reach

    def latest(self, count: int, lam: Vector) -> Samples:
        """Return the last `count` rows whose labels are all known."""
        steps, features = self._candidates(), with_parameters(self._features, lam)
        past, tried = Past(self._timeline, self._clock.known), count
        while True:
            rows = samples_at(features, past, steps[-tried:], self._horizon)
            if len(rows) >= count or tried >= len(steps):
                return rows[-count:]
            tried = 2 * tried

    def between(self, after: float, until: float, lam: Vector) -> Samples:
        """Return the rows later than `after`, up to `until`, whose labels are all known."""
        steps = self._candidates()
        steps = steps[(steps > after) & (steps <= until)]
        past = Past(self._timeline, self._clock.known)
        return samples_at(with_parameters(self._features, lam), past, steps, self._horizon)

    def at(self, times: Vector, lam: Vector) -> Samples:
        """Return the rows of a training set as they were at the last refit."""
        past = Past(self._timeline.as_at_refit(), self._clock.known)
        features, steps = with_parameters(self._features, lam), times.astype(np.int64)
        rows = samples_at(features, past, steps, self._horizon)
        if len(rows) < len(times):
            raise StateError(
                f"readings must make all {len(times)} rows that were trained on, got {len(rows)}."
            )
        return rows

    def tangents(self, times: Vector, predicted: Vector, lam: Vector) -> Tangents | None:
        """Return the derivatives of rows with respect to the numbers of the features."""
        features, timeline = with_parameters(self._features, lam), self._timeline
        if not has_parameters(features):
            return None
        training, window = (
            features.tangents(Past(each, self._clock.known), steps.astype(np.int64))
            for each, steps in ((timeline.as_at_refit(), times), (timeline, predicted))
        )
        return Tangents(training, window)

    def _candidates(self) -> Steps:
        """Return the steps whose rows and labels are remembered, and whose own label is trusted."""
        timeline = self._timeline
        steps = timeline.remembered()
        steps = steps[timeline.trusted(steps)]
        whole = timeline.oldest == timeline.start  # nothing has been forgotten
        first = timeline.oldest if whole else timeline.oldest + self._reach
        return steps[(steps >= first) & (steps <= timeline.newest - self._horizon + 1)]
