"""Accuracy: forecast errors by sensor and by hour of the day."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from streamridge_service.http.requests import MAX_ITEMS, Cursor, Limit, Names, Query, given, parts
from streamridge_service.http.routes.history import HistoryParts, HistoryRow
from streamridge_service.http.routing import HttpRequest, Routes, context_of, service_of
from streamridge_service.plan import DAY
from streamridge_service.service.answers import Answer, Name
from streamridge_service.service.sensor_status import SensorStatus

# Sensors, spread evenly over all, whose errors by hour are looked up.
SAMPLE = 100

routes = Routes("history")


class AccuracyQuery(Query, frozen=True):
    """How errors are grouped."""

    by: Literal["sensor", "hour"] = "sensor"
    sensors: Names | UnsetType = UNSET
    days: Annotated[int, Meta(ge=1, le=28, description="By hour: the number of days back.")] = 7
    limit: Limit = 100
    cursor: Cursor | UnsetType = UNSET


class AccuracyRow(Answer, frozen=True):
    """The errors of one sensor, or of one hour of the day."""

    sensor: Name | None
    hour: int | None
    error: Annotated[float, Meta(examples=[21.4])] | None
    usual: Annotated[float, Meta(examples=[19.8])] | None
    error_ratio: Annotated[float, Meta(examples=[1.08])] | None
    outside: Annotated[float, Meta(examples=[0.07])] | None
    count: Annotated[int, Meta(examples=[2688])]


class Accuracy(Answer, frozen=True):
    """The errors of forecasts; by hour, of this number of sensors."""

    by: Literal["sensor", "hour"]
    items: list[AccuracyRow]
    sensors: Annotated[int, Meta(examples=[1])]
    cursor: str | None


@routes.add("GET", "/v1/accuracy")
async def show_accuracy(request: HttpRequest, query: AccuracyQuery) -> Accuracy:
    """Return the errors of forecasts one step ahead, by sensor or by hour of the day in UTC.

    Errors by hour include the named sensors, or a hundred spread evenly over all.
    """
    names, by_sensor, now = parts(query.sensors), query.by == "sensor", service_of(request).now
    page = await context_of(request).pages.page(
        "id",
        lambda status: not status.is_archived and (not names or status.sensor.name in names),
        given(query.cursor) if by_sensor else None,
        query.limit if by_sensor else MAX_ITEMS,
    )
    if by_sensor:
        items = [errors_of_sensor(status, now) for status in page.statuses]
        return Accuracy(query.by, items, len(items), page.cursor)
    sample = page.statuses[:: max(len(page.statuses) // SAMPLE, 1)][:SAMPLE]
    service = service_of(request)
    span = now - query.days * DAY, now + 1
    hours = HourlyErrors()
    for status in sample:
        for part in HistoryParts(status, *span, lead=1):
            hours.add(await service.queries.read_part(part))
    return Accuracy(query.by, hours.rows, len(sample), None)


def errors_of_sensor(status: SensorStatus, now: int) -> AccuracyRow:
    """Return the errors of a sensor in the last day, and in the last four weeks."""
    scores = status.scores(now)
    return AccuracyRow(
        sensor=status.sensor.name,
        hour=None,
        error=scores.error,
        usual=scores.usual,
        error_ratio=scores.ratio,
        outside=scores.outside,
        count=scores.count,
    )


class HourlyErrors:
    """The errors of steps by hour of the day, in UTC."""

    def __init__(self) -> None:
        self._squares, self._outside, self._counts = [0.0] * 24, [0] * 24, [0] * 24

    def add(self, rows: Iterable[HistoryRow]) -> None:
        """Add the errors of some steps."""
        for row in rows:
            if row.actual is None or row.forecast is None:
                continue
            hour = int(row.time[11:13])
            assert row.lower is not None
            assert row.upper is not None
            self._squares[hour] += (row.actual - row.forecast) ** 2
            self._outside[hour] += not row.lower <= row.actual <= row.upper
            self._counts[hour] += 1

    @property
    def rows(self) -> list[AccuracyRow]:
        """Return the errors of each hour."""
        return [
            AccuracyRow(
                sensor=None,
                hour=hour,
                error=sqrt(square / count) if count else None,
                usual=None,
                error_ratio=None,
                outside=outside / count if count else None,
                count=count,
            )
            for hour, (square, outside, count) in enumerate(
                zip(self._squares, self._outside, self._counts, strict=True)
            )
        ]
