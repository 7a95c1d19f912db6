"""The step that readings have, where within a step they lie, and where their rate changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby, pairwise

import numpy as np

from streamridge.arrays import Mask, Vector
from streamridge.errors import InvalidInputError, option
from streamridge.series.lengths import DAY, UNITS, Length, amount, step_name
from streamridge.series.series import Readings
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import Steps, Times

# Usual steps of sensors, in seconds. A step that is found from readings is rounded to one of these.
USUAL = (1, 5, 10, 15, 20, 30, 60, 120, 180, 300, 360, 600, 720, 900, 1200, 1800)
MONTH = UNITS["mo"]
USUAL_STEPS = [
    *(timedelta(seconds=s) for s in (*USUAL, 3600, 7200, 10800, 14400, 21600, 43200, 86400)),
    *(7 * DAY, MONTH, 3 * MONTH, 12 * MONTH),
]
SECOND = 1_000_000  # microseconds
# Readings may be this share further apart than the requested step, since clocks of loggers drift.
DRIFT = 0.02
# If this share of the requested steps would be empty, the step of the readings is longer.
EMPTY = 0.9
# A distance may differ from a multiple of a usual step by this share of it, since stamps jitter.
JITTER = 0.1
# Readings have a step if this share of their distances are multiples of it, ...
REGULAR = 0.9
# ... and this share is no longer than it: else nothing says that they do not come more rarely.
LEAST_SHARE = 0.02
# How many of the most frequent distances may be the step.
FREQUENT = 5
# Distances that are looked at together, and how many such windows make a change of rate.
WINDOW, LEAST_WINDOWS = 24, 2
# The fewest equal distances in a row that make a change of rate, and how often missing readings may
# make as many by chance.
LEAST_RUN, CHANCE = 12, 1e-3


@dataclass(frozen=True)
class RateSegment:
    """A part of a sensor's readings that come at one rate."""

    start: int  # the first time
    end: int | None  # the time of the first reading after the segment; None at the end
    step: int | None  # the distance between readings; None if they have no common one


@dataclass(frozen=True)
class _Rate:
    """A step, and where in the distances its first and its last window begin."""

    step: int
    first: int
    last: int


@dataclass(frozen=True)
class StepDetector:
    """A search for the step of readings; all lengths are whole numbers of one unit."""

    usual: Sequence[int]  # usual steps, from which distances may differ a little
    least: int  # a unit that every step is a multiple of

    def step_of(self, apart: Steps) -> int | None:
        """Return the longest step that distances are multiples of; None if there is none.

        Readings may be missing: if a sensor loses four of five at random, distances are still
        multiples of its step, and some are equal to it.
        """
        lengths, counts = np.unique(apart, return_counts=True)
        frequent = lengths[np.argsort(-counts, kind="stable")[:FREQUENT]]
        for step in sorted(frequent[frequent % self.least == 0].tolist(), reverse=True):
            if _fits(apart, step, apart % step == 0):
                return int(step)
        for step in sorted(self.usual, reverse=True):
            if _fits(apart, step, near_multiples(apart, step)):
                return step
        return None

    def segments(self, times: Steps) -> list[RateSegment]:
        """Return the segments of one rate, at least one, of sorted distinct times."""
        apart = np.diff(times)
        starts, steps = [0], [self.step_of(apart) if apart.size else None]
        rates = self._rates(apart, steps[0])
        if len(rates) > 1:
            starts = [0, *(_border(apart, *pair) for pair in pairwise(rates))]
            steps = [rate.step for rate in rates]
        for run in self._short_runs(apart, starts, steps):
            starts, steps = _with_run(starts, steps, *run, size=len(apart))
        ends = [*times[starts[1:]].tolist(), None]
        return [
            RateSegment(int(times[at]), end, step)
            for at, end, step in zip(starts, ends, steps, strict=True)
        ]

    def _rates(self, apart: Steps, whole: int | None) -> list[_Rate]:
        """Return the rates that hold for some windows, in order; neighbours differ."""
        windows = [apart[at : at + WINDOW] for at in range(0, len(apart) - WINDOW + 1, WINDOW)]
        steps = [self._step_in(window, whole) for window in windows]
        seen = [(at, step) for at, step in enumerate(steps) if step is not None]
        runs = [list(run) for _, run in groupby(seen, key=lambda each: each[1])]
        rates: list[_Rate] = []
        for run in (run for run in runs if len(run) >= LEAST_WINDOWS):
            (first, step), last = run[0], run[-1][0]
            if rates and rates[-1].step == step:
                first = rates.pop().first // WINDOW
            rates.append(_Rate(step, first * WINDOW, last * WINDOW))
        return rates

    def _short_runs(
        self, apart: Steps, starts: Sequence[int], steps: Sequence[int | None]
    ) -> Iterator[tuple[int, int, int]]:
        """Yield runs of about equal distances with another step than their segment.

        A run is a change of rate if missing readings would hardly ever make one. Its start, its end
        and its step are given.
        """
        shorter = np.minimum(apart[1:], apart[:-1])
        breaks = 1 + np.flatnonzero(np.abs(np.diff(apart)) > JITTER * shorter)
        edges = np.concatenate([[0], breaks, [len(apart)]]).astype(np.int64)
        for at in np.flatnonzero(np.diff(edges) >= LEAST_RUN).tolist():
            first, end = int(edges[at]), int(edges[at + 1])
            step, usual = self.step_of(apart[first:end]), steps[bisect_right(starts, first) - 1]
            if step is None or usual is None or abs(step - usual) <= JITTER * usual:
                continue
            share = np.mean(np.abs(apart - step) <= JITTER * step)
            if len(apart) * share ** (end - first) < CHANCE:
                yield first, end, step

    def _step_in(self, window: Steps, whole: int | None) -> int | None:
        """Return the step of some distances: the step of all distances, if it fits."""
        if whole is not None and _fits(window, whole, near_multiples(window, whole)):
            return whole
        return self.step_of(window)


