"""A sensor's past once more, and the rows that are made of it, on whole lists."""

from functools import cache

import numpy as np

from tests.support.plain_learner import Row


@cache
def steps_back(season):
    """Return how many steps back each value of a profile is, and which season it is from."""
    beside = [season.apart * j for j in range(-season.beside, season.beside + 1)]
    seasons = [round(season.period * k) for k in range(1, season.count + 1)]
    return [(back + j, k) for k, back in enumerate(seasons) for j in beside]


@cache
def nearest(seasons):
    """Return how many steps back the nearest value of any of the profiles is."""
    return min(steps_back(season)[0][0] for season in seasons)


class PlainPast:
    """All values by step, which were read, which are trusted, and which are remembered."""

    def __init__(self, features, periods, horizon, start, reach):
        self.features, self.periods, self.horizon = features, periods, horizon
        self.start = self.oldest = start
        self.reach = reach  # how far back a row may look
        self.holidays, self.day = set(), None
        self.values, self.read, self.trusts, self.filled = [], [], [], []
        self.courses = {}  # what `course` returned since the last change

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
        return self.values[step - self.start] if known else self.latest

    def is_trusted(self, step):
        return self.oldest <= step <= self.newest and self.trusts[step - self.start]

    def is_sound(self, step):
        """Return whether a step is trusted, or had no reading and is filled in."""
        is_known = self.oldest <= step <= self.newest
        return self.is_trusted(step) or (is_known and self.filled[step - self.start])

    def mark_holidays(self, dates, day):
        """Take days as holidays, each of `day` steps."""
        self.courses.clear()
        self.holidays, self.day = {np.datetime64(each) for each in dates}, day

    def before_sunday(self, step):
        """Return how many steps a step of a holiday comes before the Sunday of its week; else 0."""
        if not self.holidays:
            return 0
        day = np.datetime64(int(step) // self.day, "D")
        return self.day * (6 - day.tolist().weekday()) if day in self.holidays else 0

    def seasonal_value(self, step, seasons):
        """Return the value the longest of some seasons ago; the shortest ones come first."""
        for season in [round(period) for period in self.periods[:seasons][::-1]]:
            season -= self.before_sunday(step) if season == 7 * self.day else 0
            if self.start <= step - season <= self.newest:
                return self.value_at(step - season)
        return self.latest

    def readings(self):
        """Return the steps of the readings that are remembered."""
        steps = range(self.oldest, self.newest + 1)
        return [step for step in steps if self.read[step - self.start]]

    def push(self, value, *, read, trusted):
        self.courses.clear()
        self.values.append(value)
        self.read.append(read)
        self.trusts.append(trusted)
        self.filled.append(not read)

    def correct(self, step, value):
        """Put a reading that came late in its place."""
        self.courses.clear()
        at = step - self.start
        self.values[at], self.read[at], self.trusts[at] = value, True, True
        self.filled[at] = False

    def distrust(self, step):
        self.courses.clear()
        self.trusts[step - self.start] = False

    def known_course(self, at, seasons, now, rates, weights):
        """Return `course`, computed once until a value changes: rows share most of their steps."""
        # The present matters only to a course that looks at it, or beyond it.
        ahead = self.before_sunday(at) - nearest(seasons)
        key = at, len(seasons), min(now, at + ahead + 1), rates
        if key not in self.courses:
            self.courses[key] = self.course(at, seasons, now, weights)
        return self.courses[key]

    def course(self, at, seasons, now, weights):
        """Return the mean of the trusted values seasons before a step, if sound, and if known.

        The values of each season back have a weight.
        Where the last of the seasons has none, the one before it stands in; where none has any, the
        value a season ago, which must not be in doubt.
        """
        season = seasons[-1]
        is_week = season.name == "week"
        sunday = at + self.before_sunday(at) if is_week else at
        steps = [(sunday - back, k) for back, k in steps_back(season)]
        if is_week and self.holidays:
            steps = [(s, k) for s, k in steps if not self.before_sunday(s)]
        # As `is_trusted` does, without a call for each of millions of steps.
        first, end, start = self.oldest, min(now, self.newest + 1), self.start
        values, trusts = self.values, self.trusts
        known = [(s - start, k) for s, k in steps if first <= s < end and trusts[s - start]]
        if known:
            each = weights[season.name]
            if len({k for _, k in known}) == 1:  # the weights cancel, without a rounded derivative
                return sum(values[i] for i, _ in known) / len(known), True, True
            total = sum([each[k] * values[i] for i, k in known])
            return total / sum([each[k] for _, k in known]), True, True
        if len(seasons) > 1:
            return self.course(at, seasons[:-1], now, weights)
        stands_in = min(steps[0][0], now - 1)
        return self.value_at(stands_in), self.is_sound(stands_in), False

    def row(self, step, rates):
        """Return the features of a step at rates of forgetting, and whether they can be learned.

        Nothing that they rest on may be in doubt. A quarter of the lags must have been read, or be
        at times that never are.
        """
        f = self.features
        rates = tuple(rates)
        left = iter(rates)
        forgotten = {each: next(left) if each.forgetting > 0 else 0.0 for each in f.seasons}
        weights = {
            each.name: [np.exp(-rate * k) for k in range(each.count)]
            for each, rate in forgotten.items()
        }
        lags = max((season.lags for season in f.seasons), default=f.lags + 1)
        around = range(step - lags, step + f.ahead + 1)
        x, read, never = [self.value_at(step - 1)], True, set()
        if not f.seasons:
            x += [self.value_at(step - k) - self.value_at(step - k - 1) for k in range(1, lags)]
        for i, season in enumerate(f.seasons):
            seasons = f.seasons[: i + 1]
            course = {at: self.known_course(at, seasons, step, rates, weights) for at in around}
            typical = {at: value for at, (value, _, _) in course.items()}
            read = read and all(is_sound for _, is_sound, _ in course.values())
            if i == 0:
                never = {at for at, (_, is_sound, known) in course.items() if is_sound > known}
            x += [self.value_at(step - k) - typical[step - k] for k in range(1, season.lags + 1)]
            x += [typical[step]]
            x += [typical[step + k] - typical[step + k - 1] for k in range(f.ahead + 1)]
        places = {s.period: step for s in f.seasons if s.period > 1}
        places |= {s.period: step + self.before_sunday(step) for s in f.seasons if s.name == "week"}
        angles = [2 * np.pi * (at % period / period) for period, at in places.items()]
        x += [np.sin(angle) for angle in angles] + [np.cos(angle) for angle in angles]
        behind = range(step - lags, step)
        enough = sum(self.is_trusted(at) or at in never for at in behind) >= 0.25 * lags
        return np.array(x), read and enough and all(map(self.is_sound, behind))

    def forget_before(self, step):
        self.courses.clear()
        self.oldest = max(self.oldest, step)

    def with_slopes(self, rows, rates):
        """Return rows with the derivatives of their features: a tiny imaginary part of each rate.

        What it adds to the features is their derivative, without any rounding by differences.
        """
        tiny = 1e-30
        for row in rows:
            bumped = [
                [r + tiny * 1j * (j == i) for j, r in enumerate(rates)] for i in range(len(rates))
            ]
            slopes = [np.imag(self.row(row.t, each)[0]) / tiny for each in bumped]
            row.slopes = np.array(slopes).reshape(len(rates), len(row.x))
        return rows

    def known_rows(self, rates, after=-1):
        """Return all rows later than a step whose past has not been forgotten."""
        first = self.start if self.oldest == self.start else self.oldest + self.reach
        return self.rows(range(max(first, after + 1), self.newest - self.horizon + 2), rates)

    def rows(self, steps, rates):
        """Return the rows of some steps whose features and labels are all trusted."""
        rows = []
        for step in steps:
            labels = range(step, step + self.horizon)
            x, is_complete = self.row(step, rates)
            if is_complete and all(self.is_trusted(at) for at in labels):
                rows.append(Row(step, x, np.array([self.value_at(at) for at in labels])))
        return rows
