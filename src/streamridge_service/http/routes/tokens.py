"""Tokens: created, listed and revoked while the service runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Response
from msgspec import Meta

from streamridge.errors import InvalidInputError
from streamridge_service.http import tokens
from streamridge_service.http.requests import time_of
from streamridge_service.http.responses import json_response
from streamridge_service.http.routing import (
    HttpRequest,
    ResponseSpec,
    Routes,
    context_of,
    service_of,
)
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Token
from streamridge_service.problems import Problem
from streamridge_service.service.answers import Answer, AnyTime

routes = Routes("tokens", "admin")


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token to create."""

    name: Annotated[str, Meta(min_length=1, max_length=tokens.MAX_NAME, examples=["telegraf"])]
    scopes: Annotated[
        list[Literal["read", "write", "admin"]],
        Meta(min_length=1, max_length=3, examples=[["write"]]),
    ]
    expires: AnyTime | None = None


class TokenList(Answer, frozen=True):
    """All tokens."""

    items: list[tokens.TokenItem]


class NewToken(tokens.TokenItem, frozen=True):
    """A new token, with its text, which is shown only once."""

    token: Annotated[str, Meta(examples=["sr_" + 43 * "X"])]


@routes.add("GET", "/v1/tokens")
async def list_tokens(request: HttpRequest) -> TokenList:
    """List tokens, without their texts, which are not stored."""
    service = service_of(request)
    known = await service.read(lambda ledger: ledger.tokens())
    now = service.clock.now()
    return TokenList([tokens.token_item(token, now) for token in known])


@routes.add("POST", "/v1/tokens", responses={201: ResponseSpec.of(NewToken)})
async def create_token(request: HttpRequest, body: TokenRequest) -> Response[bytes]:
    """Create a token. The first one needs the scope admin: after it, every request needs one."""
    context = context_of(request)
    if context.tokens.is_empty and "admin" not in body.scopes:
        raise Problem("sr-bad-field", "scopes of the first token must include admin.")
    expires = None if body.expires is None else time_of(body.expires, "expires", "sr-bad-field")
    now = context.service.clock.now()

    def store(ledger: Ledger) -> tuple[Token, str]:
        try:
            return tokens.create(ledger, body.name, body.scopes, now=now, expires=expires)
        except InvalidInputError as error:
            raise Problem("sr-bad-field", error.reason) from None

    token, text = await context.service.writer.run(store)
    await context.tokens.refresh()
    return json_response(NewToken(**tokens.token_dict(token, now), token=text), 201)


@routes.add("DELETE", "/v1/tokens/{number:int}", problems=("sr-unknown-token",))
async def revoke_token(request: HttpRequest) -> None:
    """Revoke a token: requests with it are refused from now on."""
    context, number = context_of(request), request.path_params["number"]
    service = context.service
    known = await service.read(lambda ledger: {token.id for token in ledger.tokens()})
    if number not in known:
        raise Problem("sr-unknown-token", f"There is no token {number}.")
    now = service.clock.now()
    await service.writer.run(lambda ledger: tokens.revoke(ledger, number, now=now))
    await context.tokens.refresh()
