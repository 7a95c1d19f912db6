"""What each route promises: who may use it, what it takes, and what it answers.

A contract stands beside its route. The guard, the check of parameters and the document of the whole
interface are made of contracts, so that none of them can forget a route.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler

from streamridge.service.web.context import Asked

# What a token may be used for; "free" routes tell nothing of the service, and need none.
Scope = Literal["free", "read", "write", "admin"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Handler = Callable[[Asked], Awaitable[Response[Any]]]

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
NDJSON, PLAIN, HTML = "application/x-ndjson", "text/plain", "text/html"

# A schema that says no more than that there are bytes or text.
TEXT: dict[str, Any] = {"type": "string"}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a route; one that is not named is refused."""


@dataclass(frozen=True)
class Sent:
    """What a request carries: a type, several, or a schema for each media type, with examples."""

    kinds: Mapping[str, Any]
    examples: Mapping[str, Any] = field(default_factory=dict)
    required: bool = True


@dataclass(frozen=True)
class Answer:
    """What an answer carries: a type or a schema for each media type, or nothing at all."""

    words: str
    kinds: Mapping[str, Any] = field(default_factory=dict)
    example: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contract:
    """The promise of one route.

    Parameters
    ----------
    scope
        What a token must allow.
    topic
        Under which heading it is documented.
    answers
        What it answers by status, when all goes well.
    query
        Its parameters.
    sent
        The body it takes.
    problems
        Codes of refusals it may answer with, beside those that any route may.
    counts
        Whether requests count towards the limit of a token.
    """

    scope: Scope
    topic: str
    answers: Mapping[int, Answer]
    query: type[Query] = Query
    sent: Sent | None = None
    problems: tuple[str, ...] = ()
    counts: bool = True


def route(method: Method, path: str, contract: Contract) -> Callable[[Handler], HTTPRouteHandler]:
    """Return the decorator that makes a function the handler of a route."""
    return HTTPRouteHandler(path, http_method=method, opt={"contract": contract})


def contract_of(handler: Any) -> Contract | None:
    """Return the contract of a handler; None of those that the framework adds."""
    return handler.opt.get("contract")


def plain_path(path: str) -> str:
    """Return a path as documents write it, without the types of what it names.

    Examples
    --------
    >>> plain_path("/v1/sensors/{sensor:str}/gaps")
    '/v1/sensors/{sensor}/gaps'
    """
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)
