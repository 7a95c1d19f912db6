"""Routes: how they are declared, and the context that their handlers share.

The types of a handler's parameters and of its result specify its route. Authorization, the parsing
of requests and the OpenAPI document follow from this specification.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_type_hints

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from streamridge_service.bodies.fields import brief
from streamridge_service.http.connections import Connections
from streamridge_service.http.pagination import SensorPages
from streamridge_service.http.requests import LargeBodies, Query, json_body, parse_query
from streamridge_service.http.responses import CSV, JSON, PARQUET, json_response
from streamridge_service.http.tokens import TokenCache
from streamridge_service.problems import Problem
from streamridge_service.service.sensor_status import SensorStatus
from streamridge_service.service.service import Service

# The scope that a token needs; "free" routes need no token and reveal nothing about sensors.
Scope = Literal["free", "read", "write", "admin"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
HttpRequest = Request[Any, Any, State]
Handler = Callable[..., Awaitable[object]]

# The schema of any text or bytes.
TEXT: dict[str, Any] = {"type": "string"}
# Problems of every route that takes a JSON body.
BODY_PROBLEMS = (
    "sr-bad-field", "sr-unreadable", "sr-unsupported-type", "sr-too-large", "sr-slow-body",
)  # fmt: skip


@dataclass(frozen=True)
class BodySpec:
    """The body of a request: a type, several types, or a schema for each media type.

    Examples of JSON bodies follow from their types; others can be given here.
    """

    kinds: Mapping[str, Any]
    examples: Mapping[str, Any] = field(default_factory=dict)
    required: bool = True


@dataclass(frozen=True)
class ResponseSpec:
    """A response: a description, a type or schema for each media type, and its headers."""

    description: str
    kinds: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(answer: type[msgspec.Struct], **headers: str) -> ResponseSpec:
        """Return the specification of a JSON response, described by the answer's docstring."""
        description = (answer.__doc__ or "").partition("\n")[0]
        return ResponseSpec(description, {JSON: answer}, headers)


@dataclass(frozen=True)
class RouteSpec:
    """The specification of one route."""

    scope: Scope
    topic: str  # the heading in the documentation
    responses: Mapping[int, ResponseSpec]  # successful responses, by status
    query: type[Query] | None = Query  # None if any parameters are allowed
    body: BodySpec | None = None
    problems: tuple[str, ...] = ()  # codes, besides the codes of all routes
    is_limited: bool = True  # whether requests count towards the rate limit of a token
    takes_passwords: bool = False  # whether a token may be a password, as clients of InfluxDB 1 do


class Routes:
    """The routes of one topic, which is their heading in the documentation."""

    def __init__(self, topic: str, scope: Scope = "read") -> None:
        self._topic, self._scope = topic, scope
        self.handlers: list[HTTPRouteHandler] = []

    def add(
        self,
        method: Method,
        path: str,
        *,
        scope: Scope | None = None,
        responses: Mapping[int, ResponseSpec] | None = None,
        body: BodySpec | None = None,
        tables: bool = False,
        problems: tuple[str, ...] = (),
        any_query: bool = False,
        is_limited: bool = True,
        takes_passwords: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that makes a function the handler of a route.

        The function takes the request and, by name, a `query` and a JSON `body` of annotated types.
        It returns an answer, None for an empty response, or a response. With `tables`, the answer
        is offered as CSV and Parquet, too. The other options replace what follows from the
        annotations, the path and the topic.
        """

        def decorate(function: Handler) -> Handler:
            hints = get_type_hints(function)
            json_kind = hints.get("body")
            codes = [*problems]
            codes += ["sr-disk-full"] if method != "GET" else ()
            codes += ["sr-unknown-sensor"] if "{sensor" in path and method != "PUT" else ()
            codes += BODY_PROBLEMS if json_kind else ()
            codes += ["sr-not-acceptable"] if tables else ()
            spec = RouteSpec(
                scope or self._scope,
                self._topic,
                responses or _responses(hints["return"], tables=tables),
                None if any_query else hints.get("query", Query),
                BodySpec({JSON: json_kind}) if json_kind else body,
                tuple(codes),
                is_limited,
                takes_passwords,
            )
            route = HTTPRouteHandler(path, http_method=method, status_code=200, opt={"spec": spec})
            self.handlers.append(route(_handler(function, spec, hints)))
            return function

        return decorate


def _responses(result: Any, *, tables: bool) -> dict[int, ResponseSpec]:
    """Return the responses that follow from the annotated result of a handler."""
    kinds = [each for each in get_args(result) or (result,) if isinstance(each, type)]
    answers = [each for each in kinds if issubclass(each, msgspec.Struct)]
    if not answers:
        return {204: ResponseSpec("Done; the response is empty.")}
    spec = ResponseSpec.of(answers[0])
    if not tables:
        return {200: spec}
    headers = {"Streamridge-Cursor": "The cursor of the next page, if there is one."}
    is_page = "cursor" in answers[0].__struct_fields__
    kinds_of_tables = {**spec.kinds, CSV: TEXT, PARQUET: TEXT}
    return {200: ResponseSpec(spec.description, kinds_of_tables, headers if is_page else {})}


def _handler(function: Handler, spec: RouteSpec, hints: Mapping[str, Any]) -> Handler:
    """Return the handler that parses a request, calls a function, and encodes its answer."""

    async def handler(request: HttpRequest) -> Response[Any]:
        arguments: dict[str, Any] = {}
        if spec.query is not None:
            query = parse_query(request.scope["query_string"], spec.query)
            arguments |= {"query": query} if "query" in hints else {}
        if "body" in hints:
            arguments["body"] = await json_body(request, hints["body"])
        result = await function(request, **arguments)
        if isinstance(result, Response):
            return result
        return Response(None, status_code=204) if result is None else json_response(result)

    handler.__name__ = handler.__qualname__ = function.__name__
    handler.__doc__ = function.__doc__
    return handler


def spec_of(handler: Any) -> RouteSpec | None:
    """Return the specification of a handler; None for handlers that the framework adds."""
    return handler.opt.get("spec")


def plain_path(path: str) -> str:
    """Return a path as OpenAPI writes it, without the types of its parameters.

    Examples
    --------
    >>> plain_path("/v1/sensors/{sensor:str}/gaps")
    '/v1/sensors/{sensor}/gaps'
    """
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


@dataclass
class Traffic:
    """Responses by class of status, and the seconds spent on them."""

    responses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass
class Context:
    """The objects that handlers share."""

    service: Service
    tokens: TokenCache
    pages: SensorPages
    connections: Connections
    traffic: Traffic = field(default_factory=Traffic)
    large_bodies: LargeBodies = field(default_factory=LargeBodies)
    # The OpenAPI document; complete once all routes are known.
    document: dict[str, Any] = field(default_factory=dict)


def context_of(request: HttpRequest) -> Context:
    """Return the objects that handlers share."""
    context: Context = request.app.state["context"]
    return context


def service_of(request: HttpRequest) -> Service:
    """Return the service."""
    return context_of(request).service


def status_of(request: HttpRequest, *, active: bool = False) -> SensorStatus:
    """Return the status of the sensor in the path; with `active`, refuse an archived one."""
    name = request.path_params["sensor"]
    status = service_of(request).statuses.find(name)
    if status is None:
        raise Problem("sr-unknown-sensor", f"There is no sensor {brief(name)}.")
    if active and status.is_archived:
        raise Problem("sr-archived", f"Sensor {name} was archived.")
    return status
