"""The one place that decides who may do what, and how often."""

from __future__ import annotations

from typing import Any

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException

from streamridge.service.ledger.records import Token
from streamridge.service.problems import Problem
from streamridge.service.web.context import Context
from streamridge.service.web.contracts import Contract, Scope, contract_of, plain_path

# Wrong tokens that one address may try in a minute.
MOST_GUESSES = 10
# How tokens are announced: as OAuth does, and as InfluxDB's clients do.
SCHEMES = ("bearer", "token")

Connection = ASGIConnection[Any, Any, Any, Any]


class Guard:
    """What every request to a route passes before anything else.

    Parameters
    ----------
    context
        The service, and its tokens.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._guesses = RateLimitItemPerMinute(MOST_GUESSES)
        self._requests = RateLimitItemPerMinute(context.service.settings.requests_a_minute)

    async def __call__(self, connection: Connection, handler: Any) -> None:
        """Let a request pass, or raise the `Problem` that keeps it out."""
        contract = contract_of(handler)
        if contract is None:  # the framework's own, for OPTIONS: there is nothing to negotiate
            raise MethodNotAllowedException(headers={"allow": self._methods(connection)})
        if contract.scope == "free":
            return
        await self._context.keyring.fresh()
        if self._context.keyring.is_empty:
            self._slow_down(contract, _address(connection))
            return
        token = self._token(connection)
        self._slow_down(contract, f"token {token.id}")
        require_scope(token, contract.scope)

    def _methods(self, connection: Connection) -> str:
        """Return the methods of the path of a request."""
        path = plain_path(connection.scope["path_template"])
        return ", ".join(method.upper() for method in self._context.document["paths"][path])

    def _token(self, connection: Connection) -> Token:
        """Return the token of a request; a wrong one counts as a guess of its address."""
        text = _sent_token(connection)
        if text is None:
            raise Problem("sr-no-token", "There is no token in the header Authorization.")
        token = self._context.keyring.holder(text, self._context.service.clock.now())
        if token is None:
            if not self._limiter.hit(self._guesses, "guess", _address(connection)):
                raise Problem("sr-rate-limited", "There were too many wrong tokens from here.")
            raise Problem("sr-no-token", "The token is wrong, has expired, or was revoked.")
        return token

    def _slow_down(self, contract: Contract, who: str) -> None:
        """Refuse requests that are too many; readings come as often as they must."""
        settings = self._context.service.settings
        if not contract.counts or (self._context.keyring.is_empty and settings.is_local):
            return
        if not self._limiter.hit(self._requests, "request", who):
            most = settings.requests_a_minute
            raise Problem("sr-rate-limited", f"There were more than {most} requests in a minute.")


def require_scope(token: Token, scope: Scope) -> None:
    """Refuse a token that does not allow what is asked for; "admin" allows all."""
    if scope not in token.scopes and "admin" not in token.scopes:
        raise Problem("sr-forbidden", f"This needs a token with the scope {scope}.")


def _sent_token(connection: Connection) -> str | None:
    scheme, _, text = connection.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() in SCHEMES and text.strip() else None


def _address(connection: Connection) -> str:
    return connection.client.host if connection.client else "unknown"
