"""The application: all routes, the guard before them, and the door before both."""

from __future__ import annotations

from litestar import Litestar
from litestar.datastructures import State

from streamridge.service.service import Service
from streamridge.service.web.answers import answer_to_error
from streamridge.service.web.context import Context
from streamridge.service.web.door import Door
from streamridge.service.web.guarding import Guard
from streamridge.service.web.keyring import Keyring
from streamridge.service.web.listing import Listing
from streamridge.service.web.openapi import document_of
from streamridge.service.web.routes import (
    actions,
    forecasts,
    gaps,
    keys,
    line_protocol,
    live,
    lookback,
    pages,
    readings,
    sensors,
    watch,
)

TOPICS = (
    readings, line_protocol, sensors, forecasts, lookback, gaps, actions, live, watch, keys, pages,
)  # fmt: skip


def create_app(service: Service) -> Door:
    """Return the application of a service that is open.

    Parameters
    ----------
    service
        The service.
    """
    keyring = Keyring(service.ledger.tokens(), lambda: service.read(lambda ledger: ledger.tokens()))
    context = Context(service, keyring, Listing(service.board))
    app = Litestar(
        [handler for topic in TOPICS for handler in topic.HANDLERS],
        guards=[Guard(context)],
        exception_handlers={Exception: answer_to_error},
        state=State({"context": context}),
        openapi_config=None,
        logging_config=None,
        request_max_body_size=None,  # bodies are counted in `receiving`
    )
    context.document |= document_of(app)
    return Door(app, service.settings, context.traffic)
