r"""A linear regression on seasonal columns that forecasts any number of steps ahead.

The forecast of a step is its seasonal reference plus a weighted sum of columns: see
`streamridge.features.seasonal_columns`. One set of weights serves all leads. The weights solve a
ridge regression over past targets, whose sums are discounted, so that old days are forgotten:

$$w = \Big(\frac{S^{-1} X^\top D X S^{-1}}{n} + \rho I\Big)^{-1} \frac{S^{-1} X^\top D z}{n},$$

with the columns' root mean squares on the diagonal of $S$, and Huber's weights on the diagonal of
$D$. Each day adds its targets, with a few leads each, to the sums. So the cost of a day does not
depend on the length of the history, and a saved state has a few thousand numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector, joined, part, require_finite, require_shape
from streamridge.features.base import Past
from streamridge.features.seasonal_columns import (
    Deviations,
    SeasonalColumns,
    SeasonalRows,
)
from streamridge.features.special_days import SpecialDays
from streamridge.series.clock import Clock
from streamridge.series.times import Steps

# A step before all others.
LONG_AGO = -(2**60)
# Leads per target that the regression learns from.
LEADS = 4
# Sums remember about this number of days, or of seasons if there are no days.
MEMORY = 90
# The penalty on weights, for columns with a root mean square of one.
RIDGE = 5e-2
# Errors beyond this multiple of the usual error count less.
OUTLYING = 4.5
# The usual error is a mean over about this number of them.
ERROR_MEMORY = 20
# The smallest size of error, as a share of the largest value.
ROUNDING = 1e-9
# Leads of successive targets follow the golden ratio, which spreads them evenly.
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class SeasonalErrors:
    """Forecasts of the steps of a day at several leads, and the values that came."""

    members: Matrix  # (K, n), the forecasts of the regression and of the profiles
    spreads: Vector  # (n,), the expected sizes of error
    targets: Vector  # (n,), the values
    leads: NDArray[np.int64]  # (n,)


@dataclass(frozen=True)
class SeasonalRegression:
    """The regression of one sensor, with the sums that it has learned from."""

    columns: SeasonalColumns
    leads: tuple[int, int]  # the first and the last number of steps ahead
    deviations: Deviations
    special: SpecialDays = field(default_factory=SpecialDays)
    gram: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # (p, p)
    moments: Vector = field(default_factory=lambda: np.zeros(0))  # (p,)
    weight: float = 0.0  # discounted sum of the weights of targets
    error: float = 0.0  # the usual size of an error

    @classmethod
    def start(cls, columns: SeasonalColumns, leads: tuple[int, int]) -> SeasonalRegression:
        """Return the regression before the first step of a series."""
        empty = np.full(columns.remembered(leads[1]), np.nan)
        return cls(columns, leads, Deviations(LONG_AGO, empty))

    @property
    def newest(self) -> int:
        """Return the last step that the regression knows."""
        return self.deviations.newest

    def advanced(self, past: Past) -> tuple[SeasonalRegression, SeasonalErrors | None]:
        """Return the regression after the next steps of the timeline, up to the end of a day.

        If a day has ended, the second item has the errors of its forecasts.
        """
        regression, timeline = self, past.timeline
        skipped = timeline.after_holes - self.newest - 1
        if skipped > 0:  # the steps of a long gap are not stored
            regression = replace(self, deviations=self.deviations.after_gap(skipped))
        day, first = round(self.columns.unit), regression.newest + 1
        end = min(timeline.newest, first + day - 1 - first % day)
        regression = regression._extended(past, np.arange(first, end + 1))
        return regression._learned(past, end) if (end + 1) % day == 0 else (regression, None)

    def caught_up(self, past: Past) -> SeasonalRegression:
        """Return the regression after all steps of the timeline that are new to it."""
        regression = self
        while regression.newest < past.timeline.newest:
            regression, _ = regression.advanced(past)
        return regression

    @property
    def seasons_learned(self) -> float:
        """Return the number of seasons that have been learned from; old ones count less."""
        return self.weight / (LEADS * self.columns.season)

    @property
    def is_sure(self) -> bool:
        """Return whether most times of a season have been learned from, so that sizes are known."""
        return self.seasons_learned >= 0.5

    def next_rows(self, past: Past) -> SeasonalRows:
        """Return the rows of the next steps, from one step ahead to the last lead."""
        leads = np.arange(1, self.leads[1] + 1)
        return self._rows(past, np.full(len(leads), self.newest), leads)

    def forecast(self, ahead: SeasonalRows) -> tuple[Matrix, Vector]:
        """Return the forecasts of all leads, (K, F), and the sizes of error to expect, (F,).

        `ahead` are the rows of the next steps, which may reach farther. The first forecast is the
        regression's, the others are profiles: see `SeasonalRows`. Both are NaN where no reading is
        known.
        """
        first, last = self.leads
        return self._forecasts(ahead[first - 1 : last])

    def _forecasts(self, rows: SeasonalRows) -> tuple[Matrix, Vector]:
        """Return the forecasts of some rows, (K, n), and the sizes of error to expect, (n,)."""
        values = rows.reference
        if self.weight:
            values = values + rows.columns.dot(self.coefficients)
        return np.vstack([values, rows.profiles]), np.fmax(rows.sizes, self.error / 4)

    @cached_property
    def coefficients(self) -> Vector:
        """Return the weight of each column, shape (p,)."""
        gram, moments = self.gram / self.weight, self.moments / self.weight
        size = np.sqrt(np.diag(gram))
        scale = np.where(size > 0, 1 / np.where(size > 0, size, 1.0), 0.0)
        system = scale[:, None] * gram * scale + RIDGE * np.eye(len(scale))
        return scale * np.linalg.solve(system, scale * moments)

    def _rows(self, past: Past, origins: Steps, leads: Steps) -> SeasonalRows:
        return self.columns.rows(past, self.deviations, self.special, origins, leads)

    def _extended(self, past: Past, steps: Steps) -> SeasonalRegression:
        """Return the regression with the deviations of the next steps."""
        timeline = past.timeline
        reference, _ = self.columns.reference(past, steps - 1, np.ones_like(steps))
        new = np.where(timeline.trusted(steps), timeline.values(steps) - reference, np.nan)
        return replace(self, deviations=self.deviations.after(new))

    def _learned(self, past: Past, newest: int) -> tuple[SeasonalRegression, SeasonalErrors | None]:
        """Return the regression after the day that ends at `newest`, and the errors of the day."""
        day, timeline = np.arange(newest - round(self.columns.unit) + 1, newest + 1), past.timeline
        special = self._with_days(past, day)
        regression = replace(self, deviations=self._sized(), special=special)
        steps = np.repeat(day[timeline.trusted(day)], LEADS)
        leads = self._leads(steps)
        rows = regression._rows(past, steps - leads, leads)
        known = ~np.isnan(rows.reference)
        if not known.any():
            return regression, None
        members, spreads = regression._forecasts(rows)
        values = timeline.values(steps)
        least = ROUNDING * float(np.abs(values).max()) or 1.0
        errors = SeasonalErrors(
            np.where(np.isnan(members), members[0], members)[:, known],
            np.fmax(spreads[known], least),
            values[known],
            leads[known],
        )
        learned = regression._with(rows.columns[known], (values - rows.reference)[known])
        return learned, errors if self.is_sure else None  # before, errors had no expected size

    def _with(self, rows: Matrix, targets: Vector) -> SeasonalRegression:
        """Return the regression after some targets, relative to their references."""
        residuals = targets - rows.dot(self.coefficients) if self.weight else targets
        sizes = np.abs(residuals)
        new = float(np.median(sizes))
        error = self.error + (new - self.error) / ERROR_MEMORY if self.weight else new
        most = OUTLYING * error
        weights = np.where(sizes > most, most / np.where(sizes > most, sizes, 1.0), 1.0)
        weighted, keep = weights[:, None] * rows, 1 - 1 / MEMORY
        gram, moments = weighted.T.dot(rows), weighted.T.dot(targets)
        if self.weight:
            gram, moments = keep * self.gram + gram, keep * self.moments + moments
        weight = keep * self.weight + float(weights.sum())
        return replace(self, gram=gram, moments=moments, weight=weight, error=error)

    def _leads(self, steps: Steps) -> NDArray[np.int64]:
        """Return leads for some steps, which depend on the steps alone; most are short."""
        first, last = self.leads
        turns = (steps * LEADS + np.arange(len(steps)) % LEADS) * GOLDEN % 1.0
        leads = np.rint(first * np.exp(turns * log(last / first))).astype(np.int64)
        return np.clip(leads, first, last)

    def _sized(self) -> Deviations:
        """Return the deviations with their usual size over the last season."""
        before = self.deviations
        sizes = np.abs(before.values[-round(self.columns.season) :])
        sizes = sizes[~np.isnan(sizes)]
        if len(sizes) < round(self.columns.unit):
            return before
        size = 1.4826 * float(np.median(sizes))
        return Deviations(before.newest, before.values, size if size > 0 else np.inf)

    def _with_days(self, past: Past, block: Steps) -> SpecialDays:
        """Return the special days with the local days that ended within a block of steps."""
        special = self.special
        if not isinstance(past.clock, Clock) or self.columns.season != past.clock.week:
            return special
        days = past.clock.days(np.arange(block[0] - len(block), block[-1] + 2))
        steps, last = np.arange(block[0] - len(block), block[-1] + 1), int(days[-1])
        for day in range(int(past.clock.days(block[:1] - 1)[0]), last):
            if len(special.means) and day <= special.newest:
                continue
            inside = steps[days[:-1] == day]
            inside = inside[past.timeline.trusted(inside)]
            mean = float(past.timeline.values(inside).mean()) if len(inside) else np.nan
            special = special.after(day, mean)
        return special

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, for `restore`."""
        deviations = self.deviations
        own = {name: getattr(self, name) for name in ("gram", "moments", "weight", "error")}
        return joined(
            {
                "deviations": {
                    "newest": np.array(deviations.newest),
                    "values": deviations.values,
                    "size": np.array(deviations.size),
                },
                "special": self.special.state(),
                "sums": {name: np.array(value) for name, value in own.items()},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]]) -> SeasonalRegression:
        """Return the regression with a saved state of the same columns and leads."""
        sums = {name: require_finite(name, value) for name, value in part(state, "sums").items()}
        deviations = part(state, "deviations")
        values = np.asarray(deviations["values"], dtype=np.float64)
        require_shape("deviations", values, self.deviations.values.shape)
        return replace(
            self,
            deviations=Deviations(int(deviations["newest"]), values, float(deviations["size"])),
            special=self.special.restore(part(state, "special")),
            gram=sums["gram"],
            moments=sums["moments"],
            weight=float(sums["weight"]),
            error=float(sums["error"]),
        )
