"""Pages of sensors, in an order that the client chooses."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TypeVar

from streamridge_service.service.sensor_status import SensorStatus, SensorStatuses

# A cursor holds the sort key and the name of the last sensor of the previous page.
CURSOR = r"^[0-9a-f]{16}\.[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
# Seconds for which an order is reused: sorting all sensors for every page takes too long.
MAX_AGE = 2.0
# Work on this many sensors takes a few milliseconds; more of them go to another thread.
FEW = 500
MASK, SIGN = (1 << 64) - 1, 1 << 63

# The sort key of a sensor at a time.
KEYS: dict[str, Callable[[SensorStatus, int], float | None]] = {
    "id": lambda status, now: None,
    "error": lambda status, now: status.scores(now).error,
    "error_ratio": lambda status, now: status.scores(now).ratio,
    "newest": lambda status, now: float(status.summary.newest),
    "outside": lambda status, now: status.scores(now).outside,
    "score": lambda status, now: status.summary.score,
}

Key = tuple[int, str]
Filter = Callable[[SensorStatus], bool]
T = TypeVar("T")


class Work(Protocol):
    """Runs long work in another thread."""

    def __call__(self, part: Callable[[], T]) -> Awaitable[T]:
        """Return the result of the work."""


@dataclass(frozen=True)
class Page:
    """Some sensors, the cursor of the next page if there is one, and the number of all."""

    statuses: list[SensorStatus]
    cursor: str | None
    total: int


@dataclass(frozen=True)
class _Order:
    """All sensors in one order: sort keys, and sensor ids."""

    made_at: float
    keys: list[Key]
    ids: list[int]


class SensorPages:
    """Pages of the table of sensors. Only the event loop uses it.

    `now` returns the current time, and `work` runs long work in another thread.
    """

    def __init__(self, statuses: SensorStatuses, now: Callable[[], int], work: Work) -> None:
        self._statuses, self._now, self._work = statuses, now, work
        self._orders: dict[str, _Order] = {}

    async def page(self, sort: str, wanted: Filter, cursor: str | None, limit: int) -> Page:
        """Return up to `limit` wanted sensors after a cursor.

        Long work runs in another thread, on a copy of the table.
        """
        statuses, order, now = self._statuses.copy(), self._orders.get(sort), self._now()
        count = len(statuses)
        if order is None or len(order.ids) != count or monotonic() - order.made_at > MAX_AGE:
            order = await self._run(count, lambda: _ordered(statuses, sort, now))
            self._orders[sort] = order
        return await self._run(count, lambda: _page(statuses, order, wanted, cursor, limit))

    async def _run(self, count: int, function: Callable[[], T]) -> T:
        return function() if count <= FEW else await self._work(function)


def _ordered(statuses: Mapping[int, SensorStatus], sort: str, now: int) -> _Order:
    pairs = sorted((_key(status, sort, now), sensor) for sensor, status in statuses.items())
    return _Order(monotonic(), [key for key, _ in pairs], [sensor for _, sensor in pairs])


def _page(
    statuses: Mapping[int, SensorStatus],
    order: _Order,
    wanted: Filter,
    cursor: str | None,
    limit: int,
) -> Page:
    start = 0 if cursor is None else bisect_right(order.keys, _key_of(cursor))
    before = sum(wanted(statuses[sensor]) for sensor in order.ids[:start])
    found = [
        (key, status)
        for key, sensor in zip(order.keys[start:], order.ids[start:], strict=True)
        if wanted(status := statuses[sensor])
    ]
    shown = found[:limit]
    last = _cursor_of(shown[-1][0]) if len(found) > limit else None
    return Page([status for _, status in shown], last, before + len(found))


def _key(status: SensorStatus, sort: str, now: int) -> Key:
    number = KEYS[sort.removeprefix("-")](status, now)
    return ordinal(number, descending=sort.startswith("-")), status.sensor.name


def ordinal(number: float | None, *, descending: bool = False) -> int:
    """Return a 64-bit integer with the same order as the numbers; None comes last.

    Examples
    --------
    >>> sorted([None, 1.5, -2.0, 0.0], key=ordinal)
    [-2.0, 0.0, 1.5, None]
    """
    if number is None:
        return MASK
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    rising: int = bits ^ (MASK if bits & SIGN else SIGN)
    return MASK ^ rising if descending else rising


def _cursor_of(key: Key) -> str:
    return f"{key[0]:016x}.{key[1]}"


def _key_of(cursor: str) -> Key:
    number, _, name = cursor.partition(".")
    return int(number, 16), name
