"""For those who watch the service: is it alive, is it ready, how does it do."""

from __future__ import annotations

from litestar import Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0

from streamridge.service import views
from streamridge.service.fleet.making import fingerprint
from streamridge.service.service import Service
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, context_of, service_of
from streamridge.service.web.contracts import JSON, PLAIN, TEXT, Answer, Contract, Query, route
from streamridge.service.web.metrics import ServiceCollector
from streamridge.service.web.queries import query_of
from streamridge.service.web.shapes import Alive, Ready, Version


@route(
    "GET",
    "/livez",
    Contract("free", "watching", {200: Answer("It is.", {JSON: Alive}, {"alive": True})}),
)
async def livez(request: Asked) -> Response[bytes]:
    """Tell whether the process is alive."""
    query_of(request, Query)
    return json_answer({"alive": True})


@route(
    "GET",
    "/readyz",
    Contract(
        "read",
        "watching",
        {
            200: Answer("It is.", {JSON: Ready}, {"ready": True, "state": "live", "reasons": []}),
            503: Answer("It is not, and why.", {JSON: Ready}),
        },
    ),
)
async def readyz(request: Asked) -> Response[bytes]:
    """Tell whether readings can be stored and forecasts be made, and if not, why."""
    query_of(request, Query)
    service = service_of(request)
    told = {"ready": service.is_ready, "state": service.state, "reasons": _reasons(service)}
    headers = None if service.is_ready else {"Retry-After": "5"}
    return json_answer(told, 200 if service.is_ready else 503, headers)


def _reasons(service: Service) -> list[str]:
    """Return what keeps the service from being ready, or live, in words."""
    reasons = list(service.reasons)
    if service.state in ("starting", "stopping"):
        reasons.insert(0, f"the service is {service.state}")
    trouble = service.writer.trouble
    if trouble and not any(trouble in reason for reason in reasons):
        reasons.append(f"writes fail: {trouble}")
    return reasons


@route(
    "GET",
    "/version",
    Contract("read", "watching", {200: Answer("What runs here.", {JSON: Version})}),
)
async def version(request: Asked) -> Response[bytes]:
    """Tell what runs here, and what its numbers depend on in their last bits."""
    query_of(request, Query)
    facts = await service_of(request).read(lambda ledger: ledger.facts())
    return json_answer(
        {
            "version": views.VERSION,
            "interface": "v1",
            "format": facts.get("format", ""),
            "fingerprint": fingerprint(),
        }
    )


@route(
    "GET",
    "/metrics",
    Contract("read", "watching", {200: Answer("The figures.", {PLAIN: TEXT})}, counts=False),
)
async def metrics(request: Asked) -> Response[bytes]:
    """Return the figures of the service, for Prometheus; none of them is of a single sensor."""
    query_of(request, Query)
    context = context_of(request)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceCollector(context.service, context.traffic))
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_1_0_0})


HANDLERS = [livez, readyz, version, metrics]
