"""Pages: the live page, the documentation of the routes, and the catalogue of problems."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from html import escape
from importlib.resources import files
from pathlib import PurePath
from typing import Any, Literal

from litestar import Response
from msgspec import UNSET, UnsetType

from streamridge_service.http.requests import Query
from streamridge_service.http.responses import HTML, JSON, format_of, json_response
from streamridge_service.http.routing import TEXT, HttpRequest, ResponseSpec, Routes, context_of
from streamridge_service.problems import CATALOGUE, RETRY_AFTER, Problem
from streamridge_service.service.answers import Answer

TYPES = {".html": HTML, ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The page and the only file of another project in it; docs/decisions.md explains why.
FOLDERS = ("page", "page/vendor/uplot")
# A browser may keep a copy, and must ask whether it is still valid.
CACHED = {"Cache-Control": "no-cache"}
FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>streamridge: {title}</title>
<link rel="icon" href="/page/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/page/reference.css">
</head>
<body>
<header><h1>{title}</h1>
<nav><a href="/">Live page</a> <a href="/docs">Routes</a> <a href="/problems">Error codes</a>
<a href="/openapi.json">OpenAPI</a></nav></header>
<main>
{body}
</main>
</body>
</html>
"""

Part = Mapping[str, Any]

routes = Routes("pages", "free")


class ProblemsQuery(Query, frozen=True):
    """The format of the response."""

    format: Literal["json", "html"] | UnsetType = UNSET


class CatalogueEntry(Answer, frozen=True):
    """A code of problems."""

    code: str
    status: int
    title: str
    remedy: str
    retry: bool


class Catalogue(Answer, frozen=True):
    """All codes of problems."""

    items: list[CatalogueEntry]


@dataclass(frozen=True)
class PageFile:
    """A file of the live page."""

    content: bytes
    compressed: bytes
    media_type: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Return all files of the live page, by name; no other file can be requested."""
    found = {}
    package = files("streamridge_service")
    for file in [file for folder in FOLDERS for file in (package / folder).iterdir()]:
        kind = TYPES.get(PurePath(file.name).suffix)
        if kind is not None and file.is_file():
            content = file.read_bytes()
            tag = f'W/"{blake2b(content, digest_size=12).hexdigest()}"'
            found[file.name] = PageFile(content, gzip.compress(content), kind, tag)
    return found


def _file_response(request: HttpRequest, file: PageFile) -> Response[bytes]:
    """Return a file, or 304 if the client's copy is still valid."""
    headers = {**CACHED, "ETag": file.tag, "Vary": "Accept-Encoding"}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, media_type=file.media_type, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.content, media_type=file.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(file.compressed, media_type=file.media_type, headers=headers)


def _html_response(html: str) -> Response[bytes]:
    return Response(html.encode(), media_type=HTML, headers=CACHED)


@routes.add(
    "GET", "/", responses={200: ResponseSpec("The live page.", {HTML: TEXT})}, any_query=True
)
async def page(request: HttpRequest) -> Response[bytes]:
    """Return the live page; it asks for a token if one is needed."""
    return _file_response(request, page_files()["index.html"])


@routes.add(
    "GET",
    "/page/{file:str}",
    responses={
        200: ResponseSpec("A file of the page.", dict.fromkeys(TYPES.values(), TEXT)),
        304: ResponseSpec("The copy is still valid."),
    },
    problems=("sr-not-found",),
    any_query=True,
)
async def page_file(request: HttpRequest) -> Response[bytes]:
    """Return a file of the live page."""
    file = page_files().get(request.path_params["file"])
    if file is None:
        raise Problem("sr-not-found", "The live page has no such file.")
    return _file_response(request, file)


@routes.add(
    "GET",
    "/openapi.json",
    responses={200: ResponseSpec("This document.", {JSON: {"type": "object"}})},
)
async def openapi(request: HttpRequest) -> Response[bytes]:
    """Return the OpenAPI 3.1 document."""
    return json_response(context_of(request).document, headers=CACHED)


@routes.add("GET", "/docs", responses={200: ResponseSpec("The documentation.", {HTML: TEXT})})
async def docs(request: HttpRequest) -> Response[bytes]:
    """Return the documentation of the routes."""
    return _html_response(docs_page(context_of(request).document))


