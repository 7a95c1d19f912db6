"""The routes of InfluxDB that collectors use: its line protocol, for clients of versions 1 and 2.

Telegraf and Home Assistant work with their default outputs. Databases, buckets and organizations
are ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import parse_qsl

from litestar import Response
from msgspec import UNSET, Meta, UnsetType

from streamridge_service.bodies.fields import brief
from streamridge_service.bodies.line_protocol import decode_lines
from streamridge_service.http.requests import LargeBodies, Query, body_of, given
from streamridge_service.http.responses import PLAIN, json_response, problem_response
from streamridge_service.http.routes.readings import PROBLEMS, refusal, store
from streamridge_service.http.routing import (
    TEXT,
    BodySpec,
    HttpRequest,
    ResponseSpec,
    Routes,
    service_of,
)
from streamridge_service.intake import IngestOptions, Receipt
from streamridge_service.problems import Problem
from streamridge_service.service.answers import Answer

LINES_EXAMPLE = "flow,road=A2,lane=1 cars=412i 1781338500000000000\n"
FORM = "application/x-www-form-urlencoded"
# The most bytes of a query.
MAX_QUERY = 10_000
# The version whose interface clients of version 1 find here.
INFLUX_VERSION = "1.8.0-streamridge"
# Units of times by the names that clients of version 1 use.
PRECISIONS = {"n": "ns", "u": "us"}
CREATE = re.compile(r"\s*CREATE\s+DATABASE\s+\S.*", re.IGNORECASE | re.DOTALL)
SHOW = re.compile(r"\s*SHOW\s+DATABASES\s*;?\s*", re.IGNORECASE)

routes = Routes("readings", "write")

Ignored = Annotated[str, Meta(max_length=200, description="Accepted and ignored.")]
User = Annotated[
    str, Meta(max_length=200, description="A user name; the token, if there is no password.")
]
Password = Annotated[str, Meta(max_length=200, description="A token, if no header has one.")]


class WriteQuery(Query, frozen=True):
    """The parameters that InfluxDB's clients send."""

    precision: Annotated[Literal["ns", "us", "ms", "s"], Meta(description="The unit of times.")] = (
        "ns"
    )
    bucket: Ignored | UnsetType = UNSET
    org: Ignored | UnsetType = UNSET
    orgID: Ignored | UnsetType = UNSET  # noqa: N815, the name that clients send


class Version1Query(Query, frozen=True):
    """Parameters of every request of a client of version 1."""

    u: User | UnsetType = UNSET
    p: Password | UnsetType = UNSET
    db: Ignored | UnsetType = UNSET
    rp: Ignored | UnsetType = UNSET


class Write1Query(Version1Query, frozen=True):
    """The parameters of a write."""

    precision: Annotated[
        Literal["n", "ns", "u", "us", "ms", "s", "m", "h"], Meta(description="The unit of times.")
    ] = "ns"
    consistency: Ignored | UnsetType = UNSET


class InfluxQlQuery(Version1Query, frozen=True):
    """The parameters of a query."""

    q: (
        Annotated[
            str,
            Meta(
                max_length=MAX_QUERY,
                description="CREATE DATABASE or SHOW DATABASES.",
                examples=["SHOW DATABASES"],
            ),
        ]
        | UnsetType
    ) = UNSET
    epoch: Ignored | UnsetType = UNSET
    pretty: Ignored | UnsetType = UNSET
    chunked: Ignored | UnsetType = UNSET
    chunk_size: Ignored | UnsetType = UNSET
    params: Ignored | UnsetType = UNSET


class QueryResult(Answer, frozen=True):
    """A table of one query."""

    name: Annotated[str, Meta(examples=["databases"])]
    columns: Annotated[list[str], Meta(examples=[["name"]])]
    values: Annotated[list[list[str]], Meta(examples=[[["streamridge"]]])]


class StatementResult(Answer, frozen=True):
    """The result of one statement."""

    statement_id: int
    series: list[QueryResult] | UnsetType = UNSET


class QueryResults(Answer, frozen=True):
    """The results of a query."""

    results: list[StatementResult]


class InfluxHealth(Answer, frozen=True):
    """Whether points can be written."""

    name: Annotated[str, Meta(examples=["streamridge"])]
    message: Annotated[str, Meta(examples=["ready for queries and writes"])]
    status: Literal["pass", "fail"]
    version: Annotated[str, Meta(examples=[INFLUX_VERSION])]
    checks: Annotated[list[str], Meta(examples=[[]])]