def _with_run(
    starts: list[int], steps: list[int | None], first: int, end: int, step: int, *, size: int
) -> tuple[list[int], list[int | None]]:
    """Return the starts and steps of segments with a run in place of the parts that it covers."""
    after = steps[bisect_right(starts, end) - 1]
    kept = [pair for pair in zip(starts, steps, strict=True) if not first <= pair[0] <= end]
    added = [(first, step), *([(end, after)] if end < size else [])]
    every = sorted([*kept, *added], key=lambda pair: pair[0])
    return [start for start, _ in every], [each for _, each in every]


def near_multiples(apart: Steps, step: int) -> Mask:
    """Return which distances are about a multiple of a step."""
    multiples = np.rint(apart / step)
    return (multiples >= 1) & (np.abs(apart - multiples * step) <= JITTER * step)


def _fits(apart: Steps, step: int, multiples: Mask) -> bool:
    single = multiples & (apart < 1.5 * step)
    return bool(multiples.mean() >= REGULAR and single.mean() >= LEAST_SHARE)


def _border(apart: Steps, before: _Rate, after: _Rate) -> int:
    """Return the first distance of a new rate; a reading belongs to the distance after it."""
    # Distances of the longer step are its multiples; most distances of the shorter step are not.
    longer = max(before.step, after.step)
    between = apart[before.last : after.first + WINDOW]
    odd = before.last + np.flatnonzero(~near_multiples(between, longer))
    if not odd.size:
        return after.first
    return int(odd[0]) if after.step < before.step else int(odd[-1]) + 1


TIME_STEPS = StepDetector([amount(step) * SECOND for step in USUAL_STEPS], SECOND)
INDEX_STEPS = StepDetector((), 1)


def distances(readings: Readings) -> Steps:
    """Return how far apart readings are in time, in microseconds or units of an index."""
    times = np.unique(readings.moments)
    return times[1:] - times[:-1]


def rates_of(readings: Readings, calendar: TimeFormat = NAIVE) -> list[RateSegment]:
    """Return the parts of a sensor's readings that come at different rates; at least one.

    `calendar` is the local time of the readings, whose months may be their step.
    """
    times = np.unique(readings.moments)
    months = 0 if readings.indexed else _months_apart(calendar.local(times.astype("M8[us]")))
    if months:
        return [RateSegment(int(times[0]), None, months * amount(MONTH) * SECOND)]
    detector = INDEX_STEPS if readings.indexed else TIME_STEPS
    return detector.segments(times)


def length_of(readings: Readings, units: int) -> Length:
    """Return a distance as a length of time, or as a number of units of an index."""
    return units if readings.indexed else timedelta(microseconds=units)