@routes.add(
    "GET",
    "/problems",
    responses={200: ResponseSpec("The catalogue.", {HTML: TEXT, JSON: Catalogue})},
    problems=("sr-not-acceptable",),
)
async def problems(request: HttpRequest, query: ProblemsQuery) -> Response[bytes]:
    """Return the catalogue of the codes with which requests and rows are refused."""
    if format_of(request, query.format, (HTML, "json")) == "json":
        items = [
            CatalogueEntry(code, each.status, each.title, each.remedy, each.status in RETRY_AFTER)
            for code, each in CATALOGUE.items()
        ]
        return json_response(Catalogue(items), headers=CACHED)
    return _html_response(problems_page())


def docs_page(document: Part) -> str:
    """Return the page about all routes, from the OpenAPI document."""
    topics: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            topics.setdefault(operation["tags"][0], []).append(_route(method, path, operation))
    sections = [
        f'<section><h2 id="{_anchor(topic)}">{escape(topic)}</h2>{"".join(routes)}</section>'
        for topic, routes in topics.items()
    ]
    links = " ".join(f'<a href="#{_anchor(topic)}">{escape(topic)}</a>' for topic in topics)
    intro = f"<p>{escape(document['info']['description'])}</p><p>{links}</p>"
    return FRAME.format(title="Routes", body=intro + "".join(sections))


def problems_page() -> str:
    """Return the page about all codes of problems."""
    rows = "".join(
        f'<tr id="{escape(code)}"><td><code>{escape(code)}</code></td>'
        f"<td>{entry.status}</td><td>{escape(entry.title)}.</td><td>{escape(entry.remedy)}</td>"
        f"<td>{'yes' if entry.status in RETRY_AFTER else 'no'}</td></tr>"
        for code, entry in CATALOGUE.items()
    )
    head = "".join(f"<th>{name}</th>" for name in ("code", "status", "meaning", "remedy", "retry?"))
    return FRAME.format(
        title="Error codes",
        body=f"<p>Every problem has one of these codes. The codes do not change.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>",
    )


def _route(method: str, path: str, operation: Part) -> str:
    body = operation.get("requestBody", {}).get("content", {})
    parts = [
        f"<summary><code><b>{method.upper()}</b> {escape(path)}</code> "
        f"<span>{escape(operation['summary'])}</span></summary>",
        f"<p>{escape(operation.get('description', ''))}</p>",
        f"<p>Scope: <b>{escape(operation['x-scope'])}</b></p>",
        _parameters(operation.get("parameters", [])),
        "".join(["<h3>Body</h3>", *map(_content, body.items())] if body else []),
        _responses(operation["responses"]),
    ]
    return f"<details>{''.join(parts)}</details>"


def _parameters(parameters: Iterable[Part]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td>"
        f"<td>{escape(each.get('description', ''))}</td>"
        f"<td><code>{escape(_brief(each['schema']))}</code></td></tr>"
        for each in parameters
        if "schema" in each
    )
    return f"<h3>Parameters</h3><table><tbody>{rows}</tbody></table>" if rows else ""


def _responses(responses: Mapping[str, Part]) -> str:
    parts = [
        f"<p><b>{status}</b> {escape(each.get('description', ''))}</p>"
        + "".join(map(_content, each.get("content", {}).items()))
        for status, each in responses.items()
        if "$ref" not in each
    ]
    return "<h3>Responses</h3>" + "".join(parts)


def _content(pair: tuple[str, Part]) -> str:
    kind, part = pair
    example = part.get("example")
    if example is None:
        return f"<p><code>{escape(kind)}</code></p>"
    text = example if isinstance(example, str) else json.dumps(example, indent=2)
    return f"<p><code>{escape(kind)}</code></p><pre>{escape(text)}</pre>"


def _brief(schema: Part) -> str:
    """Return the values of a parameter in a few words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    limits = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    kind = str(schema.get("format") or schema.get("type", ""))
    return f"{kind} {' to '.join(limits)}".strip()


def _anchor(topic: str) -> str:
    return escape(topic.replace(" ", "-"))
