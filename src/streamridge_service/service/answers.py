"""Answers about sensors, forecasts and events, each described once as a struct.

HTTP answers, the event stream and the OpenAPI document all follow from these structs. The functions
take plain values and return structs; `Meta` gives each type its constraints and its example.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from streamridge_service.ledger.records import Event, IssuedForecast
from streamridge_service.limits import SENSOR_NAME
from streamridge_service.plan import NEVER, SECOND, GroupName, Label, Position, Unit, Zone
from streamridge_service.service.sensor_status import SensorStatus, StateName

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

AnyTime = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Time = Annotated[AnyTime, Meta(examples=["2026-06-13T08:15:00Z"])]
NextTime = Annotated[AnyTime, Meta(examples=["2026-06-13T08:30:00Z"])]
Name = Annotated[str, Meta(pattern=SENSOR_NAME, examples=["A2-35.1"])]
State = Annotated[StateName, Meta(examples=["good"])]
Source = Annotated[
    str, Meta(extra_json_schema={"enum": ["last", "model", "none", "seasonal"]}, examples=["model"])
]
Trend = Annotated[str, Meta(extra_json_schema={"enum": ["down", "flat", "up"]}, examples=["flat"])]
ServiceState = Annotated[
    str,
    Meta(
        extra_json_schema={"enum": ["degraded", "live", "stale", "starting", "stopping"]},
        examples=["live"],
    ),
]
Score = Annotated[
    float,
    Meta(
        ge=0,
        examples=[0.4],
        description="Anomaly score: the distance of the last reading from its forecast, in units "
        "of the interval on that side. Above 1 the reading is outside.",
    ),
]
StepSeconds = Annotated[
    float, Meta(examples=[900.0], description="The time between readings, in seconds.")
]
Seq = Annotated[int, Meta(examples=[184_901])]
Measured = Annotated[float, Meta(examples=[412.0])]
Value = Annotated[float, Meta(examples=[428.1])]
Lower = Annotated[float, Meta(examples=[371.5])]
Upper = Annotated[float, Meta(examples=[484.9])]


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all answers: every field is always present unless it may be unset."""


class ForecastStep(Answer, frozen=True):
    """One step of a forecast."""

    time: NextTime
    lead: Annotated[int, Meta(examples=[1])]
    value: Value
    lower: Lower
    upper: Upper


class SensorForecast(Answer, frozen=True):
    """The forecast of one sensor; without a forecast, the source is "none"."""

    sensor: Name
    step_seconds: StepSeconds
    seq: Seq
    source: Source
    reason: str | None
    items: list[ForecastStep]


class NextStep(Answer, frozen=True):
    """The first step of a sensor's newest forecast."""

    time: NextTime
    value: Value
    lower: Lower
    upper: Upper
    source: Source


class SensorItem(Answer, frozen=True):
    """A sensor in a list."""

    id: Name
    label: Label | None
    group: GroupName | None
    state: State
    reason: str
    step_seconds: StepSeconds
    newest: Time | None
    value: Measured | None
    unit: Unit | None
    zone: Zone
    position: Position | None
    error: Annotated[float, Meta(examples=[21.4])] | None
    error_ratio: Annotated[float, Meta(examples=[1.08])] | None
    outside: Annotated[float, Meta(examples=[0.07])] | None
    trend: Trend
    acknowledged: Annotated[
        bool, Meta(description="Whether an operator knows about the present state.")
    ]
    score: Score | None
    outside_in_a_row: Annotated[
        int, Meta(description="Readings outside their intervals in a row, up to the last one.")
    ]
    forecast: NextStep | None


class EventItem(Answer, frozen=True):
    """A change that an operator should know about."""

    id: Annotated[int, Meta(examples=[17])]
    time: Time
    kind: Annotated[str, Meta(examples=["stale"])]
    sensor: Name | None
    reason: Annotated[str, Meta(examples=["no reading for 75 minutes"])]


class LastStep(Answer, frozen=True):
    """The newest step that has readings."""

    time: Time
    received: Annotated[int, Meta(examples=[15])]
    expected: Annotated[int, Meta(examples=[16])]


class StepCount(Answer, frozen=True):
    """The sensors with one length of a step, and the newest of their steps that has readings."""

    step_seconds: StepSeconds
    sensors: Annotated[int, Meta(examples=[16])]
    last_step: LastStep | None


