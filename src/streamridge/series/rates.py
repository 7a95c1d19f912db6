"""How far apart the readings of a sensor come, and where that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from streamridge.arrays import Mask
from streamridge.series.clock import Steps

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


@dataclass(frozen=True)
class Stretch:
    """A part of a sensor's readings that come at one rate.

    Parameters
    ----------
    start, end
        The first time, and that of the first reading after it; None at the end.
    step
        The distance between readings, None if they have none in common.
    """

    start: int
    end: int | None
    step: int | None


@dataclass(frozen=True)
class _Rate:
    """A step, and where in the distances its first and its last window begin."""

    step: int
    first: int
    last: int


@dataclass(frozen=True)
class Ruler:
    """Steps to hold distances against; all lengths are whole numbers of one unit.

    Parameters
    ----------
    usual
        Usual steps, from which distances may differ a little.
    least
        What a step must be a multiple of.
    """

    usual: Sequence[int]
    least: int

    def step_of(self, apart: Steps) -> int | None:
        """Return the longest step that distances are multiples of; None if there is none.

        Readings may be lost: of a sensor that loses four of five at random, the distances still are
        multiples of its step, and some are that step.
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

    def stretches(self, times: Steps) -> list[Stretch]:
        """Return the parts of different rate, at least one, of sorted times without repetitions."""
        apart = np.diff(times)
        starts, steps = [0], [self.step_of(apart) if apart.size else None]
        rates = self._rates(apart, steps[0])
        if len(rates) > 1:
            starts = [0, *(_border(apart, *pair) for pair in pairwise(rates))]
            steps = [rate.step for rate in rates]
        ends = [*times[starts[1:]].tolist(), None]
        return [
            Stretch(int(times[at]), end, step)
            for at, end, step in zip(starts, ends, steps, strict=True)
        ]

    def _rates(self, apart: Steps, whole: int | None) -> list[_Rate]:
        """Return the rates that were surely seen, in order; no two in a row are the same."""
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

    def _step_in(self, window: Steps, whole: int | None) -> int | None:
        """Return the step of some distances: that of all of them, if it fits."""
        if whole is not None and _fits(window, whole, near_multiples(window, whole)):
            return whole
        return self.step_of(window)


def near_multiples(apart: Steps, step: int) -> Mask:
    """Return which distances are about a multiple of a step."""
    multiples = np.rint(apart / step)
    return (multiples >= 1) & (np.abs(apart - multiples * step) <= JITTER * step)


def _fits(apart: Steps, step: int, multiples: Mask) -> bool:
    single = multiples & (apart < 1.5 * step)
    return bool(multiples.mean() >= REGULAR and single.mean() >= LEAST_SHARE)


def _border(apart: Steps, before: _Rate, after: _Rate) -> int:
    """Return the first distance of a new rate.

    A reading belongs to the distance that follows it. Distances of the longer step are multiples of
    it, those of the shorter one mostly are not.
    """
    longer = max(before.step, after.step)
    between = apart[before.last : after.first + WINDOW]
    odd = before.last + np.flatnonzero(~near_multiples(between, longer))
    if not odd.size:
        return after.first
    return int(odd[0]) if after.step < before.step else int(odd[-1]) + 1
