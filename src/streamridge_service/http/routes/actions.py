"""Actions of operators on a sensor, and on the clock."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streamridge_service.http.requests import time_of
from streamridge_service.http.routing import HttpRequest, Routes, service_of, status_of
from streamridge_service.plan import SECOND
from streamridge_service.problems import Problem
from streamridge_service.service.answers import Answer, Name, Time, iso

MODEL_PROBLEMS = ("sr-archived", "sr-no-model", "sr-unknown-hyperparameter")

routes = Routes("actions", "admin")

HyperparameterName = Annotated[str, Meta(min_length=1, max_length=100)]


class HyperparameterValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """HyperparameterValues of hyperparameters, by name."""

    values: Annotated[
        dict[HyperparameterName, float],
        Meta(min_length=1, max_length=500, examples=[{"regularization": 2.0}]),
    ]


class HyperparameterNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of hyperparameters."""

    names: Annotated[
        list[HyperparameterName], Meta(min_length=1, max_length=500, examples=[["regularization"]])
    ]


class ExcludedTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first and the last time of a range to exclude from learning."""

    start: Time
    end: Time


class Done(Answer, frozen=True):
    """An action that was stored and applied."""

    sensor: Name
    done: Annotated[str, Meta(examples=["retune"])]


class Released(Answer, frozen=True):
    """The number of held rows that were taken in."""

    sensor: Name
    released: Annotated[int, Meta(examples=[3])]


class ClockTrusted(Answer, frozen=True):
    """The machine's time that is in use now, and by how much the clock had jumped."""

    now: Time
    jump_seconds: Annotated[float, Meta(examples=[43_200.0])]


async def _run(request: HttpRequest, kind: str, body: dict[str, Any]) -> Done:
    status = status_of(request, active=True)
    name = status.sensor.name
    if kind != "exclude" and not status.summary.fitted:
        raise Problem("sr-no-model", f"Sensor {name} has no model yet.")
    await service_of(request).operators.run(status.sensor, kind, body)
    return Done(name, kind)


@routes.add("POST", "/v1/sensors/{sensor:str}/retune", problems=MODEL_PROBLEMS)
async def retune(request: HttpRequest) -> Done:
    """Refit a sensor's model now, and update its hyperparameters from the readings so far."""
    return await _run(request, "retune", {})


@routes.add("POST", "/v1/sensors/{sensor:str}/reset", problems=MODEL_PROBLEMS)
async def reset(request: HttpRequest) -> Done:
    """Rebuild a sensor's forecaster from its readings, with the initial hyperparameters."""
    return await _run(request, "reset", {})


@routes.add("POST", "/v1/sensors/{sensor:str}/rollback", problems=MODEL_PROBLEMS)
async def rollback(request: HttpRequest) -> Done:
    """Set a sensor's hyperparameters to their initial values, and refit."""
    return await _run(request, "rollback", {})


@routes.add("POST", "/v1/sensors/{sensor:str}/set", problems=MODEL_PROBLEMS)
async def set_values(request: HttpRequest, body: HyperparameterValues) -> Done:
    """Set hyperparameters of a sensor by name, and refit."""
    return await _run(request, "set", {"values": body.values})


@routes.add("POST", "/v1/sensors/{sensor:str}/freeze", problems=MODEL_PROBLEMS)
async def freeze(request: HttpRequest, body: HyperparameterNames) -> Done:
    """Keep hyperparameters of a sensor fixed from now on."""
    return await _run(request, "freeze", {"names": body.names})


@routes.add("POST", "/v1/sensors/{sensor:str}/unfreeze", problems=MODEL_PROBLEMS)
async def unfreeze(request: HttpRequest, body: HyperparameterNames) -> Done:
    """Tune frozen hyperparameters of a sensor again."""
    return await _run(request, "unfreeze", {"names": body.names})


@routes.add("POST", "/v1/sensors/{sensor:str}/exclude", problems=MODEL_PROBLEMS)
async def exclude(request: HttpRequest, body: ExcludedTime) -> Done:
    """Exclude a range of time from learning, such as a closure or a known fault."""
    start = time_of(body.start, "start", "sr-bad-field")
    if start > time_of(body.end, "end", "sr-bad-field"):
        raise Problem("sr-bad-field", "start must not be later than end.")
    return await _run(request, "exclude", {"start": body.start, "end": body.end})


@routes.add("POST", "/v1/sensors/{sensor:str}/acknowledge", problems=("sr-archived",))
async def acknowledge(request: HttpRequest) -> Done:
    """Note that an operator knows about the present state of a sensor, until the state changes."""
    status = status_of(request, active=True)
    service_of(request).operators.acknowledge(status, service_of(request).now)
    return Done(status.sensor.name, "acknowledge")


@routes.add("POST", "/v1/sensors/{sensor:str}/release", problems=("sr-archived",))
async def release(request: HttpRequest) -> Released:
    """Take in the held rows of a sensor now, although their time is in the future."""
    sensor = status_of(request, active=True).sensor
    return Released(sensor.name, await service_of(request).ingest.release_held(sensor))


@routes.add("POST", "/v1/clock/trust")
async def trust_clock(request: HttpRequest) -> ClockTrusted:
    """Use the present time of the machine although its clock has jumped."""
    service = service_of(request)
    seconds = service.clock.jump / SECOND
    service.trust_clock()
    return ClockTrusted(iso(service.clock.now()), seconds)
