"""What an operator can ask of a sensor."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from msgspec import Meta

from streamridge.service.problems import Problem
from streamridge.service.web.answers import json_answer
from streamridge.service.web.context import Asked, place_of, service_of
from streamridge.service.web.contracts import JSON, Answer, Contract, Query, Sent, route
from streamridge.service.web.queries import moment_of, query_of
from streamridge.service.web.receiving import said
from streamridge.service.web.shapes import Done, Released, Time

HyperparameterName = Annotated[str, Meta(min_length=1, max_length=100)]
PROBLEMS = ("sr-unknown-sensor", "sr-archived", "sr-disk-full")
SAID = (
    "sr-bad-field", "sr-unreadable", "sr-unsupported-type", "sr-too-large", "sr-slow-body",
)  # fmt: skip
TUNED = ("sr-no-model", "sr-unknown-hyperparameter")


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values of hyperparameters, by name."""

    values: Annotated[dict[HyperparameterName, float], Meta(min_length=1, max_length=500)]


class Hyperparameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of hyperparameters."""

    names: Annotated[list[HyperparameterName], Meta(min_length=1, max_length=500)]


class Stretch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first and the last moment of a time that shall not be learned from."""

    start: Time
    end: Time


def _contract(sent: Sent | None = None, *problems: str) -> Contract:
    return Contract(
        "admin",
        "actions",
        {200: Answer("It is done, and stored.", {JSON: Done})},
        sent=sent,
        problems=(*PROBLEMS, *(SAID if sent else ()), *problems),
    )


async def _acted(request: Asked, kind: str, body: dict[str, Any]) -> Response[bytes]:
    place = place_of(request, living=True)
    if kind != "exclude" and not place.standing.fitted:
        raise Problem("sr-no-model", f"Sensor {place.sensor.name} has no model yet.")
    await service_of(request).act(place.sensor, kind, body)
    return json_answer({"sensor": place.sensor.name, "done": kind})


@route("POST", "/v1/sensors/{sensor:str}/retune", _contract(None, *TUNED))
async def retune(request: Asked) -> Response[bytes]:
    """Refit a sensor's model now, and learn its hyperparameters from the readings since."""
    query_of(request, Query)
    return await _acted(request, "retune", {})


@route("POST", "/v1/sensors/{sensor:str}/reset", _contract(None, *TUNED))
async def reset(request: Asked) -> Response[bytes]:
    """Make a sensor's forecaster anew from its readings, with hyperparameters where they start."""
    query_of(request, Query)
    return await _acted(request, "reset", {})


@route("POST", "/v1/sensors/{sensor:str}/rollback", _contract(None, *TUNED))
async def rollback(request: Asked) -> Response[bytes]:
    """Put a sensor's hyperparameters back to where they started; its readings stay learned."""
    query_of(request, Query)
    return await _acted(request, "rollback", {})


@route(
    "POST",
    "/v1/sensors/{sensor:str}/set",
    _contract(Sent({JSON: Values}, {JSON: {"values": {"regularization": 2.0}}}), *TUNED),
)
async def set_values(request: Asked) -> Response[bytes]:
    """Set hyperparameters of a sensor by name, and refit."""
    query_of(request, Query)
    values = await said(request, Values)
    return await _acted(request, "set", {"values": values.values})


@route(
    "POST",
    "/v1/sensors/{sensor:str}/freeze",
    _contract(Sent({JSON: Hyperparameters}, {JSON: {"names": ["regularization"]}}), *TUNED),
)
async def freeze(request: Asked) -> Response[bytes]:
    """Keep hyperparameters of a sensor as they are from now on."""
    query_of(request, Query)
    names = await said(request, Hyperparameters)
    return await _acted(request, "freeze", {"names": names.names})


@route(
    "POST",
    "/v1/sensors/{sensor:str}/unfreeze",
    _contract(Sent({JSON: Hyperparameters}, {JSON: {"names": ["regularization"]}}), *TUNED),
)
async def unfreeze(request: Asked) -> Response[bytes]:
    """Let frozen hyperparameters of a sensor be learned again."""
    query_of(request, Query)
    names = await said(request, Hyperparameters)
    return await _acted(request, "unfreeze", {"names": names.names})


@route(
    "POST",
    "/v1/sensors/{sensor:str}/exclude",
    _contract(
        Sent(
            {JSON: Stretch},
            {JSON: {"start": "2026-06-13T08:00:00Z", "end": "2026-06-13T12:00:00Z"}},
        ),
        *TUNED,
    ),
)
async def exclude(request: Asked) -> Response[bytes]:
    """Learn nothing from a stretch of time, such as a closure or a known fault."""
    query_of(request, Query)
    stretch = await said(request, Stretch)
    start = moment_of(stretch.start, "start", "sr-bad-field")
    if start > moment_of(stretch.end, "end", "sr-bad-field"):
        raise Problem("sr-bad-field", "start must not be later than end.")
    return await _acted(request, "exclude", {"start": stretch.start, "end": stretch.end})


@route(
    "POST",
    "/v1/sensors/{sensor:str}/release",
    Contract(
        "admin",
        "actions",
        {200: Answer("They have arrived.", {JSON: Released}, {"sensor": "A2-35.1", "released": 3})},
        problems=PROBLEMS,
    ),
)
async def release(request: Asked) -> Response[bytes]:
    """Let the held rows of a sensor arrive now, though their time has not come."""
    query_of(request, Query)
    place = place_of(request, living=True)
    count = await service_of(request).release(place.sensor)
    return json_answer({"sensor": place.sensor.name, "released": count})


HANDLERS: list[HTTPRouteHandler] = [
    retune, reset, rollback, set_values, freeze, unfreeze, exclude, release,
]  # fmt: skip
