"""Alerts: messages about sensors in trouble, posted to a web address or given to a command.

A sensor in trouble fires one alert, and another one when the trouble is over. Alerts of about the
same time share a message, so that the failure of a whole line is one message.
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Annotated, Any, Literal
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
import structlog
from msgspec import Meta

from streamridge.errors import counted
from streamridge_service.service.answers import Answer, EventItem, Name, Time
from streamridge_service.service.sensor_status import STATES

# Seconds that alerts wait for others, and that a delivery may take.
GATHER, DELIVERY_TIMEOUT = 1.0, 30.0
# Seconds before each attempt to deliver a message.
ATTEMPTS = (0.0, 2.0, 10.0)
# Alerts of one message; further ones are only counted.
MAX_ALERTS = 1000

AlertKind = Literal["silent", "degraded", "outside"]
STATE_ALERTS: dict[str, AlertKind] = {"silent": "silent", "degraded": "degraded"}
Deliver = Callable[[bytes], None]

log = structlog.get_logger("streamridge_service")


class Alert(Answer, frozen=True):
    """A sensor in trouble, or the end of its trouble."""

    status: Literal["firing", "resolved"]
    kind: AlertKind
    sensor: Name
    time: Time
    reason: Annotated[str, Meta(examples=["no reading for 25 hours"])]


class AlertMessage(Answer, frozen=True):
    """The alerts of one message, and the number of further ones that it does not hold."""

    alerts: list[Alert]
    omitted: int


class Alerts:
    """Turns events into alerts, and delivers them. Only the event loop uses it.

    `on_failure` is called with a reason if a message could not be delivered.
    """

    def __init__(self, destinations: Sequence[Deliver], on_failure: Callable[[str], None]) -> None:
        self._destinations, self._on_failure = destinations, on_failure
        self._firing: dict[tuple[str, str], AlertKind] = {}  # by sensor and topic
        self._waiting: list[Alert] = []
        self._omitted = 0
        self._wake = asyncio.Event()
        self.counts: Counter[str] = Counter()  # alerts that were sent, and that failed

    def notice(self, event: EventItem) -> None:
        """Queue the alerts that follow from an event."""
        if event.sensor is None or not self._destinations:
            return
        if event.kind in STATES:
            self._change(event, "state", STATE_ALERTS.get(event.kind))
        elif event.kind in ("outside", "inside"):
            self._change(event, "band", "outside" if event.kind == "outside" else None)

    def _change(self, event: EventItem, topic: str, kind: AlertKind | None) -> None:
        """End the sensor's alert on a topic if there is one, and begin another if there is one."""
        assert event.sensor is not None
        before = self._firing.pop((event.sensor, topic), None)
        if kind is not None:
            self._firing[event.sensor, topic] = kind
        if before == kind:
            return
        if before is not None:
            self._queue(Alert("resolved", before, event.sensor, event.time, event.reason))
        if kind is not None:
            self._queue(Alert("firing", kind, event.sensor, event.time, event.reason))

    def _queue(self, alert: Alert) -> None:
        if len(self._waiting) < MAX_ALERTS:
            self._waiting.append(alert)
        else:
            self._omitted += 1
        self._wake.set()

    async def run(self) -> None:
        """Deliver alerts until this is cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(GATHER)
            self._wake.clear()
            message = AlertMessage(self._waiting, self._omitted)
            self._waiting, self._omitted = [], 0
            body = msgspec.json.encode(message)
            size = len(message.alerts) + message.omitted
            results = await asyncio.gather(*(_delivered(each, body) for each in self._destinations))
            for reason in results:
                self.counts["sent" if reason is None else "failed"] += size
                if reason is not None:
                    self._on_failure(f"{counted(size, 'alert')} not delivered: {reason}")


async def _delivered(deliver: Deliver, body: bytes) -> str | None:
    """Deliver a message, with a few attempts; return the reason if all of them fail."""
    for attempt, pause in zip(count(1), ATTEMPTS, strict=False):
        await asyncio.sleep(pause)
        try:
            await asyncio.to_thread(deliver, body)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reason = _reason(error)
            log.warning("an alert was not delivered", attempt=attempt, reason=reason)
        else:
            return None
    return reason


def _reason(error: Exception) -> str:
    """Return the reason of a failure, without the address or the command, which may be secret."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"the command exited with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return "the command took too long"
    if isinstance(error, HTTPError):
        return f"the answer was {error.code}"
    reason = error.reason if isinstance(error, URLError) else error
    return str(getattr(reason, "strerror", None) or type(error).__name__)


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, so that alerts go only to the address that was configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def destinations_of(url: str | None, command: str | None) -> list[Deliver]:
    """Return the functions that deliver a message to a web address and to a command."""
    found: list[Deliver] = []
    if url is not None:
        found.append(partial(_post, url))
    if command is not None:
        found.append(partial(_run, shlex.split(command)))
    return found


def _post(url: str, body: bytes) -> None:
    request = Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with build_opener(_NoRedirect).open(request, timeout=DELIVERY_TIMEOUT):
        pass


def _run(command: Sequence[str], body: bytes) -> None:
    subprocess.run(
        command,
        input=body,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=DELIVERY_TIMEOUT,
        check=True,
    )
