"""The OpenAPI 3.1 document, generated from the specifications of the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from inspect import getdoc
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from streamridge_service.http.requests import Query, properties_of
from streamridge_service.http.responses import JSON, PROBLEM, ProblemAnswer, problem_answer
from streamridge_service.http.routing import BodySpec, ResponseSpec, RouteSpec, plain_path, spec_of
from streamridge_service.limits import SENSOR_NAME
from streamridge_service.problems import CATALOGUE, Problem
from streamridge_service.service.service import VERSION

DESCRIPTION = (
    "Readings in, forecasts out. Every time has an offset from UTC; responses are in UTC. Every "
    "problem is application/problem+json with a code of the catalogue at /problems."
)
# The order of a path's methods; paths keep the order of the routes.
ORDER = ("GET", "PUT", "POST", "DELETE")
REF = "#/components/schemas/{name}"
# Problems of every route, and of every route that needs a token.
ALL_PROBLEMS = (
    "sr-bad-parameter", "sr-unreadable", "sr-slow-head", "sr-large-head", "sr-bad-host",
    "sr-cross-site", "sr-internal", "sr-too-many-connections", "sr-stopping",
)  # fmt: skip
TOKEN_PROBLEMS = ("sr-no-token", "sr-forbidden", "sr-rate-limited", "sr-storage-away")
PATH_SCHEMAS = {
    "sensor": {"type": "string", "pattern": SENSOR_NAME},
    "number": {"type": "integer", "minimum": 1, "maximum": 2**53},
    "file": {"type": "string", "pattern": r"^[a-z][a-z.-]{0,63}$"},
}
PATH_EXAMPLES = {"sensor": "A2-35.1", "number": 3, "file": "page.js"}
SIMPLE_EXAMPLES = {"integer": 0, "number": 0.0, "boolean": True, "string": "", "null": None}

Json = dict[str, Any]


class Schemas:
    """The JSON schemas of all types that routes name."""

    def __init__(self, kinds: Iterable[Any]) -> None:
        # By identity: some types cannot be hashed.
        unique = {id(kind): kind for kind in kinds}
        schemas, self.components = msgspec.json.schema_components(unique.values(), ref_template=REF)
        self._known = dict(zip(unique, schemas, strict=True))

    def schema(self, kind: Any) -> Json:
        """Return the schema of a type; a schema is returned unchanged."""
        if isinstance(kind, tuple):
            return {"anyOf": [self.schema(each) for each in kind]}
        return kind if isinstance(kind, dict) else self._known[id(kind)]

    def content(self, kinds: Mapping[str, Any]) -> Json:
        """Return the schema for each media type; JSON of a known type has an example, too."""
        content: Json = {}
        for media, kind in kinds.items():
            content[media] = {"schema": self.schema(kind)}
            if media == JSON and not isinstance(kind, dict):
                content[media]["example"] = self.example(content[media]["schema"])
        return content

    def example(self, schema: Json) -> Any:
        """Return an example of a schema, made of the examples of its fields."""
        if "$ref" in schema:
            return self.example(self.components[schema["$ref"].rpartition("/")[2]])
        if "examples" in schema:
            return schema["examples"][0]
        if "anyOf" in schema:
            return self._any_example(schema["anyOf"])
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "object":
            fields, required = schema.get("properties", {}), schema.get("required", [])
            return {
                name: self.example(each)
                for name, each in fields.items()
                if name in required or _has_example(each)
            }
        if schema.get("type") == "array":
            return [self.example(schema["items"])] if schema.get("items") else []
        return SIMPLE_EXAMPLES.get(schema.get("type", "null"))

    def _any_example(self, choices: list[Json]) -> Any:
        """Return the example of the first choice that has one; None if that is a choice."""
        for choice in choices:
            if "$ref" in choice or _has_example(choice):
                return self.example(choice)
        return None if {"type": "null"} in choices else self.example(choices[0])


def _has_example(schema: Json) -> bool:
    return "examples" in schema or any(map(_has_example, schema.get("anyOf", ())))


def document_of(app: Litestar) -> Json:
    """Return the OpenAPI document of an application."""
    routes = list(routes_of(app))
    schemas = Schemas([ProblemAnswer, *(kind for *_, spec in routes for kind in _kinds(spec))])
    schemas.components["Problem"] = schemas.components.pop(ProblemAnswer.__name__)
    paths: Json = {path: {} for path, *_ in routes}
    for path, method, handler, spec in sorted(routes, key=lambda each: ORDER.index(each[1])):
        paths[path][method.lower()] = _operation(path, handler, spec, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "streamridge", "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": _problem_responses(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def routes_of(app: Litestar) -> Iterator[tuple[str, str, HTTPRouteHandler, RouteSpec]]:
    """Yield path, method, handler and specification of every route."""
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            spec = spec_of(handler)
            if spec is not None:
                for method in sorted(handler.http_methods):
                    yield plain_path(route.path_format), method, handler, spec


def _kinds(spec: RouteSpec) -> Iterator[Any]:
    """Yield the types that a specification names."""
    parts: list[ResponseSpec | BodySpec] = [*spec.responses.values()]
    parts += [spec.body] if spec.body else []
    for part in parts:
        for kind in part.kinds.values():
            several = kind if isinstance(kind, tuple) else (kind,)
            yield from (each for each in several if not isinstance(each, dict))


def _operation(path: str, handler: HTTPRouteHandler, spec: RouteSpec, schemas: Schemas) -> Json:
    summary, _, description = (getdoc(handler.fn) or "").partition("\n\n")
    operation: Json = {
        "operationId": handler.handler_name,
        "tags": [spec.topic],
        "summary": " ".join(summary.split()),
        "description": " ".join(description.split()),
        "x-scope": spec.scope,
        "parameters": [*_path_parameters(path), *_query_parameters(spec)],
        "responses": _responses(spec, schemas),
        "security": [] if spec.scope == "free" else [{"token": []}],
    }
    if spec.body is not None:
        content = schemas.content(spec.body.kinds)
        for media, example in spec.body.examples.items():
            content[media]["example"] = example
        operation["requestBody"] = {"required": spec.body.required, "content": content}
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


def _query_parameters(spec: RouteSpec) -> Iterator[Json]:
    for name, schema in properties_of(spec.query or Query).items():
        yield {
            "name": name,
            "in": "query",
            "description": schema.get("description", ""),
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }


def _responses(spec: RouteSpec, schemas: Schemas) -> Json:
    responses: Json = {}
    for status, response in spec.responses.items():
        part: Json = {"description": response.description}
        if response.kinds:
            part["content"] = schemas.content(response.kinds)
        if response.headers:
            part["headers"] = {
                name: {"description": description, "schema": {"type": "string"}}
                for name, description in response.headers.items()
            }
        responses[str(status)] = part
    codes = (*spec.problems, *ALL_PROBLEMS, *(() if spec.scope == "free" else TOKEN_PROBLEMS))
    for status in sorted({CATALOGUE[code].status for code in codes}):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
    return responses


def _problem_responses() -> Json:
    """Return the problems by status, each with its codes and an example."""
    by_status: dict[int, list[str]] = {}
    for code, entry in CATALOGUE.items():
        by_status.setdefault(entry.status, []).append(code)
    return {
        f"Problem{status}": {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}.",
            "content": {
                PROBLEM: {
                    "schema": {"$ref": REF.format(name="Problem")},
                    "example": msgspec.to_builtins(
                        problem_answer(Problem(codes[0], CATALOGUE[codes[0]].title))
                    ),
                }
            },
        }
        for status, codes in by_status.items()
    }
