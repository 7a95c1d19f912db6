"""A sensor's past once more, and the rows that are made of it, on whole lists."""

import numpy as np

from tests.forecaster.plain_learner import Row


class PlainPast:
    """All values by step, which were read, which are trusted, and how many are remembered."""

    def __init__(self, features, horizon, start, capacity):
        self.features, self.horizon, self.day = features, horizon, features.day
        self.start, self.capacity = start, capacity
        self.values, self.read, self.trusts = [], [], []

    def __len__(self):
        return len(self.values)

    @property
    def newest(self):
        return self.start + len(self.values) - 1

    @property
    def oldest(self):
        return max(self.start, self.newest - self.capacity + 1)

    @property
    def latest(self):
        return self.values[-1]

    def ever(self, step):
        """Return the value at any step since the first, remembered or not."""
        return self.values[step - self.start]

    def value_at(self, step):
        """Return the value at a step, the latest where none is remembered."""
        known = self.oldest <= step <= self.newest
        return self.ever(step) if known else self.latest

    def is_trusted(self, step):
        return self.oldest <= step <= self.newest and self.trusts[step - self.start]

    def seasonal_value(self, step):
        for season in (7 * self.day, self.day):
            if self.start <= step - season <= self.newest:
                return self.value_at(step - season)
        return self.latest

    def readings(self):
        """Return the steps of the readings that are remembered."""
        steps = range(self.oldest, self.newest + 1)
        return [step for step in steps if self.read[step - self.start]]

    def push(self, value, *, read, trusted):
        self.values.append(value)
        self.read.append(read)
        self.trusts.append(trusted)

    def correct(self, step, value):
        """Put a reading that came late in its place."""
        at = step - self.start
        self.values[at], self.read[at], self.trusts[at] = value, True, True

    def distrust(self, step):
        self.trusts[step - self.start] = False

    def course(self, at, season, count, now):
        """Return the mean of the trusted values seasons before a step, and whether it has any."""
        steps = [at - season * k for k in range(1, count + 1)]
        known = [self.value_at(s) for s in steps if s < now and self.is_trusted(s)]
        if known:
            return sum(known) / len(known), True
        return self.value_at(min(at - season, now - 1)), False

    def row(self, step):
        """Return the features of a step, and whether all that they rest on is trusted."""
        f = self.features
        lags = max(f.lags, f.week_lags)
        around = range(step - lags, step + f.ahead + 1)
        days = {at: self.course(at, self.day, f.days, step) for at in around}
        weeks = {at: self.course(at, 7 * self.day, f.weeks, step) for at in around}
        weekly = {at: (weeks if weeks[at][1] else days)[at][0] for at in around}
        daily = {at: days[at][0] for at in around}
        x = [self.value_at(step - 1)]
        for typical, count in ((daily, f.lags), (weekly, f.week_lags)):
            x += [self.value_at(step - k) - typical[step - k] for k in range(1, count + 1)]
            x += [typical[step]]
            x += [typical[step + k] - typical[step + k - 1] for k in range(f.ahead + 1)]
        angles = [2 * np.pi * (step % period / period) for period in (self.day, 7 * self.day)]
        x += [np.sin(angle) for angle in angles] + [np.cos(angle) for angle in angles]
        read = all(self.is_trusted(step - k) for k in range(1, lags + 1))
        return np.array(x), read and all(known for _, known in days.values())

    def rows(self, steps):
        """Return the rows of some steps whose features and labels are all trusted."""
        rows = []
        for step in steps:
            labels = range(step, step + self.horizon)
            x, is_complete = self.row(step)
            if is_complete and all(self.is_trusted(at) for at in labels):
                rows.append(Row(step, x, np.array([self.value_at(at) for at in labels])))
        return rows