def own_step(readings: Readings, asked: Length | None, found: Length | None) -> Length | None:
    """Return the step of readings at one rate: the requested one, unless they are finer.

    `found` is the step that their distances are multiples of, if there is one. The result is None
    if readings have no step of their own.
    """
    apart = distances(readings)
    if not apart.size:
        if asked is None and not readings.indexed:
            raise InvalidInputError(
                f"{readings.sensor}: step must be given for a single reading, got none. "
                f"Pass it, such as {option('step', '15min')}."
            )
        return asked or 1
    if asked is not None:
        units = amount(asked) * (1 if readings.indexed else SECOND)
        if stands_for(found, asked):
            return asked if not (apart % units).any() else found
        _require_as_rare(readings, asked, found, apart)
        typical = found or length_of(readings, int(np.median(apart)))
        if amount(typical) >= (1 - JITTER) * amount(asked):
            return asked
    return found or _usual(readings, apart)


def stands_for(own: Length | None, asked: Length) -> bool:
    """Return whether readings have the requested step; 28 to 31 days also mean a month."""
    if own is None or isinstance(own, int) or isinstance(asked, int) or own % MONTH:
        return own == asked
    return own == asked or 28 <= asked / DAY / (own // MONTH) <= 31


def require_kind_of_step(readings: Readings, asked: Length) -> None:
    """Raise unless the step is a whole number where times are, and a time where they are not."""
    if isinstance(asked, int) != readings.indexed:
        kind = "a whole number" if readings.indexed else "a time such as 15min"
        raise InvalidInputError(
            f"{readings.sensor}: step must be {kind}, as its times are, got {step_name(asked)}."
        )


def rarer(readings: Readings) -> Length:
    """Return a usual step that is not shorter than most distances between readings."""
    median = int(np.median(distances(readings)))
    if readings.indexed:
        return median
    longer = [step for step in USUAL_STEPS if (1 + JITTER) * amount(step) * SECOND >= median]
    return min(longer, default=12 * MONTH)


def _require_as_rare(readings: Readings, asked: Length, found: Length | None, apart: Steps) -> None:
    """Raise if the requested step is shorter than the distance of most readings."""
    units = amount(asked) * (1 if readings.indexed else SECOND)
    if len(apart) < WINDOW or (found is not None and amount(found) <= (1 + DRIFT) * amount(asked)):
        return
    if found is None and np.mean(apart > 1.5 * units) < EMPTY:
        return
    own = found or rarer(readings)
    raise InvalidInputError(
        f"{readings.sensor}: step must not be shorter than the time between readings, "
        f"{step_name(own)}, got {step_name(asked)}. Pass {option('step', step_name(own))}."
    )


def _usual(readings: Readings, apart: Steps) -> Length | None:
    """Return the usual step that most distances are about; None if there is no such."""
    median = int(np.median(apart))
    if readings.indexed:
        return median
    nearest = min(TIME_STEPS.usual, key=lambda usual: abs(np.log(usual / median)))
    return length_of(readings, nearest) if abs(nearest / median - 1) <= JITTER else None


def _months_apart(local: Times) -> int:
    """Return how many calendar months stamps are apart, 0 if they are not.

    They share a day and a time, or are last days of months. Stamps that are mostly 28 to 31 days
    apart, and not always the same, are months as well.
    """
    if len(local) < 2 or np.median(np.diff(local)) < np.timedelta64(27, "D"):
        return 0
    month = local.astype("M8[M]")
    days = (local.astype("M8[D]") - month.astype("M8[D]")).astype(np.int64)
    last = local.astype("M8[D]") == (month + 1).astype("M8[D]") - 1
    clocks = local - local.astype("M8[D]")
    # The last days of short months stand for the days 29 to 31.
    same_day = (days == days.max()) | (last & (days >= 27))
    apart: Steps = np.diff(month.astype(np.int64)).astype(np.int64)
    if same_day.all() and (clocks == clocks[0]).all() and apart.min() > 0:
        return INDEX_STEPS.step_of(apart) or 0
    lengths: Vector = np.diff(local) / np.timedelta64(1, "D")
    of_a_month = (lengths >= 28) & (lengths <= 31)
    varied = len(set(lengths[of_a_month].tolist())) > 1
    return int(of_a_month.mean() > 0.5 and varied)
