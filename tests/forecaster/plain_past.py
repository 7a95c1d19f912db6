"""A sensor's past once more, and the rows that are made of it, on whole lists."""

import numpy as np

from tests.forecaster.plain_learner import Row


class PlainPast:
    """All values by step, which were read, which are trusted, and which are remembered."""

    def __init__(self, features, horizon, start, holidays=()):
        self.holidays = {np.datetime64(day) for day in holidays}
        self.features, self.horizon, self.day = features, horizon, features.day
        self.start = self.oldest = start
        self.reach = features.reach + self.day + 1  # how far back a row may look
        self.values, self.read, self.trusts = [], [], []

    def __len__(self):
        return len(self.values)

    @property
    def newest(self):
        return self.start + len(self.values) - 1

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

    def before_sunday(self, step):
        """Return how many steps a step of a holiday comes before the Sunday of its week; else 0."""
        day = np.datetime64(int(step) // self.day, "D")
        return self.day * (6 - day.tolist().weekday()) if day in self.holidays else 0

    def seasonal_value(self, step):
        for season in (7 * self.day - self.before_sunday(step), self.day):
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

    def daily_course(self, at, now):
        days = [at - self.day * k for k in range(1, self.features.days + 1)]
        return self.mean(days, now)

    def weekly_course(self, at, now):
        """Return the mean over weeks; of a holiday, over Sundays, and over no holiday of others."""
        sunday = at + self.before_sunday(at)
        weeks = [sunday - 7 * self.day * k for k in range(1, self.features.weeks + 1)]
        return self.mean([week for week in weeks if not self.before_sunday(week)], now)

    def mean(self, steps, now):
        """Return the mean of the trusted values of steps, and whether it has any."""
        known = [self.value_at(s) for s in steps if s < now and self.is_trusted(s)]
        if known:
            return sum(known) / len(known), True
        return self.value_at(min(steps[0], now - 1)) if steps else np.nan, False

    def row(self, step):
        """Return the features of a step, and whether all that they rest on is trusted."""
        f = self.features
        lags = max(f.lags, f.week_lags)
        around = range(step - lags, step + f.ahead + 1)
        days = {at: self.daily_course(at, step) for at in around}
        weeks = {at: self.weekly_course(at, step) for at in around}
        weekly = {at: (weeks if weeks[at][1] else days)[at][0] for at in around}
        daily = {at: days[at][0] for at in around}
        x = [self.value_at(step - 1)]
        for typical, count in ((daily, f.lags), (weekly, f.week_lags)):
            x += [self.value_at(step - k) - typical[step - k] for k in range(1, count + 1)]
            x += [typical[step]]
            x += [typical[step + k] - typical[step + k - 1] for k in range(f.ahead + 1)]
        at = step + self.before_sunday(step)
        angles = [2 * np.pi * (at % period / period) for period in (self.day, 7 * self.day)]
        x += [np.sin(angle) for angle in angles] + [np.cos(angle) for angle in angles]
        read = all(self.is_trusted(step - k) for k in range(1, lags + 1))
        return np.array(x), read and all(known for _, known in days.values())

    def forget_before(self, step):
        self.oldest = max(self.oldest, step)

    def known_rows(self, after=-1):
        """Return all rows later than a step whose past has not been forgotten."""
        first = self.start if self.oldest == self.start else self.oldest + self.reach
        return self.rows(range(max(first, after + 1), self.newest - self.horizon + 2))

    def rows(self, steps):
        """Return the rows of some steps whose features and labels are all trusted."""
        rows = []
        for step in steps:
            labels = range(step, step + self.horizon)
            x, is_complete = self.row(step)
            if is_complete and all(self.is_trusted(at) for at in labels):
                rows.append(Row(step, x, np.array([self.value_at(at) for at in labels])))
        return rows
