"""The record of a forecaster: rows are not kept, but made from the readings when needed.

A fit is made to the readings as they are known at that moment. A reading that arrives later than
that, or a span that is excluded, changes the rows around it from the next refit on: until then the
training set is made again with the trust that each reading had at the refit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import StateError
from streamridge.features.base import HasNumbers, RowMaker, made_with, samples_at
from streamridge.features.past import Past
from streamridge.forecaster.sensor import Sensor
from streamridge.learners.rows import Row
from streamridge.models.base import Tangents
from streamridge.samples import Samples
from streamridge.series.clock import Steps


@dataclass(frozen=True)
class Recollection:
    """The rows of a sensor, made from what its timeline remembers.

    Parameters
    ----------
    features
        What a row holds, at the numbers that it is made with.
    sensor
        The sensor, which remembers its readings.
    horizon
        H, the number of labels.
    """

    features: RowMaker
    sensor: Sensor
    horizon: int

    def taken(self, row: Row | None, t: float, value: float) -> Recollection:
        """Return the record itself: the sensor remembers the reading."""
        return self

    def between(self, after: float, until: float, *, waited: bool = False) -> Samples:
        """Return the rows later than `after`, up to `until`, whose labels are all known.

        Those that `waited` for labels at the last refit stay as they were then, whatever came late:
        they are the same now and when all of their labels had come.
        """
        steps, timeline = self._candidates(), self.sensor.timeline
        steps = steps[(steps > after) & (steps <= until)]
        past = Past(timeline.as_it_came() if waited else timeline, self.sensor.clock.known)
        return samples_at(self.features, past, steps, self.horizon)

    def latest(self, count: int) -> Samples:
        """Return the last `count` rows whose labels are all known."""
        steps, tried = self._candidates(), count
        while True:
            rows = self._made(steps[-tried:])
            if len(rows) >= count or tried >= len(steps):
                return rows[-count:]
            tried = 2 * tried

    def renewed(self, oldest: float) -> Recollection:
        """Return the record itself; the sensor forgets what rows from `oldest` on do not need."""
        self.sensor.timeline.mark()
        self.sensor.timeline.forget_before(int(oldest) - self.sensor.reach)
        return self

    def keep_for(self, count: int) -> None:
        """Let the sensor forget, now and then, what a first fit to `count` rows does not need."""
        timeline = self.sensor.timeline
        oldest = timeline.newest - count - self.horizon - self.sensor.reach
        if timeline.oldest + count < oldest:
            timeline.forget_before(oldest)

    def at(self, times: Vector, refits_ago: int) -> Samples:
        """Return the rows of a training set as they were known at the last refit, or before it."""
        timeline = self.sensor.timeline.as_at_refit(refits_ago)
        past = Past(timeline, self.sensor.clock.known)
        rows = samples_at(self.features, past, times.astype(np.int64), self.horizon)
        if len(rows) < len(times):
            raise StateError(
                f"readings must make all {len(times)} rows that were trained on, got {len(rows)}."
            )
        return rows

    def under(self, lam: Vector) -> Recollection:
        """Return the record whose rows are made with the last of lam, if there are such numbers."""
        return replace(self, features=made_with(self.features, lam))

    def tangents(self, times: Vector, predicted: Vector, refits_ago: int) -> Tangents | None:
        """Return how rows of a fit, and those it predicted, move with the features' numbers."""
        features, timeline = self.features, self.sensor.timeline
        if not (isinstance(features, HasNumbers) and features.space.names):
            return None
        seen = timeline.as_it_came() if refits_ago else timeline
        training, window = (
            features.tangents(Past(each, self.sensor.clock.known), steps.astype(np.int64))
            for each, steps in ((timeline.as_at_refit(refits_ago), times), (seen, predicted))
        )
        return Tangents(training, window)

    def state(self) -> dict[str, Matrix]:
        """Return nothing: the sensor's state has the readings."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Recollection:
        """Return the record itself."""
        return self

    def _candidates(self) -> Steps:
        """Return the steps whose rows and labels are remembered, and whose own label is trusted."""
        timeline = self.sensor.timeline
        steps = timeline.remembered()
        steps = steps[timeline.trusted(steps)]
        whole = timeline.oldest == timeline.start  # nothing before has been forgotten
        first = timeline.oldest if whole else timeline.oldest + self.sensor.reach
        return steps[(steps >= first) & (steps <= timeline.newest - self.horizon + 1)]

    def _made(self, steps: Steps) -> Samples:
        return samples_at(self.features, self.sensor.past, steps, self.horizon)
