"""Gaps: the number of readings in each hour."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType
from numpy import isnan

from streamridge_service.http.requests import Cursor, StateFilter, TimeRange, given, require_at_most
from streamridge_service.http.routes.history import measured
from streamridge_service.http.routes.sensors import sensor_filter
from streamridge_service.http.routing import HttpRequest, Routes, context_of, service_of, status_of
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.plan import DAY, HOUR, NEVER, SECOND, GroupName, Label
from streamridge_service.service.answers import Answer, Name, StepSeconds, Time, iso
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.service.service import Service

# Hours of one response: a month for one sensor, a week for many; and sensors of one response.
MAX_HOURS, MAX_HOURS_OF_MANY, MAX_SENSORS = 744, 168, 1000

routes = Routes("history")


class GapsQuery(TimeRange, frozen=True):
    """The sensors, and the range of time."""

    state: StateFilter | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_SENSORS, description="The most sensors.")] = 100
    cursor: Cursor | UnsetType = UNSET


class Hour(Answer, frozen=True):
    """The number of readings in an hour."""

    time: Time
    expected: Annotated[int, Meta(examples=[4])]
    received: Annotated[int, Meta(examples=[3])]


class SensorGaps(Answer, frozen=True):
    """The gaps of one sensor."""

    sensor: Name
    hours: list[Hour]


class GapsRow(Answer, frozen=True):
    """The number of readings of one sensor in each hour; null before its first reading."""

    id: Name
    label: Label | None
    group: GroupName | None
    step_seconds: StepSeconds
    hours: Annotated[list[int | None], Meta(examples=[[None, 3, 4]])]


class Gaps(Answer, frozen=True, rename={"from_": "from"}):
    """The gaps of many sensors."""

    items: list[GapsRow]
    from_: Time
    hours: Annotated[int, Meta(examples=[3])]
    cursor: str | None
    total: Annotated[int, Meta(examples=[1])]


@routes.add("GET", "/v1/sensors/{sensor:str}/gaps")
async def show_gaps(request: HttpRequest, query: TimeRange) -> SensorGaps:
    """Return the number of expected and of received readings of a sensor, hour by hour."""
    service, status = service_of(request), status_of(request)
    start, end = _hours(query, service.now, MAX_HOURS)
    counts = await _counts(service, status, start, end)
    step, hours = status.plan.step, range(start, end, HOUR)
    expected = [-(-(hour + HOUR) // step) - -(-hour // step) for hour in hours]
    items = [Hour(iso(hour), *each) for hour, *each in zip(hours, expected, counts, strict=True)]
    return SensorGaps(status.sensor.name, items)


@routes.add("GET", "/v1/gaps")
async def list_gaps(request: HttpRequest, query: GapsQuery) -> Gaps:
    """Return the number of readings of many sensors, hour by hour.

    An hour before the first reading is null. Sensors are sorted by name.
    """
    service = service_of(request)
    start, end = _hours(query, service.now, MAX_HOURS_OF_MANY)
    wanted = sensor_filter(given(query.state), service.now)
    page = await context_of(request).pages.page("id", wanted, given(query.cursor), query.limit)
    items = [
        _row(status, await _counts(service, status, start, end), start) for status in page.statuses
    ]
    return Gaps(items, iso(start), (end - start) // HOUR, page.cursor, page.total)


def _hours(query: TimeRange, now: int, limit: int) -> tuple[int, int]:
    """Return a range of whole hours; by default it ends with the current hour."""
    start, end = query.resolve(-(-(now + 1) // HOUR) * HOUR, DAY)
    count = (end - start) // HOUR
    require_at_most(count, limit, "hours")
    return start, start + count * HOUR


async def _counts(service: Service, status: SensorStatus, start: int, end: int) -> list[int]:
    """Return the number of steps with a reading in each hour of a range."""

    def count(ledger: Ledger) -> list[int]:
        steps, values = measured(ledger, status, start, end)
        hours = Counter(((steps[~isnan(values)] - start) // HOUR).tolist())
        return [hours[i] for i in range((end - start) // HOUR)]

    return await service.queries.read_part(count)


def _row(status: SensorStatus, counts: list[int], start: int) -> GapsRow:
    declared, first = status.declared, status.summary.first
    hours = [
        None if (first == NEVER or start + (i + 1) * HOUR <= first) and not count else count
        for i, count in enumerate(counts)
    ]
    step = status.plan.step / SECOND
    return GapsRow(status.sensor.name, declared.label, declared.group, step, hours)
