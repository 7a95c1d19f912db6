"""Logs of sensors, and a small world in which they are followed."""

from __future__ import annotations

from itertools import takewhile

import msgspec
import numpy as np

from streamridge.learners.workspace import Workspace
from streamridge_service.ledger.records import Kind, SensorRow, StoredReading
from streamridge_service.plan import MINUTE, Plan
from streamridge_service.workers.snapshots import refitted
from streamridge_service.workers.tracker import OutOfOrderError, Tracker

STEP = 15 * MINUTE
START = 1_700_000_100_000_000 // STEP * STEP
DAY = 96
PLAN = Plan(step=STEP, train_size=200)
SENSOR = SensorRow(1, "north", START)


def daily(count, seed=0, noise=5.0):
    rng = np.random.default_rng(seed)
    course = 100 + 50 * np.sin(2 * np.pi * np.arange(count) / DAY)
    return (course + noise * rng.standard_normal(count)).tolist()


def entries(values, first=0, sensor=1, kind=Kind.LIVE):
    """Return readings, one a step, numbered from one on."""
    return [
        StoredReading(i + 1, sensor, START + (first + i) * STEP, value, 0, kind)
        for i, value in enumerate(values)
    ]


def numbered(log):
    """Return readings in another order as if they had arrived in it."""
    return [msgspec.structs.replace(each, seq=i + 1) for i, each in enumerate(log)]


class World:
    """A sensor that is followed as a worker does it, with a log in memory instead of a ledger."""

    def __init__(self, sensor=SENSOR, plan=PLAN):
        self.sensor, self.plan = sensor, plan
        self.log, self.snapshots, self.issued, self.rebuilt = [], [], [], 0
        self.tracker = Tracker(sensor, plan)
        self._workspace = Workspace()

    def take(self, item):
        self.log.append(item)
        try:
            self.issued += self.tracker.process(item)
        except OutOfOrderError:
            self.rebuilt += 1
            self.tracker = self.made_again()
        if self.tracker.due_refit is not None:
            self.snapshots.append(refitted(self.tracker.due_refit, self._workspace))
            self.tracker = self.made_again()
        return self

    def follow(self, items):
        for item in items:
            self.take(item)
        return self

    def made_again(self):
        """Return the tracker of the last snapshot, or of the log alone."""
        if not self.snapshots:
            tracker = Tracker(self.sensor, self.plan)
            tracker.catch_up(self.log)
            return tracker
        point = self.snapshots[-1].point
        tracker = Tracker.resumed(self.sensor, self.plan, self.snapshots[-1])
        tracker.catch_up([e for e in self.log if e.seq > point.seq or e.seq in point.unused])
        return tracker

    @property
    def digest(self):
        """Return the current state, the summary, and the state of each refit point."""
        points = [(each.point.until, each.point.kind, each.state) for each in self.snapshots]
        return self.tracker.to_bytes(), self.tracker.summary, points


def whole_days(log):
    """Return the history of a log, up to its last whole day."""
    return list(takewhile(lambda entry: entry.seq <= len(log) // DAY * DAY, log))
