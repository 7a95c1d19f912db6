"""Readings on their way into a service: in time order, at any speed.

What is sent twice does no harm: the service recognizes it. So a feed that broke off begins again
where the service has nothing newer, and a request whose answer was lost is sent again.
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
from streamridge.service.client import Client, RefusedError
from streamridge.service.stock import Reading, Stock

# Rows of a request, where steps need not come one by one; and the most.
MANY, MOST = 10_000, 50_000
# So many refused rows are told.
MOST_TOLD = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
COUNTED = ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused")


@dataclass(frozen=True)
class Pace:
    """How fast readings are sent; without either figure, as fast as the service takes them.

    Parameters
    ----------
    times_real
        So many times as fast as they were measured.
    steps_a_second
        So many steps in a second.
    """

    times_real: float | None = None
    steps_a_second: float | None = None

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
                "speed must be max, a number of times real time such as 60, or of steps a second "
                f"such as 2/s, got {text!r}."
            )
        number = float(match[1])
        return cls(steps_a_second=number) if match[2] == "/s" else cls(times_real=number)

    def seconds(self, step: float) -> float:
        """Return the seconds between steps of so many seconds; zero for no wait."""
        if self.steps_a_second is not None:
            return 1.0 / self.steps_a_second
        return 0.0 if self.times_real is None else step / self.times_real


@dataclass
class Outcome:
    """What became of the rows that were sent.

    Parameters
    ----------
    counts
        How many rows were accepted, duplicate, refused and so on.
    codes
        How many rows were refused, by the code of the reason, as far as the service tells.
    told
        The first refusals in words.
    """

    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def add(self, rows: Sequence[Reading], said: Mapping[str, Any]) -> None:
        """Count what a service said of some rows."""
        self.counts.update({name: int(said.get(name, 0)) for name in COUNTED})
        for refusal in said.get("refusals", ()):
            self.codes[refusal["code"]] += 1
            if len(self.told) < MOST_TOLD:
                self.told.append(_told(rows, refusal))


def _told(rows: Sequence[Reading], refusal: Mapping[str, Any]) -> str:
    """Return a refusal in words; its line is that within the request."""
    sensor, moment, _ = rows[int(refusal["line"]) - 1]
    return f"{sensor} at {iso(moment)}: {refusal['detail']} ({refusal['code']})"


@dataclass(frozen=True)
class Feed:
    """A way into a service.

    Parameters
    ----------
    client
        The connection.
    backfill
        Whether readings are many of the past at once, of which no forecasts are made.
    pace
        How fast steps are sent.
    sleep, clock
        For tests.
    """

    client: Client
    backfill: bool = False
    pace: Pace = Pace()
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def step_seconds(self) -> int | None:
        """Return the step of the service, in seconds; None without the right to ask."""
        summary = self._asked("/v1/summary")
        return None if summary is None else int(summary["step_seconds"])

    def newest(self) -> dict[str, int]:
        """Return the time of the newest reading of each sensor that the service knows.

        Without the right to ask it is unknown; then all is sent, and what is there is recognized.
        """
        newest: dict[str, int] = {}
        query = "/v1/sensors?sort=id&limit=10000"
        page = self._asked(query)
        while page is not None:
            known = [item for item in page["items"] if item["newest"] is not None]
            newest |= {item["id"]: moment_of(item["newest"]) for item in known}
            cursor = page["cursor"]
            page = None if cursor is None else self._asked(f"{query}&cursor={cursor}")
        return newest

    def _asked(self, path: str) -> Any:
        try:
            return self.client.get(path)
        except RefusedError as error:
            if error.answer.status != 403:
                raise
            return None

    def send(self, stock: Stock, newest: Mapping[str, int], outcome: Outcome) -> Iterator[int]:
        """Send all that is newer; give the number of rows after each request.

        Parameters
        ----------
        stock
            What to send.
        newest
            The newest reading of each sensor that is there already; a backfill sends all.
        outcome
            Where what became of rows is counted.
        """
        parts = stock.sensors() if self.backfill else self._paced(stock, newest)
        waits = not self.backfill and self.pace.seconds(stock.step / SECOND) > 0
        for rows in _grouped(parts, 1 if waits else MANY):
            self._deliver(rows, outcome)
            yield len(rows)

    def _paced(self, stock: Stock, newest: Mapping[str, int]) -> Iterator[list[Reading]]:
        """Give steps, each when it is time for it; those without a reading as well, once begun."""
        seconds, due = self.pace.seconds(stock.step / SECOND), None
        for rows in stock.steps(newest):
            if due is None and not rows:
                continue
            due = self.clock() if due is None else due + seconds
            if due > self.clock():
                self.sleep(due - self.clock())
            yield rows

    def _deliver(self, rows: Sequence[Reading], outcome: Outcome) -> None:
        """Send rows, in two parts if they are too many for one request."""
        answer = self.client.insist(
            "POST",
            f"/v1/readings?mode={'backfill' if self.backfill else 'live'}",
            packed(rows),
            Content_Type="application/x-ndjson",
            Content_Encoding="gzip",
        )
        if answer.status == 413 and len(rows) > 1:
            half = len(rows) // 2
            self._deliver(rows[:half], outcome)
            self._deliver(rows[half:], outcome)
        elif answer.status == 200 or "refusals" in answer.said:
            outcome.add(rows, answer.said)
        else:
            raise RefusedError(answer)


def _grouped(parts: Iterable[list[Reading]], least: int) -> Iterator[list[Reading]]:
    """Give readings in groups of whole parts, with so many or more; but in pieces, if very many.

    Examples
    --------
    >>> row = ("a", 0, 1.0)
    >>> [len(group) for group in _grouped([[row] * 3, [], [row] * 3, [row] * 9, [row]], 5)]
    [6, 9, 1]
    """
    group: list[Reading] = []
    for part in parts:
        group += part
        if len(group) >= least:
            yield from _pieces(group)
            group = []
    yield from _pieces(group)


def _pieces(rows: list[Reading]) -> Iterator[list[Reading]]:
    for begin in range(0, len(rows), MOST):
        yield rows[begin : begin + MOST]


def packed(rows: Iterable[Reading]) -> bytes:
    """Return readings as lines of JSON, packed."""
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


def moment_of(text: str) -> int:
    """Return a time with an offset in microseconds since 1970."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
