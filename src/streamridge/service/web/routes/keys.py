"""Tokens: made, listed and revoked while the service runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, cast

import msgspec
from litestar import Response
from msgspec import Meta

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Token
from streamridge.service.problems import Problem
from streamridge.service.web import tokens
from streamridge.service.web.answers import empty_answer, json_answer
from streamridge.service.web.context import Asked, context_of, service_of
from streamridge.service.web.contracts import JSON, Answer, Contract, Query, Sent, route
from streamridge.service.web.queries import moment_of, query_of
from streamridge.service.web.receiving import said
from streamridge.service.web.shapes import NewToken, Time, Tokens

EXAMPLE = {
    "id": 3,
    "name": "telegraf",
    "scopes": ["write"],
    "created": "2026-06-13T08:15:00Z",
    "expires": None,
    "revoked": None,
    "valid": True,
}


class TokenWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token that is asked for."""

    name: Annotated[str, Meta(min_length=1, max_length=tokens.LONGEST_NAME)]
    scopes: Annotated[list[Literal["read", "write", "admin"]], Meta(min_length=1, max_length=3)]
    expires: Time | None = None


@route(
    "GET",
    "/v1/tokens",
    Contract(
        "admin", "tokens", {200: Answer("All of them.", {JSON: Tokens}, {"items": [EXAMPLE]})}
    ),
)
async def list_tokens(request: Asked) -> Response[bytes]:
    """List tokens; what lets their holders in is not known here either."""
    query_of(request, Query)
    service = service_of(request)
    known = await service.read(lambda ledger: ledger.tokens())
    now = service.clock.now()
    return json_answer({"items": [tokens.token_item(token, now) for token in known]})


@route(
    "POST",
    "/v1/tokens",
    Contract(
        "admin",
        "tokens",
        {
            201: Answer(
                "The token, whose text is shown this once.",
                {JSON: NewToken},
                {**EXAMPLE, "token": "sr_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"},
            )
        },
        sent=Sent({JSON: TokenWish}, {JSON: {"name": "telegraf", "scopes": ["write"]}}),
        problems=(
            "sr-bad-field", "sr-unreadable", "sr-unsupported-type", "sr-too-large", "sr-slow-body",
            "sr-disk-full",
        ),
    ),
)  # fmt: skip
async def create_token(request: Asked) -> Response[bytes]:
    """Make a token. The first one must have the scope admin: from then on, all need a token."""
    query_of(request, Query)
    context, wish = context_of(request), await said(request, TokenWish)
    service = context.service
    if context.keyring.is_empty and "admin" not in wish.scopes:
        raise Problem("sr-bad-field", "scopes of the first token must have admin among them.")
    expires = None if wish.expires is None else moment_of(wish.expires, "expires", "sr-bad-field")
    now = service.clock.now()

    def store(ledger: Ledger) -> tuple[Token, str]:
        try:
            return tokens.create(ledger, wish.name, wish.scopes, now=now, expires=expires)
        except InvalidInputError as error:
            raise Problem("sr-bad-field", error.reason) from None

    made = cast(tuple[Token, str], await asyncio.wrap_future(service.writer.do(store)))
    await context.keyring.renew()
    token, text = made
    return json_answer({**tokens.token_item(token, now), "token": text}, 201)


@route(
    "DELETE",
    "/v1/tokens/{number:int}",
    Contract(
        "admin",
        "tokens",
        {204: Answer("The token is revoked.")},
        problems=("sr-unknown-token", "sr-disk-full"),
    ),
)
async def revoke_token(request: Asked) -> Response[None]:
    """Revoke a token: it lets nobody in any more."""
    query_of(request, Query)
    context, number = context_of(request), request.path_params["number"]
    service = context.service
    known = await service.read(lambda ledger: {token.id for token in ledger.tokens()})
    if number not in known:
        raise Problem("sr-unknown-token", f"There is no token {number}.")
    now = service.clock.now()
    store = service.writer.do(lambda ledger: tokens.revoke(ledger, number, now=now))
    await asyncio.wrap_future(store)
    await context.keyring.renew()
    return empty_answer()


HANDLERS = [list_tokens, create_token, revoke_token]
