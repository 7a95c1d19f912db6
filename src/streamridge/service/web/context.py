"""What the handlers of requests share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from litestar import Request
from litestar.datastructures import State

from streamridge.service.board import Place
from streamridge.service.bodies.fields import brief
from streamridge.service.problems import Problem
from streamridge.service.service import Service
from streamridge.service.web.keyring import Keyring
from streamridge.service.web.listing import Listing
from streamridge.service.web.room import Room

Asked = Request[Any, Any, State]


@dataclass
class Traffic:
    """How many answers of which class of status were given, and how long they took."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass
class Context:
    """What handlers need beside the request."""

    service: Service
    keyring: Keyring
    listing: Listing
    traffic: Traffic = field(default_factory=Traffic)
    room: Room = field(default_factory=Room)
    # The interface as OpenAPI tells it; complete once all routes are known.
    document: dict[str, Any] = field(default_factory=dict)


def context_of(request: Asked) -> Context:
    """Return what the handlers of an application share."""
    context: Context = request.app.state["context"]
    return context


def service_of(request: Asked) -> Service:
    """Return the service that is asked."""
    return context_of(request).service


def place_of(request: Asked, *, living: bool = False) -> Place:
    """Return the sensor that the path names; `living` refuses one that was archived."""
    service, name = service_of(request), request.path_params["sensor"]
    sensor = service.intake.sensors.get(name)
    place = None if sensor is None else service.board.places.get(sensor.id)
    if place is None:
        raise Problem("sr-unknown-sensor", f"There is no sensor {brief(name)}.")
    if living and place.sensor.archived is not None:
        raise Problem("sr-archived", f"Sensor {name} was archived.")
    return place
