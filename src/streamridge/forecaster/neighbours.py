r"""Corrections of forecasts by what neighbouring sensors have just shown.

The surprise of a sensor is the error of its own forecast one step ahead, in units of its expected
size. A surprise often reaches other sensors some steps later: a queue grows, a platoon moves on.
So the errors of a sensor are regressed on the latest surprises of a few neighbours and on its own.
With these columns $z$, and the error $e_h$ of the forecast $h$ steps ahead in units of its expected
size, the weights of a lead are

$$w_h = (G + \rho I)^{-1} c_h, \qquad G = \sum z z^\top, \quad c_h = \sum z\, e_h.$$

The sums are discounted. A share $s_h$ between zero and one tells how much of $z^\top w_h$ to trust.
It is the least-squares estimate over past corrections in the units of the readings, less half its
standard error, and starts at zero. So neighbours count only where they have helped, and the
forecaster of the sensor itself does not change.

A missing reading is no surprise. A neighbour that is replaced leaves zeros in the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_shape
from streamridge.errors import StateError
from streamridge.files.checkpoint import UNREADABLE, decoded, encoded
from streamridge.forecaster.forecast import gaussian_quantile
from streamridge.forecaster.settings import MOST_NEAR, Settings

# The most neighbours of a sensor, and the number of latest surprises of each that count.
MOST, LAGS = 5, 3
# The memory of the sums, and of the surprises that neighbours are chosen by, in days.
MEMORY, SEARCHED = 14, 14
# The memory of the errors that narrow intervals, and the days that equal errors count for at first.
WIDTH_MEMORY, FIRST_WIDTH_DAYS = 4, 0.25
# The penalty of the weights, as a share of the rows of the memory, and the days of corrections
# that a share of zero counts for.
RIDGE, FIRST_DAYS = 0.03, 1.0
# A share is its estimate less this number of standard errors.
DOUBT = 0.5
# Neighbours are first chosen after this number of days, and then again after as many more, at most.
FIRST_CHOICE, MOST_DAYS = 2, 7
# A neighbour must correlate by this number of standard errors to be chosen, and by half to stay.
SIGNIFICANT = 3.0
# Larger surprises count as this one. The narrowest interval, as a share of the sensor's own.
LARGEST, NARROWEST = 6.0, 0.2
# Weights are solved for at every this many steps.
SOLVE_EVERY = 12

Places = NDArray[np.int64]
Cube = NDArray[np.float64]
# Values, and the lower and upper ends of intervals.
Intervals = tuple[Matrix, Cube, Cube]
# The parts of a forecast that are kept until its readings are known.
VALUE, SIZE = 0, 1
# The arrays that change, and the values of those of a new sensor that are not zero.
ARRAYS = (
    "surprises",
    "chosen",
    "next_choice",
    "gram",
    "products",
    "weights",
    "sums",
    "columns",
    "forecasts",
    "readings",
    "ranges",
)
BLANK = {"chosen": -1, "forecasts": np.nan, "readings": np.nan, "ranges": np.nan}
KIND = "neighbours"

Name = TypeVar("Name")


class Neighbours:
    """The neighbours and the regressions of n sensors, which take their steps together.

    Sensors are known by their places. Each step is one call of `observe` and `choose`; `corrected`
    then gives the next forecasts. A `Network` does this for its sensors.

    Parameters
    ----------
    horizon
        H, the number of leads that are corrected.
    day
        The steps of a day.
    level
        The level of the first interval of a forecast.
    """

    def __init__(self, horizon: int, day: int, level: float) -> None:
        self.horizon, self.day, self.level = horizon, day, level
        count = (MOST + 1) * LAGS  # of columns, p
        self._steps = 0  # steps so far
        self._surprises = np.zeros((SEARCHED * day, 0), dtype=np.float32)  # a ring of steps
        # The first axis of all others is the sensor.
        self._chosen: Places = np.full((0, MOST), -1, dtype=np.int64)
        self._next_choice: Places = np.zeros(0, dtype=np.int64)  # the number of steps it is due at
        self._gram: Cube = np.zeros((0, count, count))
        self._products: Cube = np.zeros((0, count, horizon))
        self._weights: Cube = np.zeros((0, count, horizon))
        # Discounted: the number of corrections; in the units of readings, their squares, their
        # products with errors, and squares of their products with what is left of these; in units
        # of expected sizes, the squared errors, and those that are left.
        self._sums = np.zeros((0, 6, horizon))
        # The last H forecasts, newest first: their columns, and VALUE, SIZE, PREDICTED and ISSUED.
        self._columns = np.zeros((0, horizon, count))
        self._forecasts = np.full((0, horizon, 4, horizon), np.nan)
        self._readings = np.full((0, horizon), np.nan)  # newest first
        # The lowest and the highest end of an interval so far.
        self._ranges = np.full((0, 2), np.nan)

    @classmethod
    def of(cls, settings: Settings) -> Neighbours:
        """Return neighbours for the near steps of forecasters with these settings."""
        return cls(min(settings.near, MOST_NEAR), settings.day, settings.levels[0])

    def __len__(self) -> int:
        return len(self._chosen)

    @property
    def chosen(self) -> Places:
        """Return the places of the neighbours of each sensor, (n, MOST); -1 for none."""
        return self._chosen

    @property
    def shares(self) -> Matrix:
        """Return how much of the regression is trusted, (n, H), between zero and one."""
        seen, squares, products, deviations = np.moveaxis(self._sums[:, :4], 1, 0)
        leads = np.arange(1, self.horizon + 1)  # errors of overlapping forecasts are alike
        least = products - DOUBT * np.sqrt(leads * deviations)
        best = np.clip(least / np.where(squares > 0, squares, 1.0), 0.0, 1.0)
        return best * seen / (seen + FIRST_DAYS * self.day)

    @property
    def strengths(self) -> Matrix:
        """Return how far each neighbour moves forecasts as a rule, (n, MOST).

        The unit is the expected size of an error. It is the largest one over the leads.
        """
        weights = self._weights[:, : MOST * LAGS].reshape(len(self), MOST, LAGS, self.horizon)
        sizes = np.sqrt(np.square(weights).sum(axis=2)) * self.shares[:, None]
        return sizes.max(axis=2, initial=0.0)

    def heard(self, names: Sequence[Name]) -> list[dict[Name, float]]:
        """Return the neighbours of each sensor with their strengths, the strongest first."""
        strengths, order = self.strengths, np.argsort(-self.strengths, axis=1, kind="stable")
        return [
            {names[chosen[slot]]: float(sizes[slot]) for slot in slots if chosen[slot] >= 0}
            for chosen, sizes, slots in zip(self._chosen, strengths, order, strict=True)
        ]

    @property
    def error_ratios(self) -> Matrix:
        """Return the errors of corrected forecasts over those of the sensors' own, (n, H).

        These are root mean squares of the last days, in units of the expected sizes.
        """
        first = FIRST_WIDTH_DAYS * self.day
        ratios: Matrix = np.sqrt((first + self._sums[:, 5]) / (first + self._sums[:, 4]))
        return ratios

    def resize(self, places: Sequence[int]) -> None:
        """Keep the sensors at these places, in this order; -1 is a new sensor."""
        old, new = np.array(places, dtype=np.int64), Neighbours(self.horizon, self.day, self.level)
        known = old >= 0
        for name, array in self._arrays().items():
            axis = 1 if name == "surprises" else 0
            blank = np.moveaxis(getattr(new, f"_{name}"), axis, 0)
            filled = np.full((len(old), *blank.shape[1:]), BLANK.get(name, 0), dtype=array.dtype)
            filled[known] = np.moveaxis(array, axis, 0)[old[known]]
            setattr(self, f"_{name}", np.ascontiguousarray(np.moveaxis(filled, 0, axis)))
        later = np.flatnonzero(~known) % self.day  # so that choices of many sensors spread
        self._next_choice[~known] = self._steps + FIRST_CHOICE * self.day + later
        self._rename(old)

    def _rename(self, old: Places) -> None:
        """Let choices follow their sensors to new places; forget sensors that are gone."""
        new_place = np.full(old.max(initial=-1) + 2, -1)
        new_place[old[old >= 0]] = np.flatnonzero(old >= 0)
        places = np.minimum(self._chosen, len(new_place) - 1)
        renamed = np.where(self._chosen >= 0, new_place[places], -1)
        for place, slot in np.argwhere((self._chosen >= 0) & (renamed < 0)).tolist():
            self._clear(place, slot)
        self._chosen = renamed

    def corrected(self, values: Matrix, lower: Cube, upper: Cube) -> Intervals:
        """Return the next forecasts after corrections, and the ends of their intervals.

        `values` are the sensors' own forecasts, (n, H); NaN for a sensor without one. The ends have
        the shape (n, H, L). Corrected forecasts stay in the range of the sensor's own intervals.
        """
        sizes = self._sizes(lower, upper)
        shifts = self.shares * _times(self._next_columns(), self._weights) * np.nan_to_num(sizes)
        factors = np.clip(self.error_ratios, NARROWEST, 1.0)
        factors = np.where(shifts == 0, 1.0, factors)[..., None]
        low, high = self._ranges_with(lower, upper).T[..., None]
        moved = np.where(shifts == 0, values, np.clip(values + shifts, low, high))
        own, centre, low, high = (
            values[..., None],
            moved[..., None],
            low[..., None],
            high[..., None],
        )
        below = np.clip(centre + factors * (lower - own), np.minimum(low, lower), centre)
        above = np.clip(centre + factors * (upper - own), centre, np.maximum(high, upper))
        same = (shifts == 0)[..., None]
        return moved, np.where(same, lower, below), np.where(same, upper, above)

    def observe(self, readings: Vector, values: Matrix, lower: Cube, upper: Cube) -> None:
        """Learn from the readings of the next step, (n,), NaN where there is none.

        The sensors' own forecasts are as for `corrected`.
        """
        sizes, columns = self._sizes(lower, upper), self._next_columns()
        predicted = _times(columns, self._weights)
        made = np.stack([values, sizes, predicted, self.shares * predicted], axis=1)
        self._learn()
        self._ranges = self._ranges_with(lower, upper)
        self._columns = _pushed(self._columns, columns)
        self._forecasts = _pushed(self._forecasts, made)
        self._readings = _pushed(self._readings, readings)
        at = self._steps % len(self._surprises)
        self._surprises[at] = _surprises(readings, values[:, 0], sizes[:, 0])
        self._steps += 1
        if self._steps % SOLVE_EVERY == 0:
            self._solve()

    def _solve(self) -> None:
        """Solve for the weights of all sensors."""
        penalty = RIDGE * MEMORY * self.day * np.eye(self._gram.shape[1])
        weights = np.linalg.solve(self._gram + penalty, self._products)
        self._weights = np.asarray(weights, dtype=np.float64)

    @property
    def _keeps(self) -> tuple[float, Matrix]:
        """Return what is left of old sums after a step: of products, and of `_sums`, (6, 1)."""
        days = np.array([[MEMORY]] * 4 + [[WIDTH_MEMORY]] * 2)
        return 1 - 1 / (MEMORY * self.day), 1 - 1 / (days * self.day)

    def skip(self, steps: int) -> None:
        """Take steps without forecasts and readings."""
        nothing = np.full((len(self), self.horizon, 1), np.nan)
        for _ in range(min(steps, self.horizon)):
            self.observe(nothing[:, 0, 0], nothing[..., 0], nothing, nothing)
        rest = steps - self.horizon
        if rest <= 0:
            return
        # Nothing is left to learn from: sums are discounted, and surprises are zero.
        keep, keeps = self._keeps
        self._gram, self._products = keep**rest * self._gram, keep**rest * self._products
        self._sums = keeps**rest * self._sums
        rows = self._steps + np.arange(min(rest, len(self._surprises)))
        self._surprises[rows % len(self._surprises)] = 0.0
        self._steps += rest
        self._solve()

    def _sizes(self, lower: Cube, upper: Cube) -> Matrix:
        """Return the expected sizes of errors, (n, H), NaN where there is no forecast."""
        sizes = (upper - lower)[..., 0] / (2 * gaussian_quantile(self.level))
        return np.where(sizes > 0, sizes, np.nan)

    def _ranges_with(self, lower: Cube, upper: Cube) -> Matrix:
        """Return the range of each sensor's intervals, with new ones, (n, 2)."""
        low = np.fmin(self._ranges[:, 0], lower[..., 0].min(axis=1))
        return np.column_stack([low, np.fmax(self._ranges[:, 1], upper[..., 0].max(axis=1))])

    def add_late(self, place: int, back: int, reading: float) -> None:
        """Add a reading of a sensor that was missing `back` steps before the newest step."""
        if back >= self.horizon or not np.isnan(self._readings[place, back]):
            return
        self._readings[place, back] = reading
        value, size = self._forecasts[place, back, (VALUE, SIZE), 0]
        at = (self._steps - 1 - back) % len(self._surprises)
        self._surprises[at, place] = _surprises(np.array(reading), value, size)

    def _next_columns(self) -> Matrix:
        """Return the columns of the next forecasts, (n, p): surprises of neighbours, and own."""
        rows = (self._steps - 1 - np.arange(LAGS)) % len(self._surprises)
        latest = self._surprises[rows].T.astype(np.float64)  # (n, LAGS)
        heard = latest[self._chosen] * (self._chosen >= 0)[..., None]
        return np.concatenate([heard, latest[:, None]], axis=1).reshape(len(self), -1)

    def _learn(self) -> None:
        """Learn from the oldest forecasts, whose readings were all due before the next step.

        Until then, readings of the newest step may come late.
        """
        values, sizes, predicted, issued = np.moveaxis(self._forecasts[:, -1], 1, 0)
        errors = (self._readings[:, ::-1] - values) / sizes
        known = ~np.isnan(errors).any(axis=1, keepdims=True)
        errors = np.clip(np.where(known, errors, 0.0), -LARGEST, LARGEST)
        columns, (keep, keeps) = self._columns[:, -1] * known, self._keeps
        self._gram = keep * self._gram + columns[:, :, None] * columns[:, None]
        self._products = keep * self._products + columns[:, :, None] * errors[:, None]
        left, weighted = errors - issued, np.square(sizes) * predicted
        new = [
            np.ones_like(errors),
            weighted * predicted,
            weighted * errors,
            np.square(weighted * left),
            np.square(errors),
            np.square(left),
        ]
        used = (known & (predicted != 0))[:, None]
        self._sums = keeps * self._sums + np.where(used, np.stack(new, axis=1), 0.0)

    def choose(self, allowed: Callable[[int], Mask] | None = None) -> None:
        """Choose the neighbours of the sensors that are due.

        `allowed` tells for the place of a sensor which sensors may be its neighbours, (n,).
        """
        due = np.flatnonzero(self._next_choice <= self._steps)
        if not len(due):
            return
        count = min(self._steps, len(self._surprises))
        order = (self._steps - count + np.arange(count)) % len(self._surprises)
        past = self._surprises[order]
        norms = np.sqrt(np.square(past).sum(axis=0))
        for place in due.tolist():
            scores = self._scores(past, norms, place)
            scores[place] = 0.0
            if allowed is not None:
                scores[~allowed(place)] = 0.0
            self._choose(place, scores * np.sqrt(count))
            days = min(MOST_DAYS, max(FIRST_CHOICE, self._steps // self.day))
            self._next_choice[place] = self._steps + days * self.day

    def _scores(self, past: NDArray[np.float32], norms: Vector, place: int) -> Vector:
        """Return the largest correlation of a sensor's surprises with earlier ones of others."""
        products = [
            np.abs(past[delay:, place] @ past[:-delay])
            for delay in range(1, min(self.horizon + LAGS, len(past)))
        ]
        sizes = norms * norms[place]
        return np.max(products, axis=0) / np.where(sizes > 0, sizes, np.inf)

    def _choose(self, place: int, scores: Vector) -> None:
        """Choose the neighbours of one sensor, given correlations in standard errors, (n,)."""
        order = np.argsort(-scores, kind="stable").tolist()
        stay = {each for each in order[: 2 * MOST] if scores[each] > SIGNIFICANT / 2}
        own = self._chosen[place].tolist()
        wanted = [each for each in order[:MOST] if scores[each] > SIGNIFICANT and each not in own]
        for slot, each in enumerate(own):
            if each in stay:
                continue
            if each >= 0 or wanted:
                self._clear(place, slot)
            self._chosen[place, slot] = wanted.pop(0) if wanted else -1

    def _clear(self, place: int, slot: int) -> None:
        """Forget the columns of one neighbour of a sensor."""
        columns = slice(slot * LAGS, (slot + 1) * LAGS)
        self._gram[place, columns] = 0.0
        self._gram[place, :, columns] = 0.0
        for array in (self._products, self._weights):
            array[place, columns] = 0.0
        self._columns[place, :, columns] = 0.0

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, f"_{name}") for name in ARRAYS}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        return {**self._arrays(), "steps": np.array(self._steps)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a saved state of the same horizon and day."""
        self._steps = require_count("steps", state["steps"], least=0)
        self.resize([-1] * len(state["chosen"]))
        for name, own in self._arrays().items():
            require_shape(name, state[name], own.shape)
            setattr(self, f"_{name}", state[name].astype(own.dtype))

    def to_bytes(self) -> bytes:
        """Return the whole state as bytes, for `from_bytes`."""
        header = {"kind": KIND, "horizon": self.horizon, "day": self.day, "level": self.level}
        return encoded(header, self.state())

    @classmethod
    def from_bytes(cls, content: bytes) -> Neighbours:
        """Return the neighbours that `to_bytes` was called on; they continue bit for bit."""
        header, arrays = decoded(content, "content")
        if header.get("kind") != KIND:
            raise StateError(f"content must hold neighbours, got a {header.get('kind')!r}.")
        try:
            neighbours = cls(header["horizon"], header["day"], header["level"])
            neighbours.restore(arrays)
        except UNREADABLE as error:
            raise StateError(f"content does not hold neighbours: {error}") from None
        return neighbours


def _times(columns: Matrix, weights: NDArray[np.float64]) -> Matrix:
    """Return the products of columns (n, p) with weights (n, p, H), shape (n, H)."""
    product: Matrix = np.matmul(columns[:, None], weights)[:, 0]
    return product


def _pushed(array: NDArray[np.float64], newest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the last entries of each sensor, newest first, after a new one."""
    return np.concatenate([newest[:, None], array[:, :-1]], axis=1)


def _surprises(readings: Vector, values: Vector, sizes: Vector) -> Vector:
    """Return errors in units of their expected size; zero where one is not known."""
    return np.clip(np.nan_to_num((readings - values) / sizes), -LARGEST, LARGEST)
