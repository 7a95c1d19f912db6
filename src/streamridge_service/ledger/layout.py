"""Conversion between records and table rows, and the checksums that protect them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from streamridge_service.ledger.errors import DamagedError
from streamridge_service.ledger.records import (
    Action,
    GroupMember,
    GroupStep,
    IssuedForecast,
    RefitPoint,
    Snapshot,
    StoredReading,
    Token,
)
from streamridge_service.ledger.schema import SqlRow

# Readings and forecasts are clustered by the bucket of their arrival number, then by sensor. A
# batch of all sensors then writes few adjacent pages, and a sensor's day is read from a few pages.
BUCKET = 1 << 17

_encoded = msgspec.msgpack.Encoder().encode
numbers_of = msgspec.json.Decoder(tuple[int, ...]).decode
_members_of = msgspec.msgpack.Decoder(
    tuple[tuple[int, int, float] | None, tuple[GroupMember, ...]]
).decode


def bucket_of(seq: int) -> int:
    """Return the bucket of an arrival number."""
    return seq // BUCKET


def bucket_ends(bucket: int) -> tuple[int, int]:
    """Return the first and the last arrival number of a bucket."""
    return bucket * BUCKET, (bucket + 1) * BUCKET - 1


def normalized(reading: StoredReading) -> StoredReading:
    """Return a reading as every database returns it: -0.0 becomes 0.0, and 5 becomes 5.0.

    Examples
    --------
    >>> normalized(StoredReading(seq=1, sensor=1, time=0, value=-0.0, received=0)).value
    0.0
    """
    value = reading.value
    if value is None or (value and type(value) is float):
        return reading
    return msgspec.structs.replace(reading, value=value + 0.0)


def reading_row(reading: StoredReading) -> SqlRow:
    """Return the row of a reading."""
    return (
        bucket_of(reading.seq),
        reading.sensor,
        reading.seq,
        reading.time,
        reading.value,
        reading.received,
        int(reading.kind),
    )


def checksum_after(checksum: int, arrived: Iterable[StoredReading | Action]) -> int:
    """Return the checksum of a bucket after more records, in order of arrival."""
    return zlib.crc32(b"".join(map(_encoded, arrived)), checksum)


def refit_point_row(number: int, snapshot: Snapshot) -> SqlRow:
    """Return the row of a refit point; `number` orders points of the same arrival number."""
    point = snapshot.point
    return (
        number,
        point.sensor,
        point.seq,
        point.until,
        point.kind,
        msgspec.json.encode(point.unused),
        snapshot.tuning,
    )


def refit_point_of(row: SqlRow) -> RefitPoint:
    """Return a refit point from the columns sensor, seq, until, kind, leftover."""
    sensor, seq, until, kind, unused = row
    return RefitPoint(sensor, seq, until, kind, numbers_of(unused))


def snapshot_row(snapshot: Snapshot) -> SqlRow:
    """Return the row of a snapshot; its state goes into another table."""
    point = snapshot.point
    return (
        point.sensor,
        point.seq,
        point.until,
        point.kind.encode(),
        msgspec.json.encode(point.unused),
        snapshot.summary,
        snapshot.tuning,
        snapshot.fingerprint.encode(),
        digest_of(snapshot),
    )


def snapshot_of(row: SqlRow) -> Snapshot:
    """Return a snapshot from its row and its state; raise if its digest differs."""
    sensor, seq, until, kind, unused, summary, tuning, fingerprint, digest, state = row
    try:
        point = RefitPoint(sensor, seq, until, kind.decode(), numbers_of(unused))
        snapshot = Snapshot(point, state, summary, tuning, fingerprint.decode())
        intact = digest_of(snapshot) == digest
    except (msgspec.MsgspecError, UnicodeError, AttributeError, TypeError):
        intact = False  # a damaged page may even change the type of a value
    if not intact:
        raise DamagedError(
            f"the snapshot of sensor {sensor} is damaged; its forecaster must be rebuilt from the "
            "readings."
        )
    return snapshot


def digest_of(snapshot: Snapshot) -> bytes:
    """Return a digest of all fields of a snapshot."""
    return blake2b(_encoded(snapshot), digest_size=16).digest()


def forecast_row(forecast: IssuedForecast) -> SqlRow:
    """Return the row of a forecast; its numbers are packed as little-endian doubles."""
    numbers = (*forecast.values, *forecast.lower, *forecast.upper)
    return (
        bucket_of(forecast.seq),
        forecast.sensor,
        forecast.seq,
        forecast.time,
        forecast.fit,
        forecast.source,
        struct.pack(f"<{len(numbers)}d", *numbers),
    )


def correction_row(forecast: IssuedForecast) -> SqlRow:
    """Return the row of a corrected forecast; the rest is in the row of the forecast."""
    bucket, sensor, seq, *_, numbers = forecast_row(forecast)
    return bucket, sensor, seq, numbers


def group_step_row(step: GroupStep) -> SqlRow:
    """Return the row of a step of a group."""
    seq = max((max(each.own, each.following) for each in step.members), default=0)
    return step.group, step.step, step.time, seq, _encoded((step.begins, step.members))


def group_step_of(row: SqlRow) -> GroupStep:
    """Return a step of a group from the columns name, step, time, body."""
    name, length, time, body = row
    try:
        return GroupStep(name, length, time, *_members_of(body))
    except msgspec.MsgspecError:
        raise DamagedError(f"a step of group {name} is damaged.") from None


def forecast_of(row: SqlRow) -> IssuedForecast:
    """Return a forecast from the columns seq, sensor, time, fit, source, numbers."""
    seq, sensor, time, fit, source, packed = row
    values, lower, upper = unpacked_bands(packed)
    return IssuedForecast(seq, sensor, time, fit, source, values, lower, upper)


def unpacked_bands(packed: bytes) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Return the values, lower bounds and upper bounds of a packed forecast."""
    numbers = struct.unpack(f"<{len(packed) // 8}d", packed)
    steps = len(numbers) // 3
    return numbers[:steps], numbers[steps : 2 * steps], numbers[2 * steps :]


def token_row(token: Token) -> SqlRow:
    """Return the row of a token."""
    scopes = " ".join(token.scopes)
    return (
        token.id,
        token.name,
        token.digest,
        scopes,
        token.created,
        token.expires,
        token.revoked,
    )


def token_of(row: SqlRow) -> Token:
    """Return a token from its row."""
    number, name, digest, scopes, *times = row
    return Token(number, name, digest, tuple(scopes.split()), *times)
