"""Sending readings to a service: in time order, at any speed.

The service recognizes duplicates. An interrupted feed therefore continues after the newest reading
that the service has, and a request without a response is simply repeated.
"""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from streamridge.errors import InvalidInputError
from streamridge_service.client.http_client import Client, RefusedError
from streamridge_service.client.readings_table import ReadingsTable, SensorReading

# Rows of a request, if steps need not be sent one by one; and the most.
MANY, MOST = 10_000, 50_000
# Refused rows that are described.
MOST_REFUSALS = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, HOUR = 1_000_000, 3_600_000_000
# Sensors whose skipped readings are looked up, and hours of one request.
MOST_CHECKED, MOST_HOURS = 20, 743
COUNTED = ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused")


@dataclass(frozen=True)
class Pace:
    """The speed of a feed; without either number, as fast as the service accepts readings."""

    speedup: float | None = None  # multiple of real time
    steps_a_second: float | None = None  # number of steps in a second

    @classmethod
    def of(cls, text: str) -> Pace:
        """Return the pace of a text: "max", "60" or "60x" times real time, or "2/s" steps.

        Examples
        --------
        >>> Pace.of("60").seconds(900), Pace.of("2/s").seconds(900), Pace.of("max").seconds(900)
        (15.0, 0.5, 0.0)
        """
        plain = text.strip().lower()
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(x|/s)?", plain, re.ASCII)
        if plain == "max":
            return cls()
        if match is None or not float(match[1]):
            raise InvalidInputError(
                "speed must be max, a multiple of real time such as 60, or steps a second such as "
                f"2/s, got {text!r}."
            )
        number = float(match[1])
        return cls(steps_a_second=number) if match[2] == "/s" else cls(speedup=number)

    def seconds(self, step: float) -> float:
        """Return the seconds between two steps, given the step in seconds; zero for no wait."""
        if self.steps_a_second is not None:
            return 1.0 / self.steps_a_second
        return 0.0 if self.speedup is None else step / self.speedup


@dataclass
class FeedResult:
    """The result of a feed."""

    # Numbers of accepted, duplicate, refused rows and so on.
    counts: Counter[str] = field(default_factory=Counter)
    # Numbers of refused rows by the code of the problem.
    codes: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)  # descriptions of the first refused rows

    def add(self, rows: Sequence[SensorReading], answer: Mapping[str, Any]) -> None:
        """Add the service's answer to a request."""
        self.counts.update({name: int(answer.get(name, 0)) for name in COUNTED})
        for refusal in answer.get("refusals", ()):
            self.codes[refusal["code"]] += 1
            if len(self.refusals) < MOST_REFUSALS:
                sensor, moment, _ = rows[int(refusal["line"]) - 1]
                self.refusals.append(
                    f"{sensor} at {iso(moment)}: {refusal['detail']} ({refusal['code']})"
                )


@dataclass
class KnownSensors:
    """The step of a service in seconds, and the step and the newest time of each sensor."""

    step: int
    steps: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)

    @property
    def reading_step(self) -> str | Mapping[str, str]:
        """Return the step for reading files: one for all, or by sensor."""
        own = {name: f"{step}s" for name, step in self.steps.items() if step != self.step}
        return defaultdict(lambda: f"{self.step}s", own) if own else f"{self.step}s"


