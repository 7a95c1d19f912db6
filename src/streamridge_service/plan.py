"""The plan of a service, which applies to all sensors, and the declaration of one sensor."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Literal
from zlib import crc32

import msgspec
from msgspec import Meta

from streamridge import Forecaster, Settings, parse_length
from streamridge.errors import InvalidInputError

# All times of the service are whole microseconds.
US = timedelta(microseconds=1)
SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
# Earlier and later than any reading. Stored summaries hold the first.
NEVER, FOREVER = -(1 << 60), 1 << 60
# Times may deviate from the grid by this share of a step.
GRID_TOLERANCE = 0.1

Rule = Literal["sum", "mean", "last"]
ModelSize = Literal["default", "compact", "long"]


Label = Annotated[str, Meta(min_length=1, max_length=200, examples=["A2, kilometre 35.1"])]
GroupName = Annotated[str, Meta(min_length=1, max_length=200, examples=["A2"])]
Position = Annotated[
    tuple[Annotated[float, Meta(ge=-90, le=90)], Annotated[float, Meta(ge=-180, le=180)]],
    Meta(examples=[[52.09, 5.04]], description="Latitude and longitude, in degrees."),
]
Unit = Annotated[str, Meta(min_length=1, max_length=40, examples=["veh/15min"])]
Zone = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        examples=["Europe/Amsterdam"],
        description="Time zone: days and weeks follow its clock.",
    ),
]
Step = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=20,
        examples=["1min"],
        description="Time between readings; by default the step of the service.",
    ),
]
Bounds = Annotated[
    tuple[float | None, float | None],
    Meta(examples=[[0, 3000]], description="The smallest and the largest possible value."),
]
Holidays = (
    Annotated[
        tuple[Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")], ...],
        Meta(max_length=1000, description="Dates on which the sensor behaves as on a Sunday."),
    ]
    | Annotated[str, Meta(min_length=2, max_length=10, description="The code of a country.")]
)


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The declaration of a sensor; every field is optional."""

    label: Label | None = None
    group: GroupName | None = None
    position: Position | None = None
    unit: Unit | None = None
    zone: Zone | None = None
    bounds: Bounds | None = None
    rule: Rule | None = None
    holidays: Holidays | None = None
    step: Step | None = None

    @property
    def forecasting(self) -> tuple[object, ...]:
        """Return the fields that forecasts depend on; a change of them starts a new forecaster."""
        return self.zone, self.bounds, self.rule, self.holidays, self.step


class Plan(msgspec.Struct, frozen=True):
    """The settings of all forecasters of a service, or of one sensor's: see `of`."""

    step: int  # time between readings, in microseconds
    # As for a `Forecaster`.
    horizon: int = 1
    level: float = 0.9
    train_size: int = 5760
    # How long a step stays open, in microseconds. Within this time, the order in which readings
    # arrive does not matter.
    grace: int = 10 * MINUTE
    # How readings within one step are combined, unless a sensor declares it. Without a rule,
    # readings between steps are refused.
    rule: Rule | None = None
    learn: bool = True  # False keeps hyperparameters at their initial values
    model: ModelSize = "default"  # the size of the model, as for a `Forecaster`

    def of(self, declared: Declaration) -> Plan:
        """Return the plan of one sensor: with the step and the rule that it declares.

        Examples
        --------
        >>> Plan(step=15 * MINUTE).of(Declaration(step="1min", rule="mean")).step == MINUTE
        True
        """
        return _plan_of(self, declared.step, declared.rule)

    @property
    def open_for(self) -> int:
        """Return by how much a reading may be older than the newest one without being late."""
        return self.step + self.grace

    @property
    def stale_after(self) -> int:
        """Return the age of the newest reading at which a sensor is stale.

        Four steps may be missing, but not more than an hour, and not less than the grace.
        """
        return self.step + min(max(4 * self.step, self.grace), HOUR)

    @property
    def silent_after(self) -> int:
        """Return the age at which a sensor is silent: 96 missing steps, but at most a day."""
        return max(self.step + min(96 * self.step, DAY), self.stale_after)

    def step_of(self, time: int) -> int:
        """Return the time of the step that a reading belongs to.

        Without a rule it is the nearest step, with a rule the step that the time lies in.

        Examples
        --------
        >>> exact, fine = Plan(step=15 * MINUTE), Plan(step=15 * MINUTE, rule="sum")
        >>> exact.step_of(15 * MINUTE + 3 * SECOND) == fine.step_of(29 * MINUTE)
        True
        """
        early = self.step // 2 if self.rule is None else 0
        return (time + early) // self.step * self.step

    def is_on_grid(self, time: int) -> bool:
        """Return whether a time lies on the grid, within the tolerance; always with a rule."""
        if self.rule is not None:
            return True
        return abs(time - self.step_of(time)) <= GRID_TOLERANCE * self.step

    def key_of(self, time: int) -> int:
        """Return what identifies a reading of a sensor: with a rule its time, else its step."""
        return self.step_of(time) if self.rule is None else time

    def times_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of times of the readings of all steps from `start` until `end`.

        Examples
        --------
        >>> exact, fine = Plan(step=10 * MINUTE), Plan(step=10 * MINUTE, rule="sum")
        >>> [time // MINUTE for time in exact.times_of(10 * MINUTE, 20 * MINUTE)]
        [5, 15]
        >>> [time // MINUTE for time in fine.times_of(10 * MINUTE, 11 * MINUTE)]
        [10, 20]
        """
        first, last = (-(-time // self.step) * self.step for time in (start, end))
        early = self.step // 2 if self.rule is None else 0
        return first - early, last - early

    def settings(self, declared: Declaration) -> Settings:
        """Return the settings of a sensor's forecaster."""
        return _settings(self.of(declared), declared.zone, declared.bounds, declared.holidays)

    def stagger(self, name: str) -> int:
        """Return by how many steps the refits of a sensor are shifted, so that few coincide."""
        return crc32(name.encode()) % self._update_every

    def next_refit(self, name: str, since: int) -> int:
        """Return the step of a sensor's next refit.

        `since` is the time of its last refit point, or of its first step. The refit takes place at
        the sensor's first turn that is at least half a period later.
        """
        every, stagger = self._update_every, self.stagger(name)
        earliest = since // self.step + every // 2
        return (-(-(earliest + stagger) // every) * every - stagger) * self.step

    @property
    def _update_every(self) -> int:
        every: int = self.settings(Declaration()).update_every
        return every


class Plans(msgspec.Struct, frozen=True):
    """The plans of a service, each valid from an arrival number on; the first from 0."""

    since: tuple[tuple[int, Plan], ...]

    def at(self, seq: int) -> Plan:
        """Return the plan that was valid at an arrival number."""
        return [plan for since, plan in self.since if since <= seq][-1]

    @property
    def latest(self) -> Plan:
        """Return the current plan."""
        return self.since[-1][1]


@lru_cache(maxsize=4096)
def _plan_of(plan: Plan, step: str | None, rule: Rule | None) -> Plan:
    own = plan.step if step is None else _microseconds(step)
    return msgspec.structs.replace(plan, step=own, rule=rule or plan.rule)


def _microseconds(step: str) -> int:
    length = parse_length("step", step)
    if not isinstance(length, timedelta):
        raise InvalidInputError(f"step must be a time such as 15min, got {step!r}.")
    return length // US


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
