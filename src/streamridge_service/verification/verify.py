"""Verification of sensors: each is replayed from its log and compared with the stored data.

The state and every issued forecast must equal the replayed ones bit for bit. If the processor or
the numerical libraries changed since, a difference in the last digits is not a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import msgspec
from threadpoolctl import threadpool_limits

from streamridge import state_content
from streamridge.errors import FormerFormatError, StreamRidgeError
from streamridge_service.ledger.errors import DamagedError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import IssuedForecast, SensorRow, Snapshot
from streamridge_service.verification.comparison import (
    forecast_fault,
    nearly_equal,
    nearly_equal_states,
)
from streamridge_service.verification.log_replay import SensorLog, replayed_refits
from streamridge_service.workers.sensor_state import SensorSummary, fingerprint

NOT_EXACT = (
    "it is equal within 1e-9, not bit for bit: it was computed, at least in part, on another "
    "processor or with other numerical libraries"
)
FORMER = (
    "its stored state has a former format and was not compared; the service rebuilds it from the "
    "readings"
)
PRUNED = "it cannot be replayed: its first readings were pruned, or may have been"


@dataclass(frozen=True)
class SensorCheck:
    """The result of verifying a sensor."""

    sensor: str
    fault: str | None = None  # the fault; None if there is none
    remark: str | None = None  # A remark, such as why the sensor could not be replayed
    forecasts: int = 0  # number of forecasts that were compared
    is_exact: bool = False  # whether all data are equal bit for bit


@dataclass(frozen=True)
class StoredData:
    """The stored forecasts and the snapshot of a sensor; read before the log, which may grow."""

    done: int
    forecasts: list[IssuedForecast]
    snapshot: Snapshot | None

    @classmethod
    def of(cls, ledger: Ledger, sensor: SensorRow) -> StoredData:
        """Read the stored data of a sensor."""
        done, forecasts = ledger.done_seq(), list(ledger.forecasts(sensor.id))
        return cls(done, forecasts, ledger.snapshot(sensor.id))


def sampled(sensors: Sequence[SensorRow], count: int | None, seed: int) -> list[SensorRow]:
    """Return a random sample of sensors, ordered by number; all if there is no count."""
    if count is None or count >= len(sensors):
        return list(sensors)
    return sorted(Random(seed).sample(sensors, count), key=lambda sensor: sensor.id)


def check_sensors(ledger: Ledger, sensors: Iterable[SensorRow]) -> Iterator[SensorCheck]:
    """Verify sensors one after the other."""
    with threadpool_limits(1):
        for sensor in sensors:
            yield check_sensor(ledger, sensor)


def check_sensor(ledger: Ledger, sensor: SensorRow) -> SensorCheck:
    """Replay one sensor from its log, and compare it with the stored data."""
    try:
        stored, log = _read(ledger, sensor)
    except DamagedError as error:
        return SensorCheck(sensor.name, fault=error.reason)
    if int(ledger.facts()["first"]) > 1 and not log.has_first_reading:
        return SensorCheck(sensor.name, remark=PRUNED)
    if not log.declaration_matches:
        return SensorCheck(sensor.name, fault="its declaration differs from its log.")
    try:
        return _compared(log, stored)
    except StreamRidgeError as error:
        return SensorCheck(sensor.name, fault=f"the stored data cannot be read: {error.reason}")


def _read(ledger: Ledger, sensor: SensorRow) -> tuple[StoredData, SensorLog]:
    """Return the stored data and the log of a sensor, without a refit in between."""
    while True:
        stored, log = StoredData.of(ledger, sensor), SensorLog.of(ledger, sensor)
        if ledger.snapshot(sensor.id) == stored.snapshot:
            return stored, log


def _compared(log: SensorLog, stored: StoredData) -> SensorCheck:
    name, replayed = log.sensor.name, list(replayed_refits(log))
    for number, snapshot in enumerate(replayed):
        fault = _refit_fault(log, number, snapshot)
        if fault is not None:
            return SensorCheck(name, fault=fault)
    readable = stored.snapshot is None or _is_readable(stored.snapshot)
    fault = _snapshot_fault(stored.snapshot, replayed) if readable else None
    if fault is not None:
        return SensorCheck(name, fault=fault)
    exact = _is_exact(stored.snapshot, log, replayed, readable=readable)
    fault = forecast_fault(log, stored.forecasts, stored.done, replayed, exact=exact)
    remark = FORMER if not readable else None if exact else NOT_EXACT
    return SensorCheck(name, fault, remark, len(stored.forecasts), exact)


def _is_readable(snapshot: Snapshot) -> bool:
    """Return whether the state of a snapshot has a format that this version reads."""
    try:
        state_content(snapshot.state)
    except FormerFormatError:
        return False
    return True


def _refit_fault(log: SensorLog, number: int, replayed: Snapshot) -> str | None:
    """Return the fault of a stored refit point, given the replayed one."""
    point = log.points[number]
    if replayed.point != point:
        return (
            f"its refit point at arrival number {point.seq} is stored as {point.kind!r}, and "
            f"replayed as {replayed.point.kind!r}."
        )
    if not nearly_equal(replayed.tuning, log.tunings[number]):
        return f"its hyperparameters at arrival number {point.seq} differ from the replayed ones."
    return None


def _snapshot_fault(stored: Snapshot | None, replayed: Sequence[Snapshot]) -> str | None:
    """Return the fault of the stored snapshot, given the replayed ones."""
    if stored is None:
        return "it has refit points, but no snapshot." if replayed else None
    last, seq = replayed[-1] if replayed else None, stored.point.seq
    if last is None or last.point != stored.point:
        return f"its snapshot at arrival number {seq} does not belong to its last refit point."
    if not nearly_equal_states(last.state, stored.state):
        return f"its state at arrival number {seq} differs from the replayed one."
    if not nearly_equal(_summary(last), _summary(stored)):
        return f"its summary at arrival number {seq} differs from the replayed one."
    return None


def _summary(snapshot: Snapshot) -> bytes:
    """Return a summary as far as the log determines it.

    The log does not have the reason of a failed refit. Errors of forecasts are summed since the
    first version that stores their sums.
    """
    summary = msgspec.json.decode(snapshot.summary, type=SensorSummary)
    failed, new = None if summary.failed is None else "", SensorSummary()
    return msgspec.json.encode(
        msgspec.structs.replace(
            summary,
            failed=failed,
            score=new.score,
            outside=new.outside,
            scores=new.scores,
            errors=new.errors,
        )
    )


def _content(snapshot: Snapshot) -> tuple[object, ...]:
    """Return the content of a state, whatever its compression."""
    header, arrays = state_content(snapshot.state)
    return header, [(name, array.dtype, array.tobytes()) for name, array in arrays.items()]


def _is_exact(
    stored: Snapshot | None, log: SensorLog, replayed: Sequence[Snapshot], *, readable: bool
) -> bool:
    """Return whether a sensor is equal bit for bit, as it must be on the same machine."""
    if stored is None:
        return True
    return (
        stored.fingerprint == fingerprint()
        and (not readable or _content(stored) == _content(replayed[-1]))
        and log.tunings == [each.tuning for each in replayed]
    )
