"""How every sensor of a service is forecast, and what is declared of a single one."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Literal
from zlib import crc32

import msgspec

from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.settings import Settings
from streamridge.forecaster.sizes import SizeName

# One microsecond; all times of the service are whole numbers of it.
US = timedelta(microseconds=1)
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
# A stamp may lie this share of a step off the grid.
JITTER = 0.1

Rule = Literal["sum", "mean", "last"]


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is declared of a sensor; all of it may be left out.

    Parameters
    ----------
    label
        Its name for people.
    group
        What it belongs to, such as a road or a controller.
    position
        Latitude and longitude, in degrees.
    unit
        Unit of its values, such as "veh/15min".
    zone
        Time zone, such as "Europe/London": days and weeks follow its clock.
    bounds
        The least and the greatest value it can show.
    rule
        How readings within one step combine: "sum", "mean" or "last".
    holidays
        Dates that run like a Sunday, or the code of a country.
    """

    label: str | None = None
    group: str | None = None
    position: tuple[float, float] | None = None
    unit: str | None = None
    zone: str | None = None
    bounds: tuple[float | None, float | None] | None = None
    rule: Rule | None = None
    holidays: tuple[str, ...] | str | None = None

    @property
    def forecasting(self) -> tuple[object, ...]:
        """Return the part that forecasts depend on: a change of it begins a new forecaster."""
        return self.zone, self.bounds, self.rule, self.holidays


class Plan(msgspec.Struct, frozen=True):
    """How every sensor is forecast.

    Parameters
    ----------
    step
        Time between readings, in microseconds.
    horizon, level, train_size
        As for a `Forecaster`.
    grace
        For so long a step stays open, in microseconds: readings that come in another order
        within it give the same state.
    rule
        How readings within one step combine, where a sensor does not say; without one, readings
        between steps are refused.
    learn
        False keeps hyperparameters where they start.
    model
        The size of the model, as for a `Forecaster`.
    """

    step: int
    horizon: int = 1
    level: float = 0.9
    train_size: int = 2880
    grace: int = 10 * MINUTE
    rule: Rule | None = None
    learn: bool = True
    model: SizeName = "default"

    @property
    def open_for(self) -> int:
        """Return how much older than the newest a reading may be, and still be in time."""
        return self.step + self.grace

    def step_of(self, time: int, rule: Rule | None) -> int:
        """Return the time of the step that a reading belongs to.

        Examples
        --------
        >>> plan = Plan(step=15 * MINUTE)
        >>> plan.step_of(15 * MINUTE + 3 * SECOND, None) == plan.step_of(29 * MINUTE, "sum")
        True
        """
        if rule is None:
            return (time + self.step // 2) // self.step * self.step
        return time // self.step * self.step

    def is_on_grid(self, time: int) -> bool:
        """Return whether a time is that of a step, but for some jitter."""
        off = (time + self.step // 2) % self.step - self.step // 2
        return abs(off) <= JITTER * self.step

    def settings(self, declared: Declaration) -> Settings:
        """Return the settings of a sensor's forecaster."""
        return _settings(self, declared.zone, declared.bounds, declared.holidays)

    def stagger(self, name: str) -> int:
        """Return by how many steps the refits of a sensor are put off, so that few coincide."""
        every: int = self.settings(Declaration()).update_every
        return crc32(name.encode()) % every


class Plans(msgspec.Struct, frozen=True):
    """The plans that a service has followed: each from an arrival number on, the first from 0."""

    since: tuple[tuple[int, Plan], ...]

    def at(self, seq: int) -> Plan:
        """Return the plan that was followed at an arrival number."""
        return [plan for since, plan in self.since if since <= seq][-1]

    @property
    def latest(self) -> Plan:
        """Return the plan that is followed now."""
        return self.since[-1][1]


@lru_cache(maxsize=256)
def _settings(
    plan: Plan,
    zone: str | None,
    bounds: tuple[float | None, float | None] | None,
    holidays: tuple[str, ...] | str | None,
) -> Settings:
    return Forecaster(
        plan.step * US,
        horizon=plan.horizon,
        level=plan.level,
        model=plan.model,
        train_size=plan.train_size,
        learn=plan.learn,
        tz=zone,
        bounds=bounds,
        holidays=list(holidays) if isinstance(holidays, tuple) else holidays,
        defer_refits=True,
    ).settings
