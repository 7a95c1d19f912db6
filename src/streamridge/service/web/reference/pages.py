"""The documentation of the interface as a page, made of the document that programs read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

Part = Mapping[str, Any]

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


def docs_page(document: Part) -> str:
    """Return the page that tells all routes."""
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


def problems_page(entries: Iterable[Part]) -> str:
    """Return the page that tells all codes of refusals."""
    rows = "".join(
        f'<tr id="{escape(each["code"])}"><td><code>{escape(each["code"])}</code></td>'
        f"<td>{each['status']}</td><td>{escape(each['title'])}.</td>"
        f"<td>{escape(each['remedy'])}</td><td>{'yes' if each['retry'] else 'no'}</td></tr>"
        for each in entries
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("code", "status", "what", "what to do", "try again?")
    )
    return FRAME.format(
        title="Error codes",
        body=f"<p>Every refusal has one of these codes. They do not change.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>",
    )


def _route(method: str, path: str, operation: Part) -> str:
    scope = operation["x-scope"]
    parts = [
        f"<summary><code><b>{method.upper()}</b> {escape(path)}</code> "
        f"<span>{escape(operation['summary'])}</span></summary>",
        f"<p>{escape(operation.get('description', ''))}</p>",
        f"<p>Scope: <b>{escape(scope)}</b></p>",
        _parameters(operation.get("parameters", [])),
        _body(operation.get("requestBody")),
        _answers(operation["responses"]),
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


def _body(body: Part | None) -> str:
    if body is None:
        return ""
    return "<h3>Body</h3>" + "".join(map(_content, body["content"].items()))


def _answers(responses: Mapping[str, Part]) -> str:
    parts = [
        f"<p><b>{status}</b> {escape(each.get('description', ''))}</p>"
        + "".join(map(_content, each.get("content", {}).items()))
        for status, each in responses.items()
        if "$ref" not in each
    ]
    return "<h3>Answers</h3>" + "".join(parts)


def _content(pair: tuple[str, Part]) -> str:
    kind, told = pair
    example = told.get("example")
    if example is None:
        return f"<p><code>{escape(kind)}</code></p>"
    text = example if isinstance(example, str) else json.dumps(example, indent=2)
    return f"<p><code>{escape(kind)}</code></p><pre>{escape(text)}</pre>"


def _brief(schema: Part) -> str:
    """Return what a parameter can be, in few words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    limits = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    kind = str(schema.get("format") or schema.get("type", ""))
    return f"{kind} {' to '.join(limits)}".strip()


def _anchor(topic: str) -> str:
    return escape(topic.replace(" ", "-"))
