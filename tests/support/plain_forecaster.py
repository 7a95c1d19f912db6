"""The whole forecaster once more: slow, plain, on lists of all that was, and no part of its own.

It shares kernels, models, step rules and coordinates with the package, which have oracles and laws
of their own. All that a forecaster does around them is written out here: what stands in for a
model, how gaps are filled, readings judged, errors corrected and bands set.
"""

from collections import Counter
from datetime import timedelta
from itertools import groupby, pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tests.support.plain_calibration import PlainCorrection, PlainVolatility, mean_of
from tests.support.plain_experts import PlainExperts
from tests.support.plain_learner import PlainLearner
from tests.support.plain_past import PlainPast
from tests.support.plain_pattern import PlainPattern


class Expected(NamedTuple):
    """What `predict` has to return."""

    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    source: str


def gaussian(level):
    """Return how many deviations the band of a level reaches."""
    return NormalDist().inv_cdf((1 + level) / 2)


def lately(sizes):
    """Return a mean in which sizes count half after 24 later ones; infinite without any.

    The first one is the size that was expected, and counts as four.
    """
    weights = 0.5 ** (np.arange(len(sizes))[::-1] / 24)
    weights[:1] *= 4
    return np.average(sizes, weights=weights) if sizes else np.inf


def unit(reading):
    """Return the unit of a reading's last digit, at most one."""
    return next(10.0**-k for k in range(400) if k == 399 or reading == round(reading, k))


def expected(reading):
    """Return the size of error to expect before there is any."""
    size = max(abs(reading), unit(reading))
    return np.sqrt(size * max(unit(reading), 1e-3 * size))


class Bands:
    """Multiples of the expected size of error, which follow the quantiles of what was seen."""

    def __init__(self, horizon, levels):
        self.levels = sorted({0.9, *levels})
        self.learned = {
            level: np.full((horizon, 2), 1.3 * gaussian(level) / 0.53) for level in self.levels
        }
        self.seen = [0] * horizon

    def learn(self, h, error, spread):
        rate = max(0.05, 1 / np.sqrt(8 + self.seen[h]))
        for level, reach in self.learned.items():
            for side, excess in enumerate((-error / spread, error / spread)):
                missed = excess > reach[h, side]
                reach[h, side] *= np.exp(rate * (missed - (1 - level) / 2))
                reach[h, side] = min(max(reach[h, side], 1e-3), 1e6)
        self.seen[h] += 1

    def nested(self, level):
        """Return the multiples of a learned level, kept on its side of those next to 0.9."""
        between = [each for each in self.levels if min(level, 0.9) <= each <= max(level, 0.9)]
        extreme = np.max if level > 0.9 else np.min
        return extreme([self.learned[each] for each in between], axis=0)

    def reach(self, level):
        """Return the multiples of any level, (H, 2)."""
        below = [each for each in self.levels if each <= level]
        above = [each for each in self.levels if each >= level]
        if not below or not above:
            nearest = (above or below[::-1])[0]
            return self.nested(nearest) * gaussian(level) / gaussian(nearest)
        low, high = below[-1], above[0]
        if low == high:
            return self.nested(low)
        share = (gaussian(level) - gaussian(low)) / (gaussian(high) - gaussian(low))
        return (1 - share) * self.nested(low) + share * self.nested(high)


def recurring(starts, within=1000):
    """Return whether twenty episodes began within some steps, or several at equal distances."""
    regular = 8 if within == 1000 else 4  # fewer where most readings are equal
    apart = [late - early for early, late in pairwise(starts[-regular:])]
    is_periodic = len(apart) == regular - 1 and min(apart) >= 8 and max(apart) - min(apart) <= 2
    return is_periodic or (len(starts) >= 20 and starts[-1] - starts[-20] < within)


