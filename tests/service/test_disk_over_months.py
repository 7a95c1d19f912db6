"""A disk that fills over months: it is told in time, and what is dropped can be kept elsewhere."""

import math
import re

import msgspec
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from streamridge.cli.main import app
from streamridge.service.fleet.tracker import stamp
from streamridge.service.ledger import checking, layout, pruning
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.records import Issued, Kind
from streamridge.service.plan import HOUR
from streamridge.service.service import Service
from tests.service.ledger.samples import NOON, STEP, entries, forecast, sensor, snapshot
from tests.service.living import small

ARRIVALS = 1000
GB = 10**9


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Give a database with readings of all kinds, and forecasts of one step or two."""
    for module in (layout, checking, pruning):
        monkeypatch.setattr(module, "BUCKET", 100)
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
        ledger.issue(issued, done=ARRIVALS)
        ledger.keep([snapshot(ARRIVALS, number) for number in (1, 2, 3, 4)])
        ledger.put_facts({"step": str(STEP)})
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
            for entry in ledger.recent(0)
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
        seq: Issued(
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


def test_what_is_exported_and_pruned_is_lost_to_no_digit(database, tmp_path, record_property):
    record_property("row", "D7")
    record_property("cases", 2 * ARRIVALS)
    readings, forecasts, names = held(database)
    numbers = {name: number for number, name in names.items()}
    middle = stamp(NOON + ARRIVALS // 4 // 2 * STEP).isoformat()

    run(database, "export", tmp_path / "readings.parquet")
    run(database, "export", tmp_path / "forecasts.parquet", "--what", "forecasts")
    told = run(database, "prune", "--before", middle, "--yes")

    left, still_issued, _ = held(database)
    dropped = int(re.search(r"Dropped ([\d,]+) readings", told)[1].replace(",", ""))
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
def test_the_days_that_are_left_are_told_by_what_a_day_takes(
    tmp_path, free, then, left, record_property
):
    record_property("row", "D7")
    service = Service(small(tmp_path / "a.db"))

    service._size = {"data": 7 * GB, "free": free}
    service._grown = service.clock.now() - 36 * HOUR, then

    assert service.days_left == (left if left is None else pytest.approx(left, abs=1e-3))
