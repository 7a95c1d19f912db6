"""The figures of a service, as Prometheus collects them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamridge.service import views
from streamridge.service.fleet.tracker import NEVER
from streamridge.service.plan import SECOND
from streamridge.service.service import Service
from streamridge.service.web.context import Traffic

# What is counted of rows, with its meaning.
ROWS = {
    "accepted": "stored as they came",
    "duplicate": "known already",
    "late": "stored later than their step stayed open",
    "held": "stored, and ahead of the clock",
    "replaced": "stored in place of another value",
    "implausible": "stored, and outside the bounds of their sensor",
    "refused": "not stored",
    "unlearned": "stored, and not learned from since that failed",
}
REFITS = {
    "refit": "made as planned",
    "start": "made anew from readings",
    "reset": "made anew as asked for",
    "failed": "that failed, so that the fit in force went on",
}


class ServiceCollector(Collector):
    """What is known of a service, read when it is asked for.

    Parameters
    ----------
    service
        The service.
    traffic
        How its requests were answered.
    """

    def __init__(self, service: Service, traffic: Traffic) -> None:
        self._service, self._traffic = service, traffic

    def collect(self) -> Iterator[Metric]:
        """Return all figures."""
        yield from self._work()
        yield from self._sensors()
        yield from self._storage()
        yield from self._clients()

    def _work(self) -> Iterator[Metric]:
        counts = self._service.counts
        for name, words in ROWS.items():
            yield _counter(f"readings_{name}", f"Rows {words}.", counts[name])
        for name, words in REFITS.items():
            yield _counter(f"refits_{name}", f"Refits {words}.", counts[name])
        seconds = counts["refit_milliseconds"] / 1000
        yield _counter("refit_seconds", "Time spent on refits.", seconds)
        yield _counter("rebuilt", "States that were damaged and made again.", counts["rebuilt"])
        restarts = self._service.fleet.restarts
        yield _counter("worker_restarts", "Workers that died and were started again.", restarts)
        waiting = self._service.fleet.waiting
        yield _gauge("worker_messages_waiting", "Messages that wait for workers.", waiting)
        fleet = self._service.fleet
        yield _gauge("refits_waiting", "Refits that wait, or are being made.", fleet.cuts)
        behind = self._service.writer.seq - fleet.done
        yield _gauge("readings_behind", "Readings whose forecasts are not stored yet.", behind)

    def _sensors(self) -> Iterator[Metric]:
        board = self._service.board
        states = GaugeMetricFamily(
            "streamridge_sensors", "Sensors in each state.", labels=["state"]
        )
        for state, count in board.counts.items():
            states.add_metric([state], count)
        yield states
        newest = board.newest
        age = float("nan") if newest == NEVER else (self._service.now - newest) / SECOND
        yield _gauge("newest_reading_age_seconds", "Age of the newest reading of all.", age)

    def _storage(self) -> Iterator[Metric]:
        service = self._service
        yield _gauge("ready", "Whether it can store and forecast.", service.is_ready)
        commit = service.writer.commit_seconds
        yield _gauge("commit_seconds", "How long the last commit of readings took.", commit)
        for name, words in {
            "data": "of the database",
            "log": "that are not folded into the database yet",
            "free": "that are free on the disk",
        }.items():
            size = service.size.get(name, float("nan"))
            called = "wal" if name == "log" else name
            yield _gauge(f"{called}_bytes", f"Bytes {words}.", size)
        left = service.days_left
        days = float("nan") if left is None else left
        yield _gauge("days_left", "Days until the disk is full, at the present pace.", days)
        yield _gauge(
            "clock_off_seconds", "How far the clock jumped.", service.clock.jumped / SECOND
        )
        yield _counter("readings_stored", "The last arrival number.", service.writer.seq)

    def _clients(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "streamridge_http_answers", "Answers by class of status.", labels=["status"]
        )
        for status in ("2xx", "3xx", "4xx", "5xx"):
            answers.add_metric([status], self._traffic.answers[status])
        yield answers
        yield _counter("http_seconds", "Time spent on answers.", self._traffic.seconds)
        hub = self._service.hub
        yield _gauge("streams", "Clients that listen to events.", len(hub.listeners))
        yield _counter("events_dropped", "Events that clients were too slow for.", hub.dropped)
        info = GaugeMetricFamily("streamridge_info", "The version.", labels=["version"])
        info.add_metric([views.VERSION], 1)
        yield info


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(f"streamridge_{name}", words, value=value)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"streamridge_{name}", words, value=value)
