"""Sample records for ledgers, and a digest of all data of a ledger."""

import hashlib
import random

import msgspec

from streamridge_service.ledger.records import (
    Action,
    Event,
    IssuedForecast,
    Kind,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
    Token,
)

STEP = 900_000_000
NOON = 1_760_000_400_000_000 // STEP * STEP


def some_number(seq):
    """Return a number that is another for each arrival number, and fills all its digits."""
    return (seq * 7919 % 30_011) / 97


def sensor(number):
    return SensorRow(number, f"road-{number}", NOON)


def entry(seq, sensors=4, *, time=None, value=None):
    """Return the reading with an arrival number, if sensors report in turn."""
    step, number = divmod(seq - 1, sensors)
    time = NOON + step * STEP if time is None else time
    value = some_number(seq) if value is None else value
    return StoredReading(seq, number + 1, time, value, time + 1_234_567, Kind.LIVE)


def entries(first, last, sensors=4):
    return [entry(seq, sensors) for seq in range(first, last + 1)]


def action(seq, number=1, kind="freeze"):
    return Action(seq, number, kind, b'{"names":["period"]}', NOON + seq)


def forecast(seq, sensors=4, *, horizon=2, fit=0):
    """Return the forecast that the reading with an arrival number led to."""
    made_of = entry(seq, sensors)
    values = tuple(some_number(seq + lead) for lead in range(horizon))
    return IssuedForecast(
        seq,
        made_of.sensor,
        made_of.time + STEP,
        fit,
        "model",
        values,
        tuple(value - 10 for value in values),
        tuple(value + 10 for value in values),
    )


def snapshot(seq, number=1, *, kind="refit", unused=(), size=2000):
    state = random.Random(seq * 1000 + number).randbytes(size)
    point = RefitPoint(number, seq, NOON + seq * STEP, kind, unused)
    return Snapshot(
        point, state, b'{"error":1.5}', f'{{"period":{seq}}}'.encode(), "numpy 2; 1 thread"
    )


def event(number):
    return Event(number, NOON + number, "silent", number % 3 or None, f"no reading, {number}")


def token(number, **changes):
    made = Token(number, f"token-{number}", bytes(32), ("read", "write"), NOON)
    return msgspec.structs.replace(made, **changes)


def filled(ledger, last=200, sensors=4):
    """Fill a ledger with some of everything."""
    ledger.append([sensor(number) for number in range(1, sensors + 1)], entries(1, last, sensors))
    ledger.append(actions=[action(last + 1), action(last + 2, 2, "retune")])
    ledger.add_forecasts([forecast(seq, sensors) for seq in range(1, last + 1)], done=last + 2)
    ledger.add_snapshots([snapshot(seq, number) for seq in (90, 190) for number in (1, 2, 3)])
    ledger.add_events([event(number) for number in range(1, 6)])
    ledger.put_tokens([token(1), token(2, revoked=NOON)])
    ledger.put_facts({"step": "900"})


def contents(ledger):
    """Return all that a ledger holds, in a form that can be compared.

    Its random identity is left out.
    """
    known, facts = ledger.sensors(), ledger.facts()
    del facts["identity"]
    numbers = [one.id for one in known]
    return {
        "last": ledger.last_seq(),
        "done": ledger.done_seq(),
        "sensors": known,
        "entries": [ledger.readings(number) for number in numbers],
        "actions": [ledger.actions(number) for number in numbers],
        "cuts": [ledger.refit_points(number) for number in numbers],
        "tunings": [ledger.tunings(number) for number in numbers],
        "snapshots": [ledger.snapshot(number) for number in numbers],
        "forecasts": list(ledger.forecasts()),
        "events": ledger.events(),
        "tokens": ledger.tokens(),
        "facts": facts,
    }


def digest(ledger):
    """Return a digest of all that a ledger holds, but the version that wrote it."""
    held = contents(ledger)
    del held["facts"]["version"]
    return hashlib.sha256(msgspec.msgpack.encode(held)).hexdigest()
