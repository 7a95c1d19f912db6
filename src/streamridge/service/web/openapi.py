"""The document of the interface, OpenAPI 3.1, made of the contracts of its routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from inspect import getdoc
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from streamridge.service.problems import CATALOGUE, RETRY_AFTER
from streamridge.service.rows import NAME
from streamridge.service.views import VERSION
from streamridge.service.web.answers import PROBLEM
from streamridge.service.web.contracts import Answer, Contract, Sent, contract_of, plain_path
from streamridge.service.web.examples import PROBLEM as PROBLEM_EXAMPLE
from streamridge.service.web.queries import properties_of
from streamridge.service.web.shapes import ProblemShape

DESCRIPTION = (
    "Readings in, forecasts out. Every time has an offset from UTC; answers are in UTC. Every "
    "refusal is application/problem+json with a code of the catalogue at /problems."
)
# The order of a path's methods; paths stay in theirs.
ORDER = ("GET", "PUT", "POST", "DELETE")
REF = "#/components/schemas/{name}"
# What any route may answer, and any that asks for a token.
ANYWHERE = ("sr-bad-parameter", "sr-unreadable", "sr-bad-host", "sr-internal", "sr-stopping")
GUARDED = ("sr-no-token", "sr-forbidden", "sr-rate-limited", "sr-storage-away")
PATH_SCHEMAS = {
    "sensor": {"type": "string", "pattern": NAME},
    "number": {"type": "integer", "minimum": 1, "maximum": 2**53},
    "file": {"type": "string", "pattern": r"^[a-z][a-z.-]{0,63}$"},
}
PATH_EXAMPLES = {"sensor": "A2-35.1", "number": 3, "file": "page.js"}

Json = dict[str, Any]
# Schemas of types, by the identity of the type: some cannot be told apart by what they equal.
Known = dict[int, Json]


def document_of(app: Litestar) -> Json:
    """Return the document of all routes of an application."""
    routes = list(routes_of(app))
    kinds = {id(kind): kind for _, _, _, each in routes for kind in _kinds(each)}
    kinds[id(ProblemShape)] = ProblemShape
    schemas, components = msgspec.json.schema_components(kinds.values(), ref_template=REF)
    known = dict(zip(kinds, schemas, strict=True))
    components["Problem"] = components.pop("ProblemShape")
    paths: Json = {path: {} for path, *_ in routes}
    for path, method, handler, contract in sorted(routes, key=lambda each: ORDER.index(each[1])):
        paths[path][method.lower()] = _operation(path, handler, contract, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamridge", "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": _problem_responses(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def routes_of(app: Litestar) -> Iterator[tuple[str, str, HTTPRouteHandler, Contract]]:
    """Yield path, method, handler and contract of every route."""
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            contract = contract_of(handler)
            if contract is not None:
                for method in sorted(handler.http_methods):
                    yield plain_path(route.path_format), method, handler, contract


def _kinds(contract: Contract) -> Iterator[Any]:
    """Yield the types that a contract names."""
    carried: list[Answer | Sent] = [*contract.answers.values()]
    carried += [contract.sent] if contract.sent else []
    for each in carried:
        for kind in each.kinds.values():
            several = kind if isinstance(kind, tuple) else (kind,)
            yield from (one for one in several if not isinstance(one, dict))


def _operation(path: str, handler: HTTPRouteHandler, contract: Contract, known: Known) -> Json:
    summary, _, description = (getdoc(handler.fn) or "").partition("\n\n")
    operation: Json = {
        "operationId": handler.handler_name,
        "tags": [contract.topic],
        "summary": " ".join(summary.split()),
        "description": " ".join(description.split()),
        "x-scope": contract.scope,
        "parameters": [*_path_parameters(path), *_query_parameters(contract)],
        "responses": _responses(contract, known),
        "security": [] if contract.scope == "free" else [{"token": []}],
    }
    if contract.sent is not None:
        content = _content(contract.sent.kinds, known)
        for kind, example in contract.sent.examples.items():
            content[kind]["example"] = example
        operation["requestBody"] = {"required": contract.sent.required, "content": content}
    return operation


def _path_parameters(path: str) -> Iterator[Json]:
    for name in re.findall(r"\{(\w+)\}", path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": PATH_SCHEMAS[name],
            "example": PATH_EXAMPLES[name],
        }


def _query_parameters(contract: Contract) -> Iterator[Json]:
    for name, schema in properties_of(contract.query).items():
        told = {key: value for key, value in schema.items() if key != "description"}
        yield {
            "name": name,
            "in": "query",
            "description": schema.get("description", ""),
            "schema": told,
        }


def _responses(contract: Contract, known: Known) -> Json:
    responses: Json = {}
    for status, answer in contract.answers.items():
        told: Json = {"description": answer.words}
        if answer.kinds:
            told["content"] = _content(answer.kinds, known)
        if answer.example is not None:
            next(iter(told["content"].values()))["example"] = answer.example
        if answer.headers:
            told["headers"] = {
                name: {"description": words, "schema": {"type": "string"}}
                for name, words in answer.headers.items()
            }
        responses[str(status)] = told
    codes = (*contract.problems, *ANYWHERE, *(() if contract.scope == "free" else GUARDED))
    for status in sorted({CATALOGUE[code].status for code in codes}):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
    return responses


def _content(kinds: Any, known: Known) -> Json:
    return {media: {"schema": _schema(kind, known)} for media, kind in kinds.items()}


def _schema(kind: Any, known: Known) -> Json:
    if isinstance(kind, tuple):
        return {"anyOf": [_schema(each, known) for each in kind]}
    return kind if isinstance(kind, dict) else known[id(kind)]


def _problem_responses() -> Json:
    """Return the refusals by status, each with the codes that it stands for."""
    by_status: dict[int, list[str]] = {}
    for code, entry in CATALOGUE.items():
        by_status.setdefault(entry.status, []).append(code)
    return {
        f"Problem{status}": {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}.",
            "content": {
                PROBLEM: {
                    "schema": {"$ref": REF.format(name="Problem")},
                    "example": {
                        **PROBLEM_EXAMPLE,
                        "type": f"/problems#{codes[0]}",
                        "code": codes[0],
                        "title": CATALOGUE[codes[0]].title,
                        "status": status,
                        "detail": CATALOGUE[codes[0]].title,
                        "remedy": CATALOGUE[codes[0]].remedy,
                        "retry": status in RETRY_AFTER,
                    },
                }
            },
        }
        for status, codes in by_status.items()
    }
