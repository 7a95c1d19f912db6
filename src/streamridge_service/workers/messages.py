"""Messages between the service and its workers, as bytes."""

from __future__ import annotations

import msgspec

from streamridge_service.ledger.records import (
    Action,
    IssuedForecast,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.workers.sensor_state import SensorSummary


class TakeReadings(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """New readings, and sensors that are new or have a new declaration."""

    number: int
    readings: list[StoredReading]
    sensors: list[SensorRow]


class RunAction(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """An operator's action on a sensor."""

    number: int
    action: Action


class AskForecast(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A request for a sensor's tuning, and for its forecast from a time on."""

    number: int
    sensor: int
    now: int


class SnapshotStored(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The snapshot of a refit point is in the ledger."""

    point: RefitPoint


class Stop(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """Finish the current message, and exit."""


class SensorState(msgspec.Struct, array_like=True, frozen=True):
    """The summary of a sensor after an arrival number."""

    sensor: int
    seq: int
    summary: SensorSummary


class ReadingsTaken(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The result of processing readings."""

    number: int  # number of the message that is answered; 0 if none is
    # New forecasts, and the sensors that changed.
    forecasts: list[IssuedForecast]
    states: list[SensorState]
    # Arrival numbers of readings that could not be processed, with the reasons.
    failed: list[tuple[int, str]]
    # For each forecast the last reading before it that the model learned from; None if the step has
    # none, or if it is not known any more.
    learned: list[float | None]


class ActionDone(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The result of an action: the reason of a refusal, or whether the sensor has failed."""

    number: int
    refusal: str | None = None
    has_failed: bool = False


class ForecastAnswer(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A forecast, if there is one, the tuning as JSON, and the state of the sensor.

    A sensor that has failed has neither.
    """

    number: int
    forecast: IssuedForecast | None = None
    tuning: bytes = b"{}"
    state: SensorState | None = None


class SnapshotMade(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A snapshot, which must be stored before the forecasts that follow it."""

    snapshot: Snapshot
    state: SensorState
    seconds: float


class RefitQueued(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A sensor waits for a refit, or for a new start."""

    sensor: int


class RefitStarted(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """The refit of a sensor at a refit point, so that it is known if the worker dies meanwhile."""

    sensor: int
    seq: int


class RefitEnded(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A sensor does not wait for a refit any more; its result was sent before, if there is one.

    After an unexpected error, the sensor continues with its old fit.
    """

    sensor: int
    error: str | None = None
    waits_again: bool = False  # whether it waits for another one


class SensorFailed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A sensor that cannot be loaded or processed; the next attempt follows after a pause."""

    sensor: int
    seq: int  # the first arrival number that is not processed; 0 if none is known
    reason: str
    detail: str  # for the log


class SensorRecovered(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """A sensor that had failed and is processed again; its missing forecasts were sent before."""

    sensor: int


class ItemProcessed(msgspec.Struct, tag=True, array_like=True, frozen=True):
    """An item during which a worker has ended before, and which is processed now."""

    sensor: int
    seq: int


ToWorker = TakeReadings | RunAction | AskForecast | SnapshotStored | Stop
FromWorker = (
    ReadingsTaken
    | ActionDone
    | ForecastAnswer
    | SnapshotMade
    | RefitQueued
    | RefitStarted
    | RefitEnded
    | SensorFailed
    | SensorRecovered
    | ItemProcessed
)

_encoder = msgspec.msgpack.Encoder()
_to_worker = msgspec.msgpack.Decoder(ToWorker)
_from_worker = msgspec.msgpack.Decoder(FromWorker)


def encode(message: ToWorker | FromWorker) -> bytes:
    """Return a message as bytes."""
    return _encoder.encode(message)


def decode_for_worker(message: bytes) -> ToWorker:
    """Return a message to a worker."""
    return _to_worker.decode(message)


def decode_for_service(message: bytes) -> FromWorker:
    """Return a message from a worker."""
    return _from_worker.decode(message)