@dataclass(frozen=True)
class Feed:
    """Sends readings to a service."""

    client: Client
    # Whether the readings are history, for which the service makes no forecasts.
    backfill: bool = False
    pace: Pace = Pace()
    # Replaced by tests.
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def known_sensors(self) -> KnownSensors | None:
        """Return the steps and newest readings that the service has.

        It is None if the token may not read. All readings are then sent, and the service
        recognizes duplicates.
        """
        summary = self._get_if_allowed("/v1/summary")
        if summary is None:
            return None
        known = KnownSensors(int(summary["step_seconds"]))
        query = "/v1/sensors?sort=id&limit=10000"
        page = self.client.get(query)
        while page is not None:
            for item in page["items"]:
                known.steps[item["id"]] = int(item.get("step_seconds", known.step))
                if item["newest"] is not None:
                    known.newest[item["id"]] = microseconds_of(item["newest"])
            cursor = page["cursor"]
            page = None if cursor is None else self.client.get(f"{query}&cursor={cursor}")
        return known

    def count_missing(self, tables: Iterable[ReadingsTable], known: KnownSensors) -> int:
        """Return how many of the readings that are not newer the service certainly lacks.

        It compares numbers of readings, of some sensors, at the begin and the end of their time.
        """
        missing = 0
        for table in tables:
            skipped = table.skipped(known.newest)
            names = [name for name in skipped if known.steps[name] * SECOND == table.step]
            for name in names[:: -(-len(names) // MOST_CHECKED) or 1]:
                times = skipped[name]
                for start, end in _windows(times[0], times[-1]):
                    sent = sum(start <= each < end for each in times)
                    missing += max(sent - self._received(name, start, end), 0)
        return missing

    def _received(self, name: str, start: int, end: int) -> int:
        """Return the number of steps with readings that the service has, in a range of hours.

        The step of a reading may be a little later than its time, so one hour more is included.
        """
        path = f"/v1/sensors/{quote(name, safe='')}/gaps?from={iso(start)}&to={iso(end + HOUR)}"
        return sum(int(hour["received"]) for hour in self.client.get(path)["hours"])

    def _get_if_allowed(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except RefusedError as error:
            if error.response.status != 403:
                raise
            return None

    def send(
        self, tables: Sequence[ReadingsTable], newest: Mapping[str, int], result: FeedResult
    ) -> Iterator[int]:
        """Send readings; yield the number of rows after each request.

        Readings up to the `newest` of their sensor are skipped, unless it is a backfill. `result`
        collects the answers of the service.
        """
        if self.backfill:
            parts: Iterable[list[SensorReading]] = (
                rows for table in tables for rows in table.by_sensor()
            )
        else:
            parts = self._paced(tables, newest)
        waits = not self.backfill and self.pace.seconds(1.0) > 0
        for rows in _grouped(parts, 1 if waits else MANY):
            self._post(rows, result)
            yield len(rows)

    def _paced(
        self, tables: Sequence[ReadingsTable], newest: Mapping[str, int]
    ) -> Iterator[list[SensorReading]]:
        """Yield each step when it is due; empty steps before the first reading are skipped.

        If there are several steps, the shortest one is the step of the pace.
        """
        step = min(table.step for table in tables)
        pause = self.pace.seconds(step / SECOND) / step  # seconds for a microsecond
        begin: tuple[int, float] | None = None
        steps = merge(*(table.by_step(newest) for table in tables), key=itemgetter(0))
        for moment, alike in groupby(steps, key=itemgetter(0)):
            rows = [row for _, some in alike for row in some]
            if begin is None and not rows:
                continue
            now = self.clock()
            begin = begin or (moment, now)
            due = begin[1] + (moment - begin[0]) * pause
            if due > now:
                self.sleep(due - now)
            yield rows

    def _post(self, rows: Sequence[SensorReading], result: FeedResult) -> None:
        """Send rows, in two halves if they are too many for one request."""
        response = self.client.request_until_final(
            "POST",
            f"/v1/readings?mode={'backfill' if self.backfill else 'live'}",
            compressed_rows(rows),
            Content_Type="application/x-ndjson",
            Content_Encoding="gzip",
        )
        if response.status == 413 and len(rows) > 1:
            half = len(rows) // 2
            self._post(rows[:half], result)
            self._post(rows[half:], result)
        elif response.status == 200 or "refusals" in response.json:
            result.add(rows, response.json)
        else:
            raise RefusedError(response)


def _windows(first: int, last: int) -> list[tuple[int, int]]:
    """Return the first and the last hours of a span of time, as ranges that do not overlap.

    Examples
    --------
    >>> _windows(0, 1), len(_windows(0, 10**6 * HOUR))
    ([(0, 3600000000)], 2)
    """
    start, end = first // HOUR * HOUR, (last // HOUR + 1) * HOUR
    if end - start <= MOST_HOURS * HOUR:
        return [(start, end)]
    middle = max(start + MOST_HOURS * HOUR, end - MOST_HOURS * HOUR)
    return [(start, start + MOST_HOURS * HOUR), (middle, end)]


def _grouped(parts: Iterable[list[SensorReading]], least: int) -> Iterator[list[SensorReading]]:
    """Yield groups of whole parts with at least `least` rows; very large groups are split.

    Examples
    --------
    >>> row = ("a", 0, 1.0)
    >>> [len(group) for group in _grouped([[row] * 3, [], [row] * 3, [row] * 9, [row]], 5)]
    [6, 9, 1]
    """
    group: list[SensorReading] = []
    for part in parts:
        group += part
        if len(group) >= least:
            yield from _split(group)
            group = []
    yield from _split(group)


def _split(rows: list[SensorReading]) -> Iterator[list[SensorReading]]:
    for begin in range(0, len(rows), MOST):
        yield rows[begin : begin + MOST]


def compressed_rows(rows: Iterable[SensorReading]) -> bytes:
    """Return readings as NDJSON, compressed with gzip."""
    texts: dict[int, str] = {}
    lines = []
    for sensor, moment, value in rows:
        text = texts.get(moment) or texts.setdefault(moment, iso(moment))
        lines.append(f'{{"sensor":"{sensor}","time":"{text}","value":{value!r}}}\n')
    return gzip.compress("".join(lines).encode(), compresslevel=1)


def iso(moment: int) -> str:
    """Return microseconds since 1970 as text.

    Examples
    --------
    >>> iso(900_000_000)
    '1970-01-01T00:15:00Z'
    """
    return (EPOCH + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")


def microseconds_of(text: str) -> int:
    """Return the microseconds since 1970 of a time with an offset."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
