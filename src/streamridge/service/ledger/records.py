"""What a ledger holds: sensors, readings, actions, cuts, snapshots, forecasts and tokens.

Times are whole microseconds since 1970 in UTC. Whatever changes a sensor has an arrival number, in
one numbering for all sensors, without holes. Arrival numbers alone decide what came before what;
no clock does.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Kind(IntEnum):
    """How a reading is taken."""

    LIVE = 0
    # Many readings of the past at once: no forecast is made before the last of them.
    BACKFILL = 1
    # Ahead of the clock: kept, and not learned from. When its time has come, it arrives again.
    HELD = 2
    # Replaces the reading of its time, which is kept too, from the next refit on.
    REVISION = 3


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A reading as it arrived; `value` is None for "no measurement"."""

    seq: int
    sensor: int
    time: int
    value: float | None
    received: int
    kind: int = Kind.LIVE


# What is asked of this sensor is asked of all.
EVERYONE = 0


class Action(msgspec.Struct, frozen=True, array_like=True):
    """Something that was asked of a sensor, or of `EVERYONE`.

    Parameters
    ----------
    seq, sensor
        Arrival number, and the number of the sensor.
    kind
        "set", "freeze", "unfreeze", "rollback", "exclude", "retune" or "reset"; "configure", where
        forecasts depend on what is declared anew; "plan", where the service forecasts in a new way.
    body
        JSON of a shape of its kind.
    received
        When it was asked.
    """

    seq: int
    sensor: int
    kind: str
    body: bytes
    received: int


class Cut(msgspec.Struct, frozen=True, array_like=True):
    """A place in a sensor's log at which its forecaster was made anew.

    Parameters
    ----------
    sensor
        Number of the sensor.
    seq
        The last arrival number that was known then.
    until
        Time of the newest step that the forecaster had seen.
    kind
        "refit"; "start", made of all its readings; "reset", the same with hyperparameters where
        they start; "rebuilt", the same since its stored state was damaged; "kept", as it was, only
        saved; or "failed", when a refit could not be made and the fit in force went on.
    left
        Arrival numbers up to `seq` that were not used yet, since their steps are later.
    """

    sensor: int
    seq: int
    until: int
    kind: str
    left: tuple[int, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """What a cut left: the forecaster as bytes, which carry their own digest, and a summary."""

    cut: Cut
    state: bytes
    # JSON, small: what lists of sensors show.
    summary: bytes
    # JSON, small: hyperparameters and weights of experts, for their path.
    tuning: bytes
    # What computed it: versions of the numerical libraries.
    fingerprint: str


class Issued(msgspec.Struct, frozen=True, array_like=True):
    """A forecast as it was issued: never changed, and made again the same.

    Parameters
    ----------
    seq
        The arrival number it was made at.
    sensor
        Number of the sensor.
    time
        Time of its first step.
    fit
        Arrival number of the cut whose fit made it; zero before the first.
    source
        "model", "seasonal", "last" or "none".
    values, lower, upper
        One number a step.
    """

    seq: int
    sensor: int
    time: int
    fit: int
    source: str
    values: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class SensorRow(msgspec.Struct, frozen=True, array_like=True):
    """A sensor as it is known to the ledger; `declared` is JSON, `archived` a time or None."""

    id: int
    name: str
    created: int
    declared: bytes = b"{}"
    archived: int | None = None


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A token that lets a client in; only its SHA-256 is kept."""

    id: int
    name: str
    digest: bytes
    scopes: tuple[str, ...]
    created: int
    expires: int | None = None
    revoked: int | None = None


class Event(msgspec.Struct, frozen=True, array_like=True):
    """Something an operator should know, with its reason; `sensor` is None if it is about all."""

    id: int
    at: int
    kind: str
    sensor: int | None
    reason: str
