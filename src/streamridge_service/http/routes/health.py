"""Health: liveness, readiness, version and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from typing import Annotated, Literal

from litestar import Response
from msgspec import Meta
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0
from prometheus_client.registry import Collector

from streamridge_service.http.responses import PLAIN, json_response
from streamridge_service.http.routing import (
    TEXT,
    Context,
    HttpRequest,
    ResponseSpec,
    Routes,
    context_of,
    service_of,
)
from streamridge_service.plan import NEVER, SECOND
from streamridge_service.service.answers import Answer
from streamridge_service.service.ingest import OUTCOMES
from streamridge_service.service.service import VERSION
from streamridge_service.settings import bytes_of
from streamridge_service.workers.sensor_state import fingerprint

# The metrics in their order: type, help, and the name of the label if there is one.
METRICS: dict[str, tuple[Literal["counter", "gauge"], str, str | None]] = {
    "readings_accepted": ("counter", "Rows stored as sent.", None),
    "readings_duplicate": ("counter", "Rows already stored before.", None),
    "readings_late": ("counter", "Rows stored after their step was closed.", None),
    "readings_held": ("counter", "Rows ahead of the clock, held until their time.", None),
    "readings_replaced": ("counter", "Rows stored in place of another value.", None),
    "readings_implausible": ("counter", "Rows stored although outside the bounds.", None),
    "readings_refused": ("counter", "Rows not stored.", None),
    "readings_unlearned": ("counter", "Rows stored, but not learned due to an error.", None),
    "refits_refit": ("counter", "Refits on schedule.", None),
    "refits_start": ("counter", "Refits that rebuilt a forecaster from readings.", None),
    "refits_reset": ("counter", "Refits that an operator requested.", None),
    "refits_failed": ("counter", "Failed refits; the last fit stayed in use.", None),
    "refit_seconds": ("counter", "Time spent on refits.", None),
    "rebuilt": ("counter", "Damaged states that were rebuilt from readings.", None),
    "worker_restarts": ("counter", "Restarts of crashed workers.", None),
    "workers_crashing": ("gauge", "Workers that crashed several times in a minute.", None),
    "memory_bytes": ("gauge", "Bytes of memory that the processes hold.", "process"),
    "memory_limit_bytes": ("gauge", "Bytes of memory that all processes may hold.", None),
    "sensors_failed": ("gauge", "Sensors that cannot be loaded or processed.", None),
    "worker_messages_waiting": ("gauge", "Messages that wait for workers.", None),
    "refits_waiting": ("gauge", "Refits that wait or run.", None),
    "readings_behind": ("gauge", "Readings whose forecasts are not stored yet.", None),
    "sensors": ("gauge", "Sensors in each state.", "state"),
    "sensors_outside": ("gauge", "Sensors whose last reading was outside its interval.", None),
    "alerts_sent": ("counter", "Alerts that were delivered.", None),
    "alerts_failed": ("counter", "Alerts that could not be delivered.", None),
    "newest_reading_age_seconds": ("gauge", "Age of the newest reading of all sensors.", None),
    "ready": ("gauge", "Whether the service can store and forecast.", None),
    "commit_seconds": ("gauge", "Duration of the last commit of readings.", None),
    "data_bytes": ("gauge", "Bytes of the database.", None),
    "wal_bytes": ("gauge", "Bytes of the log not yet merged into the database.", None),
    "free_bytes": ("gauge", "Bytes that are free on the disk.", None),
    "days_left": ("gauge", "Days until the disk is full at the present pace.", None),
    "backup_age_seconds": ("gauge", "Age of the last scheduled backup.", None),
    "backups": ("counter", "Scheduled backups that were made and checked.", None),
    "backups_failed": ("counter", "Scheduled backups that failed.", None),
    "rows_pruned": ("counter", "Old readings and forecasts that were deleted.", None),
    "prunings_failed": ("counter", "Failed deletions of old readings and forecasts.", None),
    "clock_off_seconds": ("gauge", "How far the clock has jumped.", None),
    "readings_stored": ("counter", "The last arrival number.", None),
    "http_answers": ("counter", "Responses by class of status.", "status"),
    "http_seconds": ("counter", "Time spent on responses.", None),
    "connections": ("gauge", "Open connections.", None),
    "connections_closed": ("counter", "Connections refused, or closed to make room.", None),
    "streams": ("gauge", "Clients of the event stream.", None),
    "events_dropped": ("counter", "Events dropped for slow clients.", None),
    "info": ("gauge", "The version.", "version"),
}
REFIT_KINDS = ("refit", "start", "reset", "failed")

Figures = Mapping[str, float | Mapping[str, float] | None]

routes = Routes("health")


class Alive(Answer, frozen=True):
    """The process is running."""

    alive: bool


class Ready(Answer, frozen=True):
    """Whether the service can store readings and make forecasts; if not, why."""

    ready: bool
    state: Annotated[str, Meta(examples=["live"])]
    reasons: Annotated[list[str], Meta(examples=[[]])]


class Version(Answer, frozen=True):
    """The versions of the service, and of the libraries that its numbers depend on."""

    version: str
    interface: Annotated[str, Meta(examples=["v1"])]
    format: str
    fingerprint: str


@routes.add("GET", "/livez", scope="free")
async def livez(request: HttpRequest) -> Alive:
    """Return that the process is alive."""
    return Alive(True)


@routes.add("GET", "/readyz", responses={200: ResponseSpec.of(Ready), 503: ResponseSpec.of(Ready)})
async def readyz(request: HttpRequest) -> Response[bytes]:
    """Return whether the service can store readings and make forecasts; if not, why."""
    health = service_of(request).health
    is_ready = health.is_ready
    answer = Ready(is_ready, health.state, health.reasons_now())
    headers = None if is_ready else {"Retry-After": "5"}
    return json_response(answer, 200 if is_ready else 503, headers)


@routes.add("GET", "/version")
async def version(request: HttpRequest) -> Version:
    """Return the version, and the libraries on which the last bits of numbers depend."""
    facts = await service_of(request).read(lambda ledger: ledger.facts())
    return Version(VERSION, "v1", facts.get("format", ""), fingerprint())


@routes.add(
    "GET", "/metrics", responses={200: ResponseSpec("Metrics.", {PLAIN: TEXT})}, is_limited=False
)
async def metrics(request: HttpRequest) -> Response[bytes]:
    """Return the metrics of the service for Prometheus; no metric belongs to a single sensor."""
    context = context_of(request)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(_figures(context)))
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_1_0_0})


def _figures(context: Context) -> Figures:
    """Return the present value of every metric; None if it is unknown."""
    service, traffic, connections = context.service, context.traffic, context.connections
    pool, writer, health = service.forecasts.pool, service.writer, service.health
    rows, refits, newest = service.ingest.counts, service.forecasts.counts, service.statuses.newest
    return {
        **{f"readings_{name}": rows[name] for name in OUTCOMES},
        **{f"refits_{name}": refits[name] for name in REFIT_KINDS},
        "readings_unlearned": refits["unlearned"],
        "refit_seconds": refits["refit_milliseconds"] / 1000,
        "rebuilt": refits["rebuilt"],
        "worker_restarts": pool.restarts,
        "workers_crashing": pool.crashing,
        "memory_bytes": pool.memory,
        "memory_limit_bytes": bytes_of(service.settings.memory),
        "sensors_failed": pool.failed,
        "worker_messages_waiting": pool.waiting,
        "refits_waiting": pool.pending_refits,
        "readings_behind": writer.seq - pool.done,
        "readings_stored": writer.seq,
        "sensors": service.statuses.counts,
        "sensors_outside": service.statuses.outside_count,
        "alerts_sent": service.alerts.counts["sent"],
        "alerts_failed": service.alerts.counts["failed"],
        "newest_reading_age_seconds": None if newest == NEVER else (service.now - newest) / SECOND,
        "ready": health.is_ready,
        "commit_seconds": writer.commit_seconds,
        "data_bytes": health.disk.get("data"),
        "wal_bytes": health.disk.get("log"),
        "free_bytes": health.disk.get("free"),
        "days_left": health.days_left,
        "backup_age_seconds": service.backups.age,
        "backups": service.backups.completed,
        "backups_failed": service.backups.failed,
        "rows_pruned": service.retention.deleted,
        "prunings_failed": service.retention.failed,
        "clock_off_seconds": service.clock.jump / SECOND,
        "http_answers": {each: traffic.responses[each] for each in ("2xx", "3xx", "4xx", "5xx")},
        "http_seconds": traffic.seconds,
        "connections": len(connections),
        "connections_closed": connections.closed,
        "streams": len(service.bus.subscribers),
        "events_dropped": service.bus.dropped,
        "info": {VERSION: 1},
    }


class _Metrics(Collector):
    """Figures as metrics of Prometheus."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for name, (kind, meaning, label) in METRICS.items():
            family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            metric = family(f"streamridge_{name}", meaning, labels=[label] if label else [])
            value = self._figures[name]
            if isinstance(value, Mapping):
                for each, number in value.items():
                    metric.add_metric([each], number)
            else:
                metric.add_metric([], nan if value is None else value)
            yield metric
