"""Pages for people: the live page, the documentation of the interface, the catalogue of codes."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import Response
from msgspec import UNSET, UnsetType

from streamridge.service.problems import CATALOGUE, RETRY_AFTER, Problem
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, context_of
from streamridge.service.web.contracts import HTML, JSON, TEXT, Answer, Contract, Query, route
from streamridge.service.web.files import TYPES, PageFile, page_files
from streamridge.service.web.queries import query_of
from streamridge.service.web.reference.pages import docs_page, problems_page
from streamridge.service.web.shapes import Catalogue
from streamridge.service.web.tables import format_of

# A copy may be kept, and is asked for again only if it has changed.
KEPT = {"Cache-Control": "no-cache"}
FILE = dict.fromkeys(TYPES.values(), TEXT)


class ProblemsQuery(Query, frozen=True):
    """In which format."""

    format: Literal["json", "html"] | UnsetType = UNSET


def _sent(request: Asked, file: PageFile) -> Response[bytes]:
    """Return a file, or that the copy the client has is still good."""
    headers = {**KEPT, "ETag": file.tag}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, media_type=file.media_type, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


@route("GET", "/", Contract("free", "pages", {200: Answer("The live page.", {HTML: TEXT})}))
async def page(request: Asked) -> Response[bytes]:
    """Show the live page; it asks for a token itself where one is needed."""
    return _sent(request, page_files()["index.html"])


@route(
    "GET",
    "/page/{file:str}",
    Contract(
        "free",
        "pages",
        {200: Answer("A file of the page.", FILE), 304: Answer("The copy is still good.")},
        problems=("sr-not-found",),
    ),
)
async def page_file(request: Asked) -> Response[bytes]:
    """Return a file of the live page."""
    file = page_files().get(request.path_params["file"])
    if file is None:
        raise Problem("sr-not-found", "There is no such file of the page.")
    return _sent(request, file)


@route(
    "GET",
    "/openapi.json",
    Contract("free", "pages", {200: Answer("This document.", {JSON: {"type": "object"}})}),
)
async def openapi(request: Asked) -> Response[bytes]:
    """Return the document of the interface, as OpenAPI 3.1."""
    query_of(request, Query)
    return json_answer(context_of(request).document, headers=KEPT)


@route("GET", "/docs", Contract("free", "pages", {200: Answer("The documentation.", {HTML: TEXT})}))
async def docs(request: Asked) -> Response[bytes]:
    """Show the documentation of the interface."""
    query_of(request, Query)
    html = docs_page(context_of(request).document)
    return Response(html.encode(), media_type=TYPES[".html"], headers=KEPT)


@route(
    "GET",
    "/problems",
    Contract(
        "free",
        "pages",
        {200: Answer("The catalogue.", {HTML: TEXT, JSON: Catalogue})},
        ProblemsQuery,
        problems=("sr-not-acceptable",),
    ),
)
async def problems(request: Asked) -> Response[bytes]:
    """Show the catalogue of codes with which requests and rows are refused."""
    query = query_of(request, ProblemsQuery)
    if format_of(request, query.format, (HTML, "json")) == "json":
        return json_answer({"items": catalogue()}, headers=KEPT)
    html = problems_page(catalogue())
    return Response(html.encode(), media_type=TYPES[".html"], headers=KEPT)


def catalogue() -> list[dict[str, object]]:
    """Return the catalogue of codes as plain values."""
    return [
        {"code": code, **_entry(code), "retry": CATALOGUE[code].status in RETRY_AFTER}
        for code in CATALOGUE
    ]


def _entry(code: str) -> dict[str, object]:
    entry: dict[str, object] = msgspec.to_builtins(CATALOGUE[code])
    return entry


HANDLERS = [page, page_file, openapi, docs, problems]
