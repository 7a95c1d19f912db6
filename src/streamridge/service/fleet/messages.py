"""What the service and its workers tell each other, as bytes."""

from __future__ import annotations

import msgspec

from streamridge.service.fleet.tracker import Standing
from streamridge.service.ledger.records import Action, Entry, Issued, SensorRow, Snapshot


class Take(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """New readings, and sensors that are new or were declared anew; numbered for the answer."""

    number: int
    entries: list[Entry]
    sensors: list[SensorRow]


class Act(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Something that is asked of a sensor."""

    number: int
    action: Action


class Ask(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A question about a sensor: its forecast from a moment on, and its tuning."""

    number: int
    sensor: int
    now: int


class Stop(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The end: finish what is at hand, and exit."""


class Known(msgspec.Struct, array_like=True, frozen=True):
    """Where a sensor stands after its newest reading."""

    sensor: int
    seq: int
    standing: Standing


class Took(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What came of a message: forecasts, where sensors stand, and what could not be taken.

    `cuts` tells how many refits and new starts wait, or are being made.
    """

    number: int
    issued: list[Issued]
    known: list[Known]
    failed: list[tuple[int, str]]
    cuts: int


class Acted(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """What came of an action: why it could not be done, if so; and how many cuts wait."""

    number: int
    refusal: str | None
    cuts: int


class Told(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The answer to a question: a forecast, if there is any, and the tuning as JSON."""

    number: int
    forecast: Issued | None
    tuning: bytes
    known: Known


class Kept(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A snapshot, to be stored before anything that is made of it."""

    snapshot: Snapshot
    known: Known
    seconds: float


class Refitting(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The sensor whose refit begins, so that it is known if the worker does not survive it."""

    sensor: int


class Failed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A cut that could not be made, and why: the sensor goes on as it was."""

    sensor: int
    reason: str


ToWorker = Take | Act | Ask | Stop
FromWorker = Took | Acted | Told | Kept | Failed | Refitting

_encoder = msgspec.msgpack.Encoder()
_to_worker = msgspec.msgpack.Decoder(ToWorker)
_from_worker = msgspec.msgpack.Decoder(FromWorker)


def packed(message: ToWorker | FromWorker) -> bytes:
    """Return a message as bytes."""
    return _encoder.encode(message)


def for_worker(message: bytes) -> ToWorker:
    """Return a message to a worker."""
    return _to_worker.decode(message)


def for_service(message: bytes) -> FromWorker:
    """Return a message from a worker."""
    return _from_worker.decode(message)