class PlainForecaster:
    """The forecaster's step on lists of all readings, by whole steps instead of times."""

    def __init__(self, settings):
        self.settings, self.features = settings, settings.preset.features
        self.patience, self.horizon = settings.patience, settings.horizon
        self.past = None
        self.silent, self.resolution = 0, np.inf
        self.naive = Bands(1, settings.levels)
        self.naive_sizes = [[] for _ in (0, *settings.periods)]
        self.last_sizes, self.latest_squares = None, np.zeros((4, 2))
        self.is_lost, self.common, self.starts, self.far = False, None, [], []
        self.bands, self.made = Bands(self.horizon, settings.levels), []
        self.said, self.issued_log = [], {}
        self.corrections = [PlainCorrection() for _ in range(self.horizon)]
        self.volatility = [PlainVolatility() for _ in range(self.horizon)]
        self.experts = PlainExperts(3 + len(settings.periods), self.horizon, settings.day)
        self.pattern = PlainPattern(settings.periods, settings.day, self.horizon)
        self.said_by_all, self.heard = None, []
        self.ahead = self.said_of_pattern = self.said_of_bursts = None
        self.burst_sums = np.zeros(3)
        self.low = self.high = np.nan
        self.usual_run, self.judged = 1, []
        self.learner, self.next_try, self.happened = None, 0, Counter()

    @property
    def tuning(self):
        return self

    @property
    def counts(self):
        counts = {**self.happened, "gradients": self.learner.moves if self.learner else 0}
        return {name: count for name, count in counts.items() if count}

    @property
    def hyperparameters(self):
        space = self.settings.model.space
        return space.named(self.learner.lam if self.learner else space.values)

    @property
    def least(self):
        latest = self.past.latest
        smallest = self.resolution if self.resolution < np.inf else unit(latest)
        return max(smallest / 2, 1e-9 * abs(latest))

    def naive_values(self, step):
        """Return the values seasons ago, the longest first, and the last reading."""
        seasons = range(len(self.settings.periods), 0, -1)
        last = self.past.newest - self.silent
        return [
            *(self.past.seasonal_value(step, count) for count in seasons),
            self.past.value_at(last),
        ]

    def best(self):
        """Return which naive forecast was the best of late; the last reading, if it is recent."""
        means = [lately(sizes) for sizes in self.naive_sizes]
        if self.silent >= 8 and len(means) > 1:
            means.pop()
        return means.index(min(means))

    def stand_in(self):
        """Return what the best naive forecast says of the next steps."""
        best = self.best()
        ahead = range(self.past.newest + 1, self.past.newest + 1 + self.horizon)
        is_last = best == len(self.settings.periods) > 0
        values = np.array([self.naive_values(step)[best] for step in ahead])
        return values, "last" if is_last else "seasonal"

    def naive_reach(self, level, values):
        """Return how far the bands of the best naive forecast reach below and above."""
        best = self.best()
        size = lately(self.naive_sizes[best])
        size = size if size < np.inf else np.abs(values).max()
        sizes = []
        for h in range(self.horizon):
            seen = self.seen_errors(best, h)
            known = np.quantile(seen, 0.9 * 29 / 28) if len(seen) >= 28 else None
            multiple = self.naive.reach(0.9)[0].mean()
            sizes.append(max(size if known is None else known / multiple, self.least))
        below, above = np.transpose(self.naive.reach(level)) * np.array(sizes)
        return -below, above

    def seen_errors(self, best, h):
        """Return what the naive forecast of that age missed at about this time, in four weeks."""
        periods, past = self.settings.periods, self.past
        if not periods:
            return []
        step = past.newest + 1 + h
        age = h + 1 + self.silent
        if best < len(periods):
            season = periods[::-1][best]
            age = round(season * np.ceil(age / season))
        wide = int(periods[0] // 48) + 1
        ends = [
            step - round(periods[0] * day) + beside
            for day in range(1, 29)
            for beside in range(-wide, wide + 1)
        ]
        ends = [end for end in ends if past.is_trusted(end) and past.is_trusted(end - age)]
        return [abs(past.value_at(end) - past.value_at(end - age)) for end in ends]

    def is_possible(self, value):
        """Return whether a reading lies within the known bounds."""
        lower, upper = self.settings.bounds or (None, None)
        return (lower is None or value >= lower) and (upper is None or value <= upper)

    def bounded(self, values):
        """Return values within known bounds; with a guard also near those of late, from zero on."""
        guarded, latest = self.settings.guard, self.past.latest
        floor = 0.0 if guarded and min(self.low, latest) >= 0 else -np.inf
        if guarded and self.high > self.low:
            low, high = min(self.low, latest), max(self.high, latest)
            values = np.clip(values, max(low - (high - low), floor), high + (high - low))
        lower, upper = self.settings.bounds or (None, None)
        values = np.maximum(np.maximum(values, floor), -np.inf if lower is None else lower)
        return np.minimum(values, np.inf if upper is None else upper)

    @property
    def mean_errors(self):
        """Return the means of the last errors by half-life."""
        return {each: mean_of(self.said, each) for each in PlainCorrection.half_lives}

    def corrected(self, raw, means):
        """Return forecasts with what the last errors add to them."""
        if not self.settings.preset.corrects:
            return raw
        return raw + [offset for _, offset in self.added(means)]

    def added(self, means):
        """Return, for each horizon, the share of each mean that is added, and what is in all."""
        pulls = [correction.pulls() for correction in self.corrections]
        return [(each, sum(each[life] * means[life] for life in each)) for each in pulls]

    def look_ahead(self):
        """Return what is said of the next steps, which is the same until a reading comes."""
        if self.ahead is None:
            self.said_by_all = self.said_of_pattern = self.said_of_bursts = None
            self.ahead = self.made_ahead()
        return self.ahead

    def made_ahead(self):
        """Return values, what a model made, and which of the two kinds the values are."""
        if self.learner is None or self.silent > self.patience:
            values, source = self.stand_in()
            return values, None, source
        step = self.past.newest + 1
        x, _ = self.past.row(step, self.learner.rates(self.learner.lam))
        raw, spreads = self.learner.predict(step, x)
        sizes = self.smoothed(np.maximum(spreads, self.least))
        raw, spreads = self.bounded(raw), self.widened(sizes.copy())
        factors = np.array([volatility.factor() for volatility in self.volatility])
        means = self.mean_errors
        values = self.bounded(self.corrected(raw, means))
        made = (step, raw, values, spreads * factors, factors, means, sizes)
        if not (self.settings.guard and self.settings.learn):
            return values, made, "model"
        return self.mixed(made, self.learner.baseline(step, x))

    def mixed(self, made, small):
        """Return what all experts make of the next steps together."""
        step, raw, values, *rest = made
        small = self.bounded(small)
        corrected = self.bounded(small + (values - raw))
        ahead = range(step, step + self.horizon)
        naive = np.transpose([self.naive_values(each) for each in ahead])
        lower, upper = self.settings.bounds or (None, None)
        naive = np.clip(naive, lower, upper) if lower is not None or upper is not None else naive
        if self.silent >= 8 and self.settings.periods:
            naive[-1] = np.nan
        opinions = np.vstack([values, corrected, naive])
        mixture, spoken = self.experts.mix(opinions)
        if lower is not None or upper is not None:
            mixture = np.clip(mixture, lower, upper)
        self.said_by_all = (step, (raw, small), opinions, spoken, mixture)
        issued, source = self.issued(mixture, naive[-1], rest)
        source = source or self.source(opinions[:, 0])
        issued = self.of_days(step, issued)
        if self.pattern.works:
            moved, self.said_of_pattern = self.pattern.corrected(self.past, step, issued)
            issued = np.where(moved == issued, issued, self.bounded(moved))
        return issued, (step, raw, issued, *rest), source

    def of_days(self, step, values):
        """Return the first value moved to the mean of four weeks of days, if most are equal."""
        back = [round(day * k) for day in self.settings.periods[:1] for k in range(1, 29)]
        known = [self.past.value_at(step - k) for k in back if self.past.is_trusted(step - k)]
        if self.common is None or len(known) < 3:
            return values
        squares, products, deviations = self.burst_sums
        best = products - np.sqrt(deviations) / 2
        share = np.clip(best / squares, 0, 1) if squares > 0 else 0.0
        change = np.mean(known) - values[0]
        self.said_of_bursts = values[0], change, share
        moved = self.bounded(values[:1] + share * change) if share * change else values[:1]
        return np.concatenate((moved, values[1:]))

    def issued(self, mixture, last, rest):
        """Return the mixture, or what lies towards the last reading while its errors are large."""
        spreads, factors = rest[:2]
        large = 3 * max(self.bands.reach(0.9)[0]) * spreads[0] / factors[0]
        fast, slow, beyond, suspected = self.latest_squares
        of_mixture, of_last = fast if fast[0] > large**2 else slow
        shares = []
        if fast[0] > large**2 or slow[0] > 2 * slow[1]:
            shares.append(1 / (1 + (of_last / of_mixture) ** 2))
        if beyond[0] > (0.2 * large) ** 2 and beyond[0] > 8 * beyond[1]:
            shares.append(beyond[0] / (beyond[0] + 8 * beyond[1]))
        self.is_lost = bool(shares)
        if not shares or np.isnan(last[0]) or suspected[1] > suspected[0]:
            return mixture, None
        share = max(shares)
        return (1 - share) * mixture + share * last, "last" if share >= 0.5 else None

    def source(self, opinions):
        """Return what the next forecast is mostly: of a model, or else of which naive forecast."""
        weights = self.experts.weights(opinions)
        if sum(weights[2:]) <= 0.5:
            return "model"
        return "last" if weights[-1] == max(weights[2:]) else "seasonal"

    def smoothed(self, spreads):
        """Return the sizes of error to expect: smooth in time, hardly shrinking with the steps."""
        sizes = spreads if self.last_sizes is None else np.sqrt(self.last_sizes) * np.sqrt(spreads)
        for h in range(1, self.horizon):
            sizes[h] = max(sizes[h], sizes[h - 1] * np.exp(-0.1))
        return sizes

    def widened(self, spreads):
        """Return the sizes of error to expect after silence, up to those around a season's mean."""
        if not self.silent:
            return spreads
        reach = self.bands.reach(0.9)
        below, above = self.naive_reach(0.9, spreads)
        for h in range(self.horizon):
            most = (above[h] - below[h]) / (sum(reach[h]) * spreads[h]) / np.sqrt(2)
            wider = min(np.sqrt((self.silent + h + 1) / (h + 1)), most)
            spreads[h] *= max(wider, 1.0)
        return spreads

    def reach(self, values, made, source, level):
        """Return how far the bands of the next forecast reach below and above."""
        if made is None:
            return self.naive_reach(level, values)
        reach, spreads = self.bands.reach(level), made[3]
        return -reach[:, 0] * spreads, reach[:, 1] * spreads

    def predict(self, levels=None):
        values, made, source = self.look_ahead()
        lower, upper = [], []
        for level in levels or self.settings.levels:
            below, above = self.reach(values, made, source, level)
            lower.append(np.minimum(self.bounded(values + below), values))
            upper.append(np.maximum(self.bounded(values + above), values))
        ends = (each[0] if len(each) == 1 else np.column_stack(each) for each in (lower, upper))
        return Expected(values, *ends, source)

    def observe(self, step, value):
        self.happened["readings"] += value is not None
        possible = value is None or self.is_possible(value)
        if self.past is not None and step <= self.past.newest:
            self.look_back(step, value)
            return
        if self.past is not None:
            self.fill(step - self.past.newest - 1)
        self.happened["implausible"] += not possible
        self.happened["missing"] -= not possible and self.past is not None
        if self.past is not None:
            self.advance(value if possible else None)
        elif value is not None and possible:
            self.past = self.begun(step, value)

    def begun(self, step, value):
        """Return the past with a first reading."""
        day = timedelta(days=1) // self.settings.step
        reach = self.features.reach + day + 1
        past = PlainPast(self.features, self.settings.periods, self.horizon, step, reach)
        past.mark_holidays(self.settings.holidays or (), day)
        past.push(value, read=True, trusted=True)
        return past

    def fill(self, count):
        """Take left-out steps: a season and one of them each on its own, then the best season."""
        alone = max(self.patience, 8) + 1
        for _ in range(min(count, alone)):
            self.advance(None)
        oldest, leapt = self.past.oldest, count - alone
        season = round([*self.settings.periods[::-1], 1][self.best()])
        for _ in range(leapt):
            season_ago = max(self.past.newest + 1 - season, oldest)
            self.past.push(self.past.ever(season_ago), read=False, trusted=False)
            self.silent += 1
            self.happened["missing"] += 1
        if leapt > 0:
            self.said += leapt * [0.0]
            self.pass_over(leapt)

    def advance(self, value):
        values, made, source = self.look_ahead()
        self.ahead = None
        below, above = self.reach(values, made, source, 0.9)
        volatility = 1.0 if made is None else made[4][0]
        if value is None:
            self.happened["missing"] += 1
            self.said.append(0.0)
            never = self.silent <= self.patience and self.is_never_read()
            fill = self.naive_values(self.past.newest + 1)[-1] if never else values[0]
            self.past.push(fill, read=False, trusted=False)
            self.silent += 1
            self.pass_over()
        else:
            self.take(value, values[0], max(above[0], -below[0]) / volatility, made)

    def is_never_read(self):
        """Return whether the next step was in a gap of nine or more steps in three seasons."""
        past = self.past
        for period in self.settings.periods:
            at = [past.newest + 1 - round(period * k) for k in (1, 2, 3)]
            if at[-1] - 8 < past.oldest or at[0] + 8 > past.newest:
                continue
            gaps, half = [], round(period) // 2
            around = [range(each - half, each - half + round(period)) for each in at]
            if not all(any(map(past.is_trusted, each)) for each in around):
                continue
            for each in at:
                before = next((k for k in range(9) if past.is_trusted(each - k)), 9)
                after = next((k for k in range(9) if past.is_trusted(each + k)), 9)
                gaps.append(before + after - 1)
            if min(gaps) >= 9:
                return True
        return False

    def take(self, value, forecast, band, made):
        step = self.past.newest + 1
        doubting = self.settings.guard and self.learner is not None
        verdict = self.judge(value, value - forecast, band) if doubting else "good"
        self.learn_of_the_sensor(value, plausible=verdict != "implausible")
        kept = forecast if verdict == "implausible" else value
        self.past.push(kept, read=True, trusted=verdict == "good")
        self.silent = 0
        self.calibrate(step, value, made, verdict)
        self.weigh(step, value, verdict)
        self.pattern.learn(step, value, verdict, self.said_of_pattern)
        if self.said_of_bursts is not None and verdict == "good":
            said, change, share = self.said_of_bursts
            left = value - said - share * change
            new = np.array([change**2, change * (value - said), (change * left) ** 2])
            self.burst_sums = (1 - 1 / (28 * self.settings.day)) * self.burst_sums + new
        if self.learner is None:
            self.first_fit()
        elif verdict != "good":
            self.happened[verdict] += 1
            self.pass_over()
        else:
            events = self.learner.observe(step)
            self.happened.update(events)
            if events:
                self.renew_range()
                first = step - self.horizon
                self.issued_log = {at: each for at, each in self.issued_log.items() if at > first}

    def pass_over(self, steps=1):
        """Tell a model of steps that there was nothing to learn from."""
        if self.learner is not None:
            self.learner.newest = self.past.newest
            self.learner.steps += steps if self.learner.steps else 0

    def learn_of_the_sensor(self, value, *, plausible):
        """Keep how finely it reads, and how wrong a season ago would have been."""
        change = abs(value - self.past.latest)
        if change > 0:
            self.resolution = min(self.resolution, change)
        if not plausible:  # a glitch would swamp the errors of late
            return
        errors = [value - each for each in self.naive_values(self.past.newest + 1)]
        size = lately(self.naive_sizes[self.best()])
        if size < np.inf:
            self.naive.learn(0, errors[self.best()], max(size, self.least))
        sizes = [abs(error) for error in errors]
        latest = [self.past.newest - h for h in range(1, self.horizon)]
        earlier = [self.past.value_at(max(step, self.past.start)) for step in latest]
        sizes[-1] = np.mean([sizes[-1], *(abs(value - each) for each in earlier)])
        for every, each in zip(self.naive_sizes, sizes, strict=True):
            every += [] if every else [expected(self.past.latest)]
            every.append(each)

    def is_implausible(self, value):
        reach = 3 * (self.high - self.low)
        return reach > 0 and not self.low - reach <= value <= self.high + reach

    def judge(self, value, error, band):
        """Return what to make of a reading, and keep that."""
        is_strange = self.is_strange(value, error, band)
        if is_strange and not (self.judged and self.judged[-1][1]):
            self.starts.append(self.past.newest + 1)
            if self.is_implausible(value):
                self.far.append((self.past.newest + 1, value))
        verdict = self.verdict(value, error, band)
        self.judged.append((value, is_strange and verdict != "stuck"))
        if verdict == "good" and not self.is_burst(value):
            self.low, self.high = np.fmin(self.low, value), np.fmax(self.high, value)
        return verdict

    def is_near(self, value):
        """Return whether a value is outside the range by its width at most."""
        low, high = self.low, self.high
        return not low < high or 2 * low - high <= value <= 2 * high - low

    def is_burst(self, value):
        """Return whether a value of a stream of equal readings is a burst of a usual size."""
        return (
            self.common is not None
            and self.low < self.high
            and self.low <= value <= (2 * self.high - self.low)
        )

    def is_strange(self, value, error, band):
        """Return whether a value is far or badly forecast; bursts of a usual size are not."""
        return self.is_implausible(value) or (abs(error) > 5 * band and not self.is_burst(value))

    def verdict(self, value, error, band):
        latest = [is_strange for _, is_strange in self.judged[-8:]]
        convinced = len(latest) == 8 and all(latest)
        equal = 1
        while equal <= len(self.judged) and self.judged[-equal][0] == value:
            equal += 1
        is_stuck = max(8, self.usual_run) < equal <= max(self.patience, 24)
        is_stuck = is_stuck and value != self.common
        is_far, within = self.is_implausible(value), 1000 if self.common is None else 2000
        is_usual = self.is_near(value) and recurring(self.starts, within)
        is_strange = self.is_strange(value, error, band)
        if is_far and recurring([start for start, _ in self.far], within):
            values = sorted(each for _, each in self.far[-20:])[1:-1]
            low, high = min(self.low, *values), max(self.high, *values)
            is_far, is_usual = not 4 * low - 3 * high <= value <= 4 * high - 3 * low, True
        if is_far and (is_stuck or not (convinced or self.confirms(value))):
            return "implausible"
        if is_stuck:
            return "stuck"
        return "outlier" if is_strange and not (convinced or is_usual) else "good"

    def confirms(self, value):
        """Return whether a value is near the last one, which was implausible, and not equal."""
        last = self.judged[-1][0] if self.judged else np.nan
        return self.is_implausible(last) and 0 < abs(value - last) <= self.high - self.low

    def renew_range(self):
        """Take the range of the trusted readings, and the third longest run of all, for usual."""
        past, steps = self.past, self.past.readings()
        values = [past.value_at(step) for step in steps]
        trusted = [past.value_at(step) for step in steps if past.is_trusted(step)]
        if trusted:
            self.low, self.high = min(trusted), max(trusted)
            runs = sorted(len(list(run)) for _, run in groupby(values))
            self.usual_run = runs[-min(3, len(runs))]
            common = [each for each in values if 2 * values.count(each) > len(values)]
            self.common = common[0] if common else None

    def calibrate(self, step, value, made, verdict):
        """Let the forecasts of this step, made in time, teach the bands and the correction."""
        self.made += [] if made is None else [made]
        added = self.added(self.mean_errors)
        self.last_sizes = self.last_sizes if made is None else made[-1]
        for first, raw, values, spreads, factors, means, _ in self.made[-self.horizon :]:
            h = step - first
            if h < self.horizon:
                self.bands.learn(h, value - values[h], spreads[h])
                if verdict != "implausible":
                    self.volatility[h].learn(abs(value - values[h]) / (spreads[h] / factors[h]))
                if verdict == "good":
                    self.corrections[h].learn(value - raw[h], means)
        says = made is not None and verdict == "good"
        if says and self.settings.preset.corrects:
            self.issued_log[step] = added
        self.said.append(value - made[1][0] if says else 0.0)

    def weigh(self, step, value, verdict):
        """Let all that was said of this step, in time, teach the experts and the small fit."""
        told = self.said_by_all
        self.heard += [] if told is None else [told]
        for first, raw, opinions, spoken, mixture in self.heard[-self.horizon :]:
            h = step - first
            if h >= self.horizon:
                continue
            if verdict != "implausible":
                self.experts.learn(h, opinions[:, h], spoken[h], mixture[h], value)
            if verdict == "good":
                self.learner.duel.append(value - np.array(raw)[:, h])
        if told and verdict != "implausible" and not np.isnan(told[2][-1, 0]):
            errors = value - np.array([told[4][0], told[2][-1, 0]])
            fast, slow, beyond, suspected = self.latest_squares
            excess = errors**2 - min(errors**2)  # of the worse of both
            if self.is_lost:
                suspected = 0.99 * suspected + 0.01 * errors**2
            self.latest_squares = [
                (fast + errors**2) / 2,
                0.9 * slow + 0.1 * errors**2,
                0.75 * beyond + 0.25 * excess,
                suspected,
            ]

    def look_back(self, step, value):
        self.ahead = None
        if value is None:
            return
        arrival = self.arrival(step, value)
        self.happened[arrival] += 1
        if arrival == "late":
            self.past.correct(step, value)
            self.silent = min(self.silent, self.past.newest - step)
            if self.learner is None:
                self.first_fit()

    def arrival(self, step, value):
        if step < self.past.oldest:
            return "too_late"
        if step in self.past.readings():
            return "duplicates" if self.past.value_at(step) == value else "conflicts"
        if not self.is_possible(value) or (self.settings.guard and self.is_implausible(value)):
            return "implausible"
        return "late"

    def first_fit(self):
        self.keep_enough()
        count = len(self.past)
        if count < max(self.settings.warmup, self.next_try):
            return
        self.next_try = count + self.settings.update_every // 8 + 1
        if self.settings.guard:
            self.doubt_history()
        rates = [each.forgetting for each in self.features.seasons if each.forgetting > 0]
        if len(self.past.known_rows(rates)) >= max(12, self.horizon):
            self.learner = PlainLearner(self.settings, self.past, lambda: self.issued_log)
            self.happened["fits"] += 1
            self.renew_range()

    def keep_enough(self):
        """Forget, now and then, what a first fit does not need."""
        count = max(self.settings.train_size, self.settings.warmup)
        oldest = self.past.newest - count - self.horizon - self.past.reach
        if self.past.oldest + count < oldest:
            self.past.forget_before(oldest)

    def doubt_history(self):
        """Distrust what lies three times the bulk's range beyond the bulk of the readings."""
        steps = self.past.readings()
        low, high = np.quantile([self.past.value_at(step) for step in steps], [0.05, 0.95])
        reach = 3 * (high - low)
        far = [
            reach > 0 and not low - reach <= self.past.value_at(step) <= high + reach
            for step in steps
        ]
        strange = {step for step, is_far in zip(steps, far, strict=True) if is_far}
        starts = [step for step in sorted(strange) if step - 1 not in strange]
        values = [self.past.value_at(step) for step in steps]
        within = 2000 if any(2 * values.count(each) > len(values) for each in values) else 1000
        for step, is_far in zip(steps, far, strict=True):
            if is_far and not recurring(starts, within):
                self.past.distrust(step)

    def set(self, **values):
        self.ahead = None
        self.learner.assign(values)
        self.learner.duel = []
        self.learner.trust()
        self.learner.remember()
        self.happened["fits"] += 1

    def freeze(self, name):
        self.learner.frozen.add(name)

    def unfreeze(self, name):
        self.learner.frozen.discard(name)
