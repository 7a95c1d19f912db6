"""The application: all routes behind authorization and the middleware."""

from __future__ import annotations

from litestar import Litestar
from litestar.datastructures import State

from streamridge_service.http.authorization import Authorization
from streamridge_service.http.connections import Connections, default_limit
from streamridge_service.http.middleware import Middleware
from streamridge_service.http.openapi import document_of
from streamridge_service.http.pagination import SensorPages
from streamridge_service.http.responses import error_response
from streamridge_service.http.routes import (
    accuracy,
    actions,
    events,
    forecasts,
    gaps,
    health,
    history,
    influx,
    pages,
    readings,
    sensors,
    tokens,
)
from streamridge_service.http.routes.pages import page_files
from streamridge_service.http.routing import Context
from streamridge_service.http.tokens import TokenCache
from streamridge_service.service.service import Service
from streamridge_service.settings import ServiceSettings

# The order of the documentation.
HANDLERS = [
    handler
    for module in (
        readings, influx, sensors, forecasts, history, accuracy, gaps, actions, events, health,
        tokens, pages,
    )
    for handler in module.routes.handlers
]  # fmt: skip


def create_app(service: Service) -> Middleware:
    """Return the application of a service that is open."""
    tokens = TokenCache(service.ledger.tokens(), lambda: service.read(lambda x: x.tokens()))
    connections = connections_of(service.settings)
    pages = SensorPages(service.statuses, lambda: service.now, service.queries.work)
    context = Context(service, tokens, pages, connections)
    app = Litestar(
        HANDLERS,
        guards=[Authorization(context)],
        exception_handlers={Exception: error_response},
        state=State({"context": context}),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,  # `requests` limits bodies
    )
    context.document |= document_of(app)
    page_files()  # read and compressed now: no request opens a file
    return Middleware(app, service.settings, context.traffic, context.connections)


def connections_of(settings: ServiceSettings) -> Connections:
    """Return the limits of connections: those of the settings, as far as open files allow them."""
    most = min(settings.max_connections or default_limit(), default_limit())
    of_one = settings.max_connections_per_address or max(most // 2, 1)
    return Connections(most, of_one, settings.trusted_proxies)