class ErrorNow(Answer, frozen=True):
    """The error of the last day divided by that of four weeks, averaged over all sensors."""

    now: Annotated[float, Meta(examples=[0.93])] | None


class StateCounts(Answer, frozen=True):
    """The number of sensors in each state."""

    good: Annotated[int, Meta(examples=[12])]
    stale: int
    silent: int
    constant: int
    zero: int
    implausible: int
    degraded: int
    rebuilt: int
    new: Annotated[int, Meta(examples=[4])]


class MemoryUse(Answer, frozen=True):
    """The memory that all processes of the service hold, as measured, and may hold, in bytes."""

    held: Annotated[int, Meta(examples=[812_000_000])]
    limit: Annotated[int, Meta(examples=[8_000_000_000])]


class Summary(Answer, frozen=True):
    """The state of the whole service."""

    state: ServiceState
    reasons: Annotated[list[str], Meta(examples=[[]])]
    now: Time
    version: Annotated[str, Meta(examples=["0.2.0"])]
    step_seconds: StepSeconds
    horizon: Annotated[int, Meta(examples=[1])]
    level: Annotated[float, Meta(examples=[0.9])]
    sensors: StateCounts
    total: Annotated[int, Meta(examples=[16])]
    newest: Time | None
    newest_age_seconds: Annotated[float, Meta(examples=[72.0])] | None
    last_step: LastStep | None
    steps: list[StepCount]
    refused_last_hour: int
    days_left: Annotated[float, Meta(examples=[812.0])] | None
    memory: MemoryUse
    clock_warning: str | None
    zone: Annotated[str, Meta(examples=["UTC"])]
    error: ErrorNow


def iso(time: int) -> str:
    """Return a time as ISO 8601 text in UTC.

    Examples
    --------
    >>> iso(1_700_000_100_000_000)
    '2023-11-14T22:15:00Z'
    """
    return (EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


def iso_or_none(time: int | None) -> str | None:
    """Return a time as ISO 8601 text in UTC; None if there is none, or if it is `NEVER`."""
    return None if time is None or time == NEVER else iso(time)


def sensor_item(status: SensorStatus, now: int) -> SensorItem:
    """Return a sensor as lists show it, in the state that it has at `now`."""
    declared, summary, scores = status.declared, status.summary, status.scores(now)
    state, reason = status.state(now)
    return SensorItem(
        id=status.sensor.name,
        label=declared.label,
        group=declared.group,
        state=state,
        reason=reason,
        step_seconds=status.plan.step / SECOND,
        newest=iso_or_none(summary.newest),
        value=summary.value,
        unit=declared.unit,
        zone=declared.zone or "UTC",
        position=declared.position,
        error=scores.error,
        error_ratio=scores.ratio,
        outside=scores.outside,
        trend=scores.trend,
        acknowledged=status.acknowledged == state,
        score=summary.score,
        outside_in_a_row=summary.outside,
        forecast=_next_step(status.forecast),
    )


def _next_step(issued: IssuedForecast | None) -> NextStep | None:
    if issued is None or not issued.values:
        return None
    value, lower, upper = issued.values[0], issued.lower[0], issued.upper[0]
    return NextStep(iso(issued.time), value, lower, upper, issued.source)


def sensor_forecast(
    status: SensorStatus, issued: IssuedForecast | None, missing: str | None = None
) -> SensorForecast:
    """Return a forecast of a sensor; `missing` is the reason why it has none, if any."""
    name, step = status.sensor.name, status.plan.step
    if issued is None or not issued.values or missing is not None:
        seq, reason = 0 if issued is None else issued.seq, missing or "none was issued"
        return SensorForecast(name, step / SECOND, seq, "none", reason, [])
    bands = zip(issued.values, issued.lower, issued.upper, strict=True)
    items = [
        ForecastStep(iso(issued.time + i * step), i + 1, value, lower, upper)
        for i, (value, lower, upper) in enumerate(bands)
    ]
    return SensorForecast(name, step / SECOND, issued.seq, issued.source, None, items)


def newest_forecast(status: SensorStatus, now: int) -> SensorForecast:
    """Return the newest forecast of a sensor, or the reason why it has none at `now`."""
    reason = status.reason_without_forecast(now)
    return sensor_forecast(status, status.forecast, reason)


def event_item(event: Event, sensor: str | None) -> EventItem:
    """Return an event, with the name of its sensor."""
    return EventItem(event.id, iso(event.at), event.kind, sensor, event.reason)
