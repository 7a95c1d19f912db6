"""Sending readings to a service: in time order, at any speed.

The service recognizes duplicates. An interrupted feed therefore continues after the newest reading
that the service has, and a request without a response is simply repeated.
"""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from streamridge.errors import InvalidInputError
from streamridge_service.client.http_client import Client, RefusedError
from streamridge_service.client.readings_table import ReadingsTable, SensorReading

# Rows of a request, if steps need not be sent one by one; and the most.
MANY, MOST = 10_000, 50_000
# Refused rows that are described.
MOST_REFUSALS = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
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

    def step_seconds(self) -> int | None:
        """Return the step of the service in seconds; None if the token may not read."""
        summary = self._get_if_allowed("/v1/summary")
        return None if summary is None else int(summary["step_seconds"])

    def newest(self) -> dict[str, int]:
        """Return the time of the newest reading of each sensor that the service knows.

        It is empty if the token may not read. All readings are then sent, and the service
        recognizes duplicates.
        """
        newest: dict[str, int] = {}
        query = "/v1/sensors?sort=id&limit=10000"
        page = self._get_if_allowed(query)
        while page is not None:
            known = [item for item in page["items"] if item["newest"] is not None]
            newest |= {item["id"]: microseconds_of(item["newest"]) for item in known}
            cursor = page["cursor"]
            page = None if cursor is None else self._get_if_allowed(f"{query}&cursor={cursor}")
        return newest

    def _get_if_allowed(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except RefusedError as error:
            if error.response.status != 403:
                raise
            return None

    def send(
        self, table: ReadingsTable, newest: Mapping[str, int], result: FeedResult
    ) -> Iterator[int]:
        """Send readings; yield the number of rows after each request.

        Readings up to the `newest` of their sensor are skipped, unless it is a backfill. `result`
        collects the answers of the service.
        """
        parts = table.by_sensor() if self.backfill else self._paced(table, newest)
        waits = not self.backfill and self.pace.seconds(table.step / SECOND) > 0
        for rows in _grouped(parts, 1 if waits else MANY):
            self._post(rows, result)
            yield len(rows)

    def _paced(
        self, table: ReadingsTable, newest: Mapping[str, int]
    ) -> Iterator[list[SensorReading]]:
        """Yield each step when it is due; empty steps before the first reading are skipped."""
        seconds, due = self.pace.seconds(table.step / SECOND), None
        for rows in table.by_step(newest):
            if due is None and not rows:
                continue
            now = self.clock()
            due = now if due is None else due + seconds
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
