"""The contract of features, the past that they see, and the samples that they compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector
from streamridge.features.timeline import Timeline
from streamridge.hyperparameters.space import Space
from streamridge.samples import Inputs, Layout, Samples
from streamridge.series.clock import AnyClock
from streamridge.series.times import Steps

# The share of its lags that must have been read, or are at times that never are. Forecasts may fill
# in the others.
LEAST_READ = 0.25
# The name of a column of a seasonal profile.
PROFILE = re.compile(r"(.+) profile \d+")


@dataclass(frozen=True)
class Past:
    """A timeline with the sensor's local time."""

    timeline: Timeline
    clock: AnyClock  # it knows the changes of local time, and the holidays
    upcoming: Matrix | None = None  # (A, E), the extra columns of the next A steps, if known

    def values(self, steps: Steps) -> Vector:
        """Return the values at some steps; the latest value replaces forgotten values."""
        values = self.timeline.values(steps)
        unknown = np.isnan(values)
        if unknown.any():
            values[unknown] = self.timeline.latest
        return values

    def ago(self, steps: Steps, season: int | Steps) -> Steps:
        """Return the steps at the same local time, one season earlier.

        On the day after clocks went forward, a day ago is 23 hours ago.
        """
        if self.clock.zone is None:
            return steps - season
        return steps - season + self.clock.shifts(steps) - self.clock.shifts(steps - season)

    def seasonal(self, step: int, periods: tuple[float, ...]) -> float:
        """Return the value one season ago, for the longest season that has been seen.

        Without any, it is the latest value. Periods are in steps, in ascending order; a fraction of
        a step is rounded. The weekly value of a holiday is the value of the last Sunday.
        """
        clock, timeline = self.clock, self.timeline
        for period in reversed(periods):
            ahead = max(1, ceil((step - timeline.newest) / period))
            season = round(period * ahead)
            if clock.holidays is not None and period == clock.week:
                season -= int(clock.before_sunday(np.array([step]))[0])
            at = step - season + clock.shift(step) - clock.shift(step - season)
            if timeline.start <= at <= timeline.newest:
                return timeline.value(at) if timeline.is_remembered(at) else timeline.latest
        return timeline.latest

    def season_before(self, first: int, count: int, period: float) -> Vector | None:
        """Return `seasonal` of the next `count` steps at once, from the step `first` on.

        It is None unless all values are stored, and local time has not changed since then.
        """
        clock, timeline, start = self.clock, self.timeline, first - round(period)
        if clock.holidays is not None or count > period:
            return None
        if not (timeline.holds(start, first) and clock.is_steady(start, first + count)):
            return None
        return timeline.values_between(start, start + count)

    def extras(self, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the extra columns, zero where unknown, and a mask of the steps that know all."""
        columns = self.timeline.extras(steps)
        if self.upcoming is not None:
            at = steps - self.timeline.newest - 1
            is_upcoming = (at >= 0) & (at < len(self.upcoming))
            columns[is_upcoming] = self.upcoming[at[is_upcoming]]
        unknown = np.isnan(columns)
        return np.where(unknown, 0.0, columns), np.array(~unknown.any(axis=1), dtype=bool)

    def extras_ahead(self, steps: Steps, ahead: int) -> tuple[Matrix, Mask]:
        """Return the extra columns of each step and of the steps after it, (n, ahead * E).

        The columns of one step stand together, the step itself first. The mask is as in `extras`.
        """
        if ahead == 1:
            return self.extras(steps)
        every, given = self.extras((steps[:, None] + np.arange(ahead)).ravel())
        complete = np.array(given.reshape(-1, ahead).all(axis=1), dtype=bool)
        return every.reshape(len(steps), -1), complete


class FeatureSet(Protocol):
    """A description of the columns of a row, which computes rows from the past.

    A feature set may also have a method `row(past, step)` that returns the row of one step, shape
    (p,), faster than `rows` and with the same bits. `extras_ahead` may be the number of steps ahead
    whose extra columns a row holds; without it, a row holds those of its own step.
    """

    @property
    def layout(self) -> Layout:
        """Return the names and widths of the blocks of a row."""

    @property
    def reach(self) -> int:
        """Return how many steps a row looks back."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Return the names of the columns by which rows are compared."""

    @property
    def extras(self) -> tuple[str, ...]:
        """Return the names of extra columns, which are known in advance."""

    def rows(self, past: Past, steps: Steps) -> tuple[Matrix, Mask]:
        """Return the rows at some steps, and a mask of the rows that can be learned from.

        A row is recomputed later, alone or with other rows, and must then have the same bits. It
        may depend on trusted readings and on forecasts that fill gaps, if they precede its step.
        It must not depend on distrusted readings, on later readings, or on the number of rows.
        """


class HasParameters(FeatureSet, Protocol):
    """A feature set with parameters that can be learned."""

    @property
    def space(self) -> Space:
        """Return the names, values and bounds of the parameters, and which are learned."""

    def at(self, lam: Vector) -> Self:
        """Return the features with the last q of lam as their parameters."""

    def tangents(self, past: Past, steps: Steps) -> NDArray[np.float64]:
        """Return the derivatives of the rows in each parameter, shape (q, n, p).

        The latest value and extra columns must not depend on the parameters: units follow from
        them.
        """


NO_PARAMETERS = Space(())


def steps_ahead(features: FeatureSet) -> int:
    """Return A, the number of steps ahead whose extra columns a row holds."""
    return getattr(features, "extras_ahead", 1)


def has_parameters(features: FeatureSet) -> TypeGuard[HasParameters]:
    """Return whether a feature set may have parameters."""
    return hasattr(features, "tangents")


def parameter_space(features: FeatureSet) -> Space:
    """Return the space of a feature set's parameters; it is empty if there are none."""
    return features.space if has_parameters(features) else NO_PARAMETERS


def with_parameters(features: FeatureSet, lam: Vector) -> FeatureSet:
    """Return the features with the last of lam as their parameters; unchanged without any."""
    return features.at(lam) if has_parameters(features) else features


def enough_read(trusted: Mask, sound: Mask) -> Mask:
    """Return a mask of the rows whose lags can be learned from: enough read, none distrusted.

    A lag is trusted if its reading can be learned from. It is sound if it is trusted, or has no
    reading and is filled by a forecast. Both masks are (n, p).
    """
    read: Vector = trusted.mean(axis=1)
    return np.array(sound.all(axis=1) & (read >= LEAST_READ), dtype=bool)


def input_at(features: FeatureSet, past: Past, step: int) -> Inputs:
    """Return the row at one step."""
    row = getattr(features, "row", None)
    x = features.rows(past, np.array([step]))[0] if row is None else row(past, step)[None, :]
    return Inputs(np.array([float(step)]), x, features.layout)


def samples_at(features: FeatureSet, past: Past, steps: Steps, horizon: int) -> Samples:
    """Return the samples at all of these steps that can be learned from."""
    x, complete = features.rows(past, steps)
    ahead = steps[:, None] + np.arange(horizon)
    usable = complete & past.timeline.trusted(ahead).all(axis=1)
    inputs = Inputs(steps[usable].astype(np.float64), x[usable], features.layout)
    return Samples(inputs, past.values(ahead[usable]))


def feature_words(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of a row in words.

    Examples
    --------
    >>> feature_words(["day lags 1", "day profile 1", "day profile 2", "calendar 1", "calendar 2"])
    ('day, 1 step ago', 'day, usual value', 'day, last change', 'time of day, sine', \
'time of day, cosine')
    """
    seasons = list(dict.fromkeys(found[1] for each in names if (found := PROFILE.match(each))))
    calendar = [f"time of {each}, {part}" for part in ("sine", "cosine") for each in seasons]
    words = {f"calendar {i}": text for i, text in enumerate(calendar, start=1)}
    return tuple(words.get(name) or _feature_words(name) for name in names)


def _feature_words(name: str) -> str:
    block, _, number = name.rpartition(" ")
    if not number.isdecimal():
        return name
    steps = "1 step" if number == "1" else f"{number} steps"
    if block in ("lags", "changes"):
        return f"{steps} ago" if block == "lags" else f"change {steps} ago"
    season, _, kind = block.rpartition(" ")
    if kind == "lags":
        return f"{season}, {steps} ago"
    if kind == "profile":
        parts = {"1": "usual value", "2": "last change", "3": "next change"}
        return f"{season}, {parts.get(number, f'change {int(number) - 2} later')}"
    return name
