"""The shapes of answers, as the document of the interface tells them.

Answers are made in `views` as plain values; a test holds them against these shapes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from streamridge.service.board import STATES
from streamridge.service.rows import NAME

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Name = Annotated[str, Meta(pattern=NAME)]
State = Literal[
    "good", "stale", "silent", "constant", "zero", "implausible", "degraded", "rebuilt", "new"
]
Source = Literal["model", "seasonal", "last", "none"]
assert set(STATES) == set(State.__args__)  # type: ignore[attr-defined]


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an answer looks like; all of its fields are always there."""


class Refused(Shape, frozen=True):
    """A row that was not taken."""

    line: int
    code: str
    detail: str
    column: str | None = None


class ProblemShape(Shape, frozen=True, rename={"type_": "type"}):
    """A refusal, as RFC 9457 shapes it; its code is one of the catalogue at /problems."""

    type_: str
    code: str
    title: str
    status: int
    detail: str
    remedy: str
    retry: bool
    accepted: int | msgspec.UnsetType = msgspec.UNSET
    duplicate: int | msgspec.UnsetType = msgspec.UNSET
    late: int | msgspec.UnsetType = msgspec.UNSET
    held: int | msgspec.UnsetType = msgspec.UNSET
    replaced: int | msgspec.UnsetType = msgspec.UNSET
    implausible: int | msgspec.UnsetType = msgspec.UNSET
    refused: int | msgspec.UnsetType = msgspec.UNSET
    skipped: int | msgspec.UnsetType = msgspec.UNSET
    refusals: list[Refused] | msgspec.UnsetType = msgspec.UNSET
    offered: list[str] | msgspec.UnsetType = msgspec.UNSET
    request: str | msgspec.UnsetType = msgspec.UNSET


class Step(Shape, frozen=True):
    """One step of a forecast."""

    time: Time
    lead: int
    value: float
    lower: float
    upper: float


class SensorForecast(Shape, frozen=True):
    """The next forecasts of a sensor; where there are none, the source is "none"."""

    sensor: Name
    seq: int
    source: Source
    reason: str | None
    items: list[Step]


class Counts(Shape, frozen=True):
    """What became of the rows of a request."""

    accepted: int
    duplicate: int
    late: int
    held: int
    replaced: int
    implausible: int
    refused: int
    forecasts: list[SensorForecast] | msgspec.UnsetType = msgspec.UNSET


class NextStep(Shape, frozen=True):
    """The first step of a sensor's newest forecast."""

    time: Time
    value: float
    lower: float
    upper: float
    source: Source


class SensorItem(Shape, frozen=True):
    """A sensor as lists show it."""

    id: Name
    label: str | None
    group: str | None
    state: State
    reason: str
    newest: Time | None
    value: float | None
    unit: str | None
    zone: str
    position: tuple[float, float] | None
    error: float | None
    error_ratio: float | None
    outside: float | None
    trend: Literal["up", "down", "flat"]
    forecast: NextStep | None


class SensorPage(Shape, frozen=True):
    """A page of sensors; with the cursor, the next one is asked for."""

    items: list[SensorItem]
    cursor: str | None
    total: int


class Fit(Shape, frozen=True):
    """When a sensor's model was fitted, and when it will be again."""

    at: Time | None
    next: Time | None
    seq: int


class SensorDetail(SensorItem, frozen=True):
    """All that is known of a sensor."""

    declared: dict[str, Any]
    archived: Time | None
    fit: Fit
    experts: dict[str, float]
    hyperparameters: dict[str, float]
    frozen: list[str]
    at_bound: dict[str, str]


class Declared(Shape, frozen=True):
    """What is declared of a sensor now."""

    id: Name
    declared: dict[str, Any]


class ForecastRow(Shape, frozen=True):
    """One step of one sensor's forecast."""

    sensor: Name
    label: str | None
    seq: int
    source: Source
    reason: str | None
    time: Time | None
    lead: int | None
    value: float | None
    lower: float | None
    upper: float | None


class ForecastPage(Shape, frozen=True):
    """Forecasts of many sensors."""

    items: list[ForecastRow]
    cursor: str | None
    total: int


class HistoryRow(Shape, frozen=True):
    """A step: what was measured, and what had been forecast."""

    time: Time
    actual: float | None
    status: Literal["good", "implausible", "missing"]
    forecast: float | None
    lower: float | None
    upper: float | None
    source: Source | None
    issued_at_seq: int | None


