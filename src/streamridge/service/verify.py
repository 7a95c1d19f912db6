"""Whether a ledger holds what it should: sensors are made again from their logs, and compared.

A state must be the one that its log gives, to the last bit, and so must every forecast that was
issued. Only where the processor or the numerical libraries are others, or were when it began, a
difference in the last digits is no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import msgspec
from threadpoolctl import threadpool_limits

from streamridge.errors import StreamRidgeError
from streamridge.files.checkpoint import decoded
from streamridge.service.fleet.making import fingerprint
from streamridge.service.fleet.tracker import Standing
from streamridge.service.ledger.base import DamagedError, Ledger
from streamridge.service.ledger.records import Issued, SensorRow, Snapshot
from streamridge.service.reissuing import forecast_fault
from streamridge.service.replaying import Log, cuts_again
from streamridge.service.sameness import nearly_equal, nearly_equal_states

NOT_TO_THE_LAST_BIT = (
    "it is the same but for 1e-9 of its numbers, not to the last bit: it was made, or begun, by "
    "another processor or other numerical libraries"
)
PRUNED = "it cannot be made again: its first readings were pruned, or may have been"


@dataclass(frozen=True)
class Verdict:
    """What became of making a sensor again from its log.

    Parameters
    ----------
    sensor
        Its name.
    fault
        What is wrong, in words; None if nothing is.
    remark
        What else there is to say, such as why it could not be made again.
    forecasts
        How many forecasts were compared.
    is_exact
        Whether it is the same to the last bit.
    """

    sensor: str
    fault: str | None = None
    remark: str | None = None
    forecasts: int = 0
    is_exact: bool = False


@dataclass(frozen=True)
class Stored:
    """What a ledger holds of a sensor beside its log; it is read first, since both may grow."""

    done: int
    forecasts: list[Issued]
    snapshot: Snapshot | None

    @classmethod
    def of(cls, ledger: Ledger, sensor: SensorRow) -> Stored:
        """Read what is stored of a sensor."""
        done, forecasts = ledger.done(), list(ledger.forecasts(sensor.id))
        return cls(done, forecasts, ledger.snapshot(sensor.id))


def sampled(sensors: Sequence[SensorRow], count: int | None, seed: int) -> list[SensorRow]:
    """Return some sensors, drawn at random, by their number; all if no count is given."""
    if count is None or count >= len(sensors):
        return list(sensors)
    return sorted(Random(seed).sample(sensors, count), key=lambda sensor: sensor.id)


def verdicts(ledger: Ledger, sensors: Iterable[SensorRow]) -> Iterator[Verdict]:
    """Make sensors again from their logs, one after the other, and compare."""
    with threadpool_limits(1):
        for sensor in sensors:
            yield verdict(ledger, sensor)


def verdict(ledger: Ledger, sensor: SensorRow) -> Verdict:
    """Make one sensor again from its log, and compare it with what is stored."""
    try:
        stored, log = _read(ledger, sensor)
    except DamagedError as error:
        return Verdict(sensor.name, fault=error.reason)
    if int(ledger.facts()["first"]) > 1 and not log.is_whole:
        return Verdict(sensor.name, remark=PRUNED)
    if not log.tells_its_declaration:
        return Verdict(sensor.name, fault="it is declared otherwise than its log says.")
    try:
        return _compared(log, stored)
    except StreamRidgeError as error:
        return Verdict(sensor.name, fault=f"what is stored cannot be read: {error.reason}")


def _read(ledger: Ledger, sensor: SensorRow) -> tuple[Stored, Log]:
    """Return what is stored of a sensor, and its log, with no cut in between."""
    while True:
        stored, log = Stored.of(ledger, sensor), Log.of(ledger, sensor)
        if ledger.snapshot(sensor.id) == stored.snapshot:
            return stored, log


def _compared(log: Log, stored: Stored) -> Verdict:
    name, made = log.sensor.name, list(cuts_again(log))
    for number, again in enumerate(made):
        fault = _cut_fault(log, number, again)
        if fault is not None:
            return Verdict(name, fault=fault)
    fault = _snapshot_fault(stored.snapshot, made)
    if fault is not None:
        return Verdict(name, fault=fault)
    exact = _is_exact(stored.snapshot, log, made)
    fault = forecast_fault(log, stored.forecasts, stored.done, made, exact=exact)
    remark = None if exact else NOT_TO_THE_LAST_BIT
    return Verdict(name, fault, remark, len(stored.forecasts), exact)


def _cut_fault(log: Log, number: int, made: Snapshot) -> str | None:
    """Return what is wrong with a cut, given what the log makes of it."""
    cut = log.cuts[number]
    if made.cut != cut:
        kinds = f"stored as {cut.kind!r}, and the log gives {made.cut.kind!r}"
        return f"its cut at arrival number {cut.seq} is {kinds}."
    if not nearly_equal(made.tuning, log.tunings[number]):
        return f"its hyperparameters at arrival number {cut.seq} are not what its log gives."
    return None


def _snapshot_fault(stored: Snapshot | None, made: Sequence[Snapshot]) -> str | None:
    """Return what is wrong with the last snapshot, given the cuts that were made again."""
    if stored is None:
        return "it has cuts, and no snapshot." if made else None
    last = made[-1] if made else None
    if last is None or last.cut != stored.cut:
        return f"its snapshot, of arrival number {stored.cut.seq}, is not of its last cut."
    if not nearly_equal_states(last.state, stored.state):
        return f"its state at arrival number {stored.cut.seq} is not what its log gives."
    if not nearly_equal(_summary(last), _summary(stored)):
        return f"its summary at arrival number {stored.cut.seq} is not what its log gives."
    return None


def _summary(snapshot: Snapshot) -> bytes:
    """Return a summary without the reason of a failed refit, which is not in the log."""
    standing = msgspec.json.decode(snapshot.summary, type=Standing)
    failed = None if standing.failed is None else ""
    return msgspec.json.encode(msgspec.structs.replace(standing, failed=failed))


def _content(snapshot: Snapshot) -> tuple[object, ...]:
    """Return what a state holds, however it is packed."""
    header, arrays = decoded(snapshot.state, "the state")
    return header, [(name, array.dtype, array.tobytes()) for name, array in arrays.items()]


def _is_exact(stored: Snapshot | None, log: Log, made: Sequence[Snapshot]) -> bool:
    """Return whether a sensor is the same to the last bit, as it must be on the same machine."""
    if stored is None:
        return True
    return (
        stored.fingerprint == fingerprint()
        and _content(stored) == _content(made[-1])
        and log.tunings == [each.tuning for each in made]
    )
