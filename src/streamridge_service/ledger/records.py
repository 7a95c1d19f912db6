"""The records of a ledger.

Times are whole microseconds since 1970 in UTC. Every reading and action has an arrival number from
one sequence for all sensors, without gaps. Arrival numbers alone decide the order of events; clocks
do not matter.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Kind(IntEnum):
    """How a reading is processed."""

    LIVE = 0
    # Part of many past readings: no forecast is made before the last of them.
    BACKFILL = 1
    # Ahead of the clock: stored, but not learned from. It arrives again when its time has come.
    HELD = 2
    # Replaces the reading of its time from the next refit on; the old reading stays stored.
    REVISION = 3
    # A value for a step, or a time, of which only null was known. As long as the step is open, it
    # counts as if null had not been sent.
    FILL = 4


class StoredReading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A reading as it arrived; `value` is None for a missing measurement."""

    seq: int
    sensor: int
    time: int
    value: float | None
    received: int
    kind: int = Kind.LIVE

    @property
    def is_live(self) -> bool:
        """Return whether the reading is processed at its step, unless it is late."""
        return self.kind in (Kind.LIVE, Kind.FILL)


# An action on this sensor applies to all sensors.
EVERYONE = 0


class Action(msgspec.Struct, frozen=True, array_like=True):
    """An operator's action on a sensor, or on `EVERYONE`."""

    # Arrival number, and the number of the sensor.
    seq: int
    sensor: int
    # "set", "freeze", "unfreeze", "rollback", "exclude", "retune" or "reset"; "configure" for a new
    # declaration that affects forecasts; "plan" for new settings of the whole service.
    kind: str
    body: bytes  # the arguments as JSON
    received: int


class RefitPoint(msgspec.Struct, frozen=True, array_like=True):
    """A position in a sensor's log at which its forecaster was refitted, rebuilt or saved."""

    sensor: int
    seq: int  # the last arrival number that was known then
    until: int  # time of the newest step that the forecaster had seen
    # "refit"; "start", a new forecaster from all readings; "reset", the same with initial
    # hyperparameters; "rebuilt", the same after its stored state was lost; "kept", saved without a
    # refit; or "failed", a refit that raised an error, so that the old fit stays in force.
    kind: str
    # Arrival numbers up to `seq` of readings whose steps come after `until`.
    unused: tuple[int, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """The state of a forecaster after a refit point, as bytes, and a summary."""

    point: RefitPoint
    state: bytes
    # JSON: the columns of a list of sensors.
    summary: bytes
    # JSON: hyperparameters and expert weights.
    tuning: bytes
    # The versions of the numerical libraries that computed the state.
    fingerprint: str


class IssuedForecast(msgspec.Struct, frozen=True, array_like=True):
    """An issued forecast; it never changes, and a replay of the log reproduces it."""

    seq: int  # the arrival number after which it was made
    sensor: int
    time: int  # time of its first step
    fit: int  # arrival number of the refit point whose fit made it; zero before the first
    source: str  # "model", "seasonal", "last" or "none"
    # One number a step.
    values: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class GroupMember(msgspec.Struct, frozen=True, array_like=True):
    """What one sensor contributes to a step of its group."""

    sensor: int
    value: float | None  # the reading that its model learned from; None if there is none
    # Arrival numbers of its own forecasts: the one that starts at the step, and the one after it; 0
    # if there is none.
    own: int
    following: int


class GroupStep(msgspec.Struct, frozen=True, array_like=True):
    """A step of a group of sensors, from which the corrections of their forecasts follow."""

    group: str
    step: int  # length of the step
    time: int
    # If the group begins with this step: its steps ahead, the steps of a day, and its level.
    begins: tuple[int, int, float] | None
    members: tuple[GroupMember, ...]

    @property
    def key(self) -> tuple[str, int]:
        """Return what identifies the group."""
        return self.group, self.step


class GroupResult(msgspec.Struct, frozen=True):
    """A step of a group, the forecasts that it corrects, and now and then the group's state."""

    step: GroupStep
    corrected: tuple[IssuedForecast, ...]
    state: bytes | None = None


class SensorRow(msgspec.Struct, frozen=True, array_like=True):
    """A sensor as stored; `declared` is JSON, `archived` a time or None."""

    id: int
    name: str
    created: int
    declared: bytes = b"{}"
    archived: int | None = None


class Token(msgspec.Struct, frozen=True, array_like=True):
    """An access token; only its SHA-256 digest is stored."""

    id: int
    name: str
    digest: bytes
    scopes: tuple[str, ...]
    created: int
    expires: int | None = None
    revoked: int | None = None


class Event(msgspec.Struct, frozen=True, array_like=True):
    """An event for operators, with its reason; `sensor` is None if it concerns all."""

    id: int
    at: int
    kind: str
    sensor: int | None
    reason: str
