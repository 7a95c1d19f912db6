"""How good forecasts were, by sensor and by hour of the day."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from streamridge.service import views
from streamridge.service.board import Place
from streamridge.service.ledger.base import Ledger
from streamridge.service.plan import HOUR
from streamridge.service.service import Service

DAY = 24 * HOUR

Row = dict[str, Any]


def of_sensor(place: Place) -> Row:
    """Return the errors of a sensor, of the last day and as usual."""
    scores = place.standing.scores
    known = bool(scores.count)
    return {
        "sensor": place.sensor.name,
        "hour": None,
        "error": scores.error,
        "usual": sqrt(scores.usually) if known else None,
        "error_ratio": scores.ratio,
        "outside": scores.outside if known else None,
        "count": scores.count,
    }


async def by_hour(service: Service, places: Iterable[Place], days: int) -> list[Row]:
    """Return the errors of sensors by hour of the day, of so many days."""
    now, plan = service.now, service.plan
    declared = {place.sensor: service.intake.declared(place.sensor) for place in places}
    span = now - days * DAY, now + 1

    def compared(ledger: Ledger) -> list[Row]:
        return [
            item
            for sensor, each in declared.items()
            for item in views.history(ledger, sensor, plan, each, span, lead=1)
        ]

    return errors_by_hour(await service.read(compared))


def errors_by_hour(items: Iterable[Row]) -> list[Row]:
    """Return the errors of compared steps by hour of the day, in UTC."""
    squares: list[list[float]] = [[] for _ in range(24)]
    outside = [0] * 24
    for item in items:
        actual, forecast = item["actual"], item["forecast"]
        if actual is not None and forecast is not None:
            hour = int(item["time"][11:13])
            squares[hour].append((actual - forecast) ** 2)
            outside[hour] += not item["lower"] <= actual <= item["upper"]
    return [_of_hour(hour, squares[hour], outside[hour]) for hour in range(24)]


def _of_hour(hour: int, squares: list[float], outside: int) -> Row:
    count = len(squares)
    return {
        "sensor": None,
        "hour": hour,
        "error": sqrt(sum(squares) / count) if count else None,
        "usual": None,
        "error_ratio": None,
        "outside": outside / count if count else None,
        "count": count,
    }
