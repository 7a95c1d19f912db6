"""Authorization: which requests a token allows, and how many per minute."""

from __future__ import annotations

from base64 import b64decode
from typing import Any
from urllib.parse import parse_qsl

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException

from streamridge_service.http.routing import Context, RouteSpec, plain_path, spec_of
from streamridge_service.ledger.records import Token
from streamridge_service.problems import Problem

# Wrong tokens that one address may send per minute.
MAX_GUESSES = 10
# Schemes of the header: of OAuth, and of InfluxDB's clients.
SCHEMES = ("bearer", "token")

Connection = ASGIConnection[Any, Any, Any, Any]


class Authorization:
    """The check that every request to a route passes first."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._guesses = RateLimitItemPerMinute(MAX_GUESSES)
        self._requests = RateLimitItemPerMinute(context.service.settings.requests_a_minute)

    async def __call__(self, connection: Connection, handler: Any) -> None:
        """Return if a request is allowed; otherwise raise the `Problem` to answer with."""
        spec = spec_of(handler)
        if spec is None:  # the framework's own handler for OPTIONS
            methods = self._context.document["paths"][plain_path(connection.scope["path_template"])]
            raise MethodNotAllowedException(headers={"allow": ", ".join(methods).upper()})
        if spec.scope == "free":
            return
        await self._context.tokens.ensure_fresh()
        if self._context.tokens.is_empty:
            self._limit_rate(spec, _address(connection))
            return
        token = self._token(connection, spec)
        self._limit_rate(spec, f"token {token.id}")
        if spec.scope not in token.scopes and "admin" not in token.scopes:
            raise Problem("sr-forbidden", f"This needs a token with the scope {spec.scope}.")

    def _token(self, connection: Connection, spec: RouteSpec) -> Token:
        """Return the token of a request; a wrong one counts as a guess of its address."""
        scheme, _, text = connection.headers.get("authorization", "").partition(" ")
        text = text.strip() if scheme.lower() in SCHEMES else ""
        if spec.takes_passwords:
            text = _password(connection, scheme.lower()) or text
        if not text:
            raise Problem("sr-no-token", "There is no token in the header Authorization.")
        token = self._context.tokens.find(text, self._context.service.clock.now())
        if token is None:
            if not self._limiter.hit(self._guesses, "guess", _address(connection)):
                raise Problem("sr-rate-limited", "There were too many wrong tokens from here.")
            raise Problem("sr-no-token", "The token is wrong, has expired, or was revoked.")
        return token

    def _limit_rate(self, spec: RouteSpec, client: str) -> None:
        """Refuse requests above the limit; posted readings are not limited."""
        settings = self._context.service.settings
        if not spec.is_limited or (self._context.tokens.is_empty and settings.is_local):
            return
        if not self._limiter.hit(self._requests, "request", client):
            limit = settings.requests_a_minute
            raise Problem("sr-rate-limited", f"There were more than {limit} requests in a minute.")


def _password(connection: Connection, scheme: str) -> str:
    """Return the password of a client of InfluxDB 1; its user name, if it sends no password.

    It is in the header, as `Basic` or as `Token user:password`, or in the parameters `u` and `p`.
    """
    text = connection.headers.get("authorization", "").partition(" ")[2].strip()
    if scheme == "basic":
        try:
            text = b64decode(text, validate=True).decode()
        except ValueError:
            return ""
    elif scheme != "token":
        query = dict(parse_qsl(connection.scope["query_string"].decode("latin-1")))
        text = f"{query.get('u', '')}:{query.get('p', '')}"
    user, _, password = text.partition(":")
    return password or user


def _address(connection: Connection) -> str:
    return connection.client.host if connection.client else "unknown"
