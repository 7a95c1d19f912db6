"""How the records of a ledger lie in its tables, and the digests that guard them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from streamridge.service.ledger.base import BUCKET, DamagedError
from streamridge.service.ledger.records import Action, Cut, Entry, Issued, Snapshot, Token
from streamridge.service.ledger.sessions import Row

_encoded = msgspec.msgpack.Encoder().encode
numbers_of = msgspec.json.Decoder(tuple[int, ...]).decode


def bucket_of(seq: int) -> int:
    """Return the bucket of an arrival number."""
    return seq // BUCKET


def normal(entry: Entry) -> Entry:
    """Return a reading as every database gives it back: -0.0 is zero, and 5 is 5.0.

    Examples
    --------
    >>> normal(Entry(seq=1, sensor=1, time=0, value=-0.0, received=0)).value
    0.0
    """
    value = entry.value
    if value is None or (value and type(value) is float):
        return entry
    return msgspec.structs.replace(entry, value=value + 0.0)


def entry_row(entry: Entry) -> Row:
    """Return the row of a reading."""
    return (
        entry.seq // BUCKET,
        entry.sensor,
        entry.seq,
        entry.time,
        entry.value,
        entry.received,
        int(entry.kind),
    )


def checksum_after(checksum: int, arrived: Iterable[Entry | Action]) -> int:
    """Return the checksum of a bucket after more has arrived, in order."""
    return zlib.crc32(b"".join(map(_encoded, arrived)), checksum)


def leftover(cut: Cut) -> bytes:
    """Return the arrival numbers that a cut left, as they are stored."""
    return msgspec.json.encode(cut.left)


def cut_row(number: int, snapshot: Snapshot) -> Row:
    """Return the row of a cut; its number orders the cuts of a sensor at one arrival number."""
    cut = snapshot.cut
    return number, cut.sensor, cut.seq, cut.until, cut.kind, leftover(cut), snapshot.tuning


def cut_of(row: Row) -> Cut:
    """Return a cut of the columns sensor, seq, until, kind, leftover."""
    sensor, seq, until, kind, left = row
    return Cut(sensor, seq, until, kind, numbers_of(left))


def snapshot_row(snapshot: Snapshot) -> Row:
    """Return the row of a snapshot, whose state is kept elsewhere."""
    cut = snapshot.cut
    return (
        cut.sensor,
        cut.seq,
        cut.until,
        cut.kind.encode(),
        leftover(cut),
        snapshot.summary,
        snapshot.tuning,
        snapshot.fingerprint.encode(),
        digest_of(snapshot),
    )


def snapshot_of(row: Row) -> Snapshot:
    """Return a snapshot of its row and its state, or raise if it is not what was stored."""
    sensor, seq, until, kind, left, summary, tuning, fingerprint, digest, state = row
    try:
        cut = Cut(sensor, seq, until, kind.decode(), numbers_of(left))
        snapshot = Snapshot(cut, state, summary, tuning, fingerprint.decode())
        sound = digest_of(snapshot) == digest
    except (msgspec.MsgspecError, UnicodeError):
        sound = False
    if not sound:
        raise DamagedError(
            f"the snapshot of sensor {sensor} is damaged; its forecaster must be made again from "
            "the readings."
        )
    return snapshot


def digest_of(snapshot: Snapshot) -> bytes:
    """Return a digest over all of a snapshot."""
    return blake2b(_encoded(snapshot), digest_size=16).digest()


def forecast_row(forecast: Issued) -> Row:
    """Return the row of a forecast; its numbers are little-endian doubles."""
    numbers = (*forecast.values, *forecast.lower, *forecast.upper)
    return (
        forecast.seq // BUCKET,
        forecast.sensor,
        forecast.seq,
        forecast.time,
        forecast.fit,
        forecast.source,
        struct.pack(f"<{len(numbers)}d", *numbers),
    )


def forecast_of(row: Row) -> Issued:
    """Return a forecast of the columns seq, sensor, time, fit, source, numbers."""
    seq, sensor, time, fit, source, packed = row
    values, lower, upper = thirds(packed)
    return Issued(seq, sensor, time, fit, source, values, lower, upper)


def thirds(packed: bytes) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Return the values of a forecast, and the lower and upper ends of its band."""
    numbers = struct.unpack(f"<{len(packed) // 8}d", packed)
    steps = len(numbers) // 3
    return numbers[:steps], numbers[steps : 2 * steps], numbers[2 * steps :]


def token_row(token: Token) -> Row:
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


def token_of(row: Row) -> Token:
    """Return a token of its row."""
    number, name, digest, scopes, *times = row
    return Token(number, name, digest, tuple(scopes.split()), *times)
