"""Parameters of requests, strictly read: each one is known, comes once, and is what it must be."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from streamridge.errors import listed
from streamridge.service.bodies.fields import FieldError, brief
from streamridge.service.bodies.moments import moment_of_text
from streamridge.service.problems import Problem
from streamridge.service.web.context import Asked
from streamridge.service.web.contracts import Query

MOST_PARAMETERS = 50
WHOLE = re.compile(r"-?[0-9]{1,18}")
TRUTHS = {"true": True, "false": False}

Q = TypeVar("Q", bound=Query)


def query_of(request: Asked, kind: type[Q]) -> Q:
    """Return the parameters of a request."""
    pairs = _pairs(request.scope["query_string"])
    known = properties_of(kind)
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name in values:
            raise Problem("sr-bad-parameter", f"{brief(name)} must be given once.")
        if name not in known:
            raise Problem(
                "sr-bad-parameter",
                f"There is no parameter {brief(name)} here, only {listed(list(known)) or 'none'}.",
            )
        values[name] = _plain(text, known[name].get("type"))
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise Problem("sr-bad-parameter", _told(str(error))) from None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MOST_PARAMETERS,
        )
    except ValueError:  # bytes that are no text, or too many of them
        raise Problem("sr-bad-parameter", "The parameters cannot be read.") from None


@cache
def properties_of(kind: type[Query]) -> dict[str, dict[str, Any]]:
    """Return the schema of each parameter, by its name."""
    _, components = msgspec.json.schema_components([kind])
    properties: dict[str, dict[str, Any]] = components[kind.__name__]["properties"]
    return properties


def _plain(text: str, kind: str | None) -> object:
    """Return the value that a text stands for, or the text itself if it stands for none."""
    if kind == "integer" and WHOLE.fullmatch(text):
        return int(text)
    if kind == "boolean":
        return TRUTHS.get(text, text)
    return text


def _told(message: str) -> str:
    """Return the words of msgspec with the parameter in front."""
    reason, _, name = message.partition(" - at `$.")
    return f"{name.rstrip('`')}: {reason}." if name else f"{reason}."


def moment_of(text: str, name: str, code: str = "sr-bad-parameter") -> int:
    """Return the moment that a parameter, or a field, names; `code` says which of them it is."""
    try:
        return moment_of_text(text)
    except FieldError as error:
        hint = " Write + as %2B." if " " in text else ""
        raise Problem(code, f"{name}: {error.detail}{hint}") from None
