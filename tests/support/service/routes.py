"""All routes of the application, with a request for each."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection

from streamridge_service.http.openapi import routes_of
from tests.support.waiting import LIMIT

# Values of path parameters, and bodies by route.
KNOWN = {"sensor": "north", "number": "999", "file": "page.js"}
BODIES = {
    ("POST", "/v1/readings"): [],
    ("PUT", "/v1/sensors/{sensor}"): {},
    ("POST", "/v1/sensors/{sensor}/set"): {"values": {"regularization": 2.0}},
    ("POST", "/v1/sensors/{sensor}/freeze"): {"names": ["regularization"]},
    ("POST", "/v1/sensors/{sensor}/unfreeze"): {"names": ["regularization"]},
    ("POST", "/v1/sensors/{sensor}/exclude"): {
        "start": "2025-01-01T00:00:00Z",
        "end": "2025-01-02T00:00:00Z",
    },
    ("POST", "/v1/tokens"): {"name": "made", "scopes": ["read"]},
}


@dataclass(frozen=True)
class Route:
    """A route, and a request to it."""

    method: str
    path: str
    scope: str

    def __str__(self):
        return f"{self.method} {self.path}"

    def filled(self, **names):
        """Return the path with its parameters filled in."""
        return re.sub(r"\{(\w+)\}", lambda match: {**KNOWN, **names}[match[1]], self.path)

    def ask(self, served, token=None, address="127.0.0.1", headers=None, **names):
        """Return status, headers and body of a response; a stream has an empty body."""
        body = BODIES.get((self.method, self.path))
        sent = {} if body is None else {"Content-Type": "application/json"}
        sent |= {"Authorization": f"Bearer {token}"} if token else {}
        connection = HTTPConnection(
            "127.0.0.1", served.port, timeout=LIMIT, source_address=(address, 0)
        )
        with closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(self.method, self.filled(**names), content, sent | (headers or {}))
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            is_stream = "text/event-stream" in told.get("content-type", "")
            return answer.status, told, b"" if is_stream else answer.read()


def all_routes(served):
    """Return all routes of a service."""
    found = routes_of(served.app.app)
    return [Route(method, path, contract.scope) for path, method, _, contract in found]