class History(Shape, frozen=True):
    """Measured values beside the forecasts made of them so many steps ahead."""

    sensor: Name
    lead: int
    step_seconds: float
    items: list[HistoryRow]


class Hour(Shape, frozen=True):
    """How many readings there are of an hour."""

    time: Time
    expected: int
    received: int


class SensorGaps(Shape, frozen=True):
    """The gaps of a sensor."""

    sensor: Name
    hours: list[Hour]


class GapsRow(Shape, frozen=True):
    """How many readings a sensor has in each hour; null before its first."""

    id: Name
    label: str | None
    group: str | None
    hours: list[int | None]


class Gaps(Shape, frozen=True, rename={"from_": "from"}):
    """The gaps of many sensors."""

    items: list[GapsRow]
    from_: Time
    hours: int
    cursor: str | None
    total: int


class TuningStep(Shape, frozen=True):
    """Where hyperparameters stood after a refit."""

    time: Time
    kind: str
    values: dict[str, float]
    experts: dict[str, float]
    at_bound: dict[str, str]
    frozen: list[str]


class Tuning(Shape, frozen=True):
    """Where the hyperparameters of a sensor have been, with their limits."""

    sensor: Name
    names: list[str]
    limits: dict[str, tuple[float, float]]
    learned: list[str]
    weights: list[str]
    items: list[TuningStep]
    last: Time | None
    next: Time | None
    at_bound: dict[str, str]
    frozen: list[str]
    values: dict[str, float]
    experts: dict[str, float]


class AccuracyRow(Shape, frozen=True):
    """How well a sensor, or an hour of the day, is forecast."""

    sensor: Name | None
    hour: int | None
    error: float | None
    usual: float | None
    error_ratio: float | None
    outside: float | None
    count: int


class Accuracy(Shape, frozen=True):
    """How well sensors are forecast; by hour, of so many sensors."""

    by: Literal["sensor", "hour"]
    items: list[AccuracyRow]
    sensors: int
    cursor: str | None


class EventItem(Shape, frozen=True):
    """Something an operator should know."""

    id: int
    time: Time
    kind: str
    sensor: Name | None
    reason: str


class Events(Shape, frozen=True):
    """What changed, oldest first."""

    items: list[EventItem]


class LastStep(Shape, frozen=True):
    """The newest step that has readings."""

    time: Time
    received: int
    expected: int


class ErrorNow(Shape, frozen=True):
    """The error of the last day over that of the last four weeks, the mean of all sensors."""

    now: float | None


class StateCounts(Shape, frozen=True):
    """How many sensors are in which state."""

    good: int
    stale: int
    silent: int
    constant: int
    zero: int
    implausible: int
    degraded: int
    rebuilt: int
    new: int


class Summary(Shape, frozen=True):
    """The one line of truth."""

    state: Literal["live", "starting", "degraded", "stale", "stopping"]
    reasons: list[str]
    now: Time
    version: str
    step_seconds: float
    horizon: int
    level: float
    sensors: StateCounts
    total: int
    newest: Time | None
    newest_age_seconds: float | None
    last_step: LastStep | None
    refused_last_hour: int
    days_left: float | None
    clock_warning: str | None
    zone: str
    error: ErrorNow


class Done(Shape, frozen=True):
    """What was done to a sensor."""

    sensor: Name
    done: str


class Released(Shape, frozen=True):
    """How many held rows of a sensor have arrived now."""

    sensor: Name
    released: int


class Alive(Shape, frozen=True):
    """The process is there."""

    alive: bool


class Ready(Shape, frozen=True):
    """Whether readings can be stored and forecasts be made, and if not, why."""

    ready: bool
    state: str
    reasons: list[str]


class Version(Shape, frozen=True):
    """What runs here, and what its numbers depend on in their last bits."""

    version: str
    interface: str
    format: str
    fingerprint: str


class TokenItem(Shape, frozen=True):
    """What is told of a token."""

    id: int
    name: str
    scopes: list[str]
    created: Time
    expires: Time | None
    revoked: Time | None
    valid: bool


class NewToken(TokenItem, frozen=True):
    """A new token, with the text that is shown this once."""

    token: str


class Tokens(Shape, frozen=True):
    """All tokens."""

    items: list[TokenItem]


class CatalogueEntry(Shape, frozen=True):
    """A code of refusals."""

    code: str
    status: int
    title: str
    remedy: str
    retry: bool


class Catalogue(Shape, frozen=True):
    """All codes of refusals."""

    items: list[CatalogueEntry]