@routes.add(
    "POST",
    "/api/v2/write",
    body=BodySpec({PLAIN: TEXT}, {PLAIN: LINES_EXAMPLE}, required=False),
    problems=PROBLEMS,
    is_limited=False,
)
async def write_lines(request: HttpRequest, query: WriteQuery) -> Response[bytes] | None:
    """Store readings in line protocol, as clients of InfluxDB 2 send them.

    Each numeric field is a reading of its own sensor, named after measurement, tags and field. A
    token may be sent as `Authorization: Token ...`, as these clients do.
    """
    receipt = await _store_lines(request, query.precision)
    return refusal(receipt) if receipt.refused else None


@routes.add(
    "POST",
    "/write",
    body=BodySpec({PLAIN: TEXT}, {PLAIN: LINES_EXAMPLE}, required=False),
    problems=(*PROBLEMS, "sr-partial-write"),
    is_limited=False,
    takes_passwords=True,
)
async def write_lines_1(request: HttpRequest, query: Write1Query) -> Response[bytes] | None:
    """Store readings in line protocol, as clients of InfluxDB 1 send them.

    A token may be the password of `Authorization: Basic ...`, or the parameter `p`.
    """
    receipt = await _store_lines(request, PRECISIONS.get(query.precision, query.precision))
    if not receipt.refused:
        return None
    first = receipt.refusals[0]
    reason = f"{receipt.refused} rows were refused. Line {first.line}: {first.detail}"
    # Clients recognize these words: they drop such points instead of sending them for ever.
    error = f"partial write: {reason} dropped={receipt.refused}"
    return problem_response(Problem("sr-partial-write", reason, error=error))


async def _store_lines(request: HttpRequest, precision: str) -> Receipt:
    now = service_of(request).clock.now()
    return await store(request, lambda body: decode_lines(body, precision, now), IngestOptions())


@routes.add("GET", "/query", problems=("sr-unsupported-query",), takes_passwords=True)
async def query_1(request: HttpRequest, query: InfluxQlQuery) -> QueryResults:
    """Answer the queries with which clients of InfluxDB 1 begin."""
    return _results(given(query.q) or "")


@routes.add(
    "POST",
    "/query",
    body=BodySpec({FORM: TEXT}, {FORM: "q=CREATE+DATABASE+telegraf"}, required=False),
    responses={200: ResponseSpec.of(QueryResults)},
    problems=("sr-unsupported-query", "sr-unreadable", "sr-too-large", "sr-slow-body"),
    takes_passwords=True,
)
async def post_query_1(request: HttpRequest, query: InfluxQlQuery) -> QueryResults:
    """Answer the same queries, sent in a form."""
    with LargeBodies().body() as size:
        body = await body_of(request, size, MAX_QUERY)
    form = dict(parse_qsl(body.decode(errors="replace"), max_num_fields=MAX_QUERY))
    return _results(form.get("q") or given(query.q) or "")


def _results(text: str) -> QueryResults:
    if CREATE.fullmatch(text):
        return QueryResults([StatementResult(0)])
    if SHOW.fullmatch(text):
        table = QueryResult("databases", ["name"], [["streamridge"]])
        return QueryResults([StatementResult(0, [table])])
    reason = f"q must be CREATE DATABASE or SHOW DATABASES, got {brief(text)}."
    raise Problem("sr-unsupported-query", reason, error=reason)


@routes.add(
    "GET",
    "/ping",
    scope="free",
    responses={
        204: ResponseSpec(
            "The service is alive.", headers={"X-Influxdb-Version": "The version of the interface."}
        )
    },
    any_query=True,
)
async def ping(request: HttpRequest) -> Response[bytes]:
    """Return that the process is alive, as InfluxDB does."""
    headers = {"X-Influxdb-Version": INFLUX_VERSION, "X-Influxdb-Build": "OSS"}
    return Response(b"", status_code=204, headers=headers)


@routes.add(
    "GET",
    "/health",
    scope="free",
    responses={200: ResponseSpec.of(InfluxHealth), 503: ResponseSpec.of(InfluxHealth)},
    any_query=True,
)
async def influx_health(request: HttpRequest) -> Response[bytes]:
    """Return whether points can be written, as InfluxDB does; /readyz has the reasons."""
    is_ready = service_of(request).health.is_ready
    message = "ready for queries and writes" if is_ready else "not ready"
    status: Literal["pass", "fail"] = "pass" if is_ready else "fail"
    answer = InfluxHealth("streamridge", message, status, INFLUX_VERSION, [])
    headers = None if is_ready else {"Retry-After": "5"}
    return json_response(answer, 200 if is_ready else 503, headers)
