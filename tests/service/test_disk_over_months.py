"""A disk that fills over months is reported in time, and deleted data can be exported before."""

import math
import re

import msgspec
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from streamridge.cli.main import app
from streamridge_service.ledger import layout
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.plan_log import record_plan
from streamridge_service.ledger.records import IssuedForecast, Kind
from streamridge_service.plan import HOUR, Plan
from streamridge_service.service.health import Health
from streamridge_service.service.machine_clock import MachineClock
from streamridge_service.workers.tracker import to_datetime
from tests.support.ledger.samples import NOON, STEP, entries, forecast, sensor, snapshot

ARRIVALS = 1000
GB = 10**9


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Give a database with readings of all kinds, and forecasts of one step or two."""
    monkeypatch.setattr(layout, "BUCKET", 100)
    readings = [
        msgspec.structs.replace(
            entry,
            value=None if entry.seq % 17 == 0 else entry.value,
            kind=Kind(entry.seq % len(Kind)),
        )
        for entry in entries(1, ARRIVALS)
    ]
    issued = [forecast(seq, horizon=1 + seq % 2) for seq in range(1, ARRIVALS + 1)]
    with open_ledger(str(tmp_path / "a.db")) as ledger:
        ledger.append([sensor(number) for number in (1, 2, 3, 4)], readings)
        ledger.add_forecasts(issued, done=ARRIVALS)
        ledger.add_snapshots([snapshot(ARRIVALS, number) for number in (1, 2, 3, 4)])
        record_plan(ledger, Plan(step=STEP), now=0)
    return tmp_path / "a.db"


def run(database, *arguments):
    result = CliRunner().invoke(app, [*map(str, arguments), "--database", str(database)])
    assert result.exit_code == 0, result.output
    return result.stderr


def held(database):
    """Return the readings and forecasts that a database holds, by arrival number."""
    with open_ledger(str(database), read_only=True) as ledger:
        names = {each.id: each.name for each in ledger.sensors()}
        readings = {
            entry.seq: (names[entry.sensor], entry.time, entry.value, entry.kind, entry.received)
            for entry in ledger.readings_after(0)
        }
        return readings, {each.seq: each for each in ledger.forecasts()}, names


def exported_readings(path):
    """Return the readings of a file by arrival number, as they are held in a database."""
    return {
        row["seq"]: (
            row["sensor"],
            microseconds(row["time"]),
            None if row["value"] is None or math.isnan(row["value"]) else row["value"],
            Kind[row["kind"].upper()],
            microseconds(row["received"]),
        )
        for row in pyarrow.parquet.read_table(path).to_pylist()
    }


def exported_forecasts(path, numbers):
    """Return the forecasts of a file by arrival number, as they are held in a database."""
    found = {}
    for row in pyarrow.parquet.read_table(path).to_pylist():
        found.setdefault(row["issued_at_seq"], []).append(row)
    return {
        seq: IssuedForecast(
            seq,
            numbers[steps[0]["sensor"]],
            microseconds(steps[0]["time"]),
            steps[0]["fit"],
            steps[0]["source"],
            *(tuple(step[name] for step in steps) for name in ("value", "lower", "upper")),
        )
        for seq, steps in found.items()
    }


def microseconds(moment):
    return round(moment.timestamp() * 1e6)


def test_an_export_before_pruning_keeps_every_digit(database, tmp_path, record_property):
    record_property("row", "D7")
    record_property("cases", 2 * ARRIVALS)
    readings, forecasts, names = held(database)
    numbers = {name: number for number, name in names.items()}
    middle = to_datetime(NOON + ARRIVALS // 4 // 2 * STEP).isoformat()

    run(database, "export", tmp_path / "readings.parquet")
    run(database, "export", tmp_path / "forecasts.parquet", "--what", "forecasts")
    told = run(database, "prune", "--before", middle, "--yes")

    left, still_issued, _ = held(database)
    dropped = int(re.search(r"Deleted ([\d,]+) readings", told)[1].replace(",", ""))
    assert 0 < dropped == ARRIVALS - len(left) < ARRIVALS / 2
    assert exported_readings(tmp_path / "readings.parquet") == readings
    assert exported_forecasts(tmp_path / "forecasts.parquet", numbers) == forecasts
    # The oldest are gone, and of the others none.
    assert left == {seq: each for seq, each in readings.items() if seq > dropped}
    assert still_issued == {seq: each for seq, each in forecasts.items() if seq > dropped}


@pytest.mark.parametrize(
    ("free", "then", "left"),
    [(36 * GB, 4 * GB, 18.0), (GB, 4 * GB, 0.5), (0, 4 * GB, 0.0), (GB, 7 * GB, None)],
)
def test_the_remaining_days_follow_from_the_daily_growth(free, then, left, record_property):
    record_property("row", "D7")
    hours = iter((0, 36))
    clock = MachineClock(wall=lambda: NOON)
    health = Health(clock, writer=None, min_free=0)
    clock.now = lambda: NOON + next(hours) * HOUR

    health.set_disk({"data": then, "free": free})
    health.set_disk({"data": 7 * GB, "free": free})

    assert health.days_left == (left if left is None else pytest.approx(left, abs=1e-3))
