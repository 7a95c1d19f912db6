"""A replay of the log gives the stored data bit for bit, and verify finds every fault."""

import asyncio
import random
import sqlite3
import struct
from contextlib import closing

import msgspec
import numpy as np
import pytest

from streamridge.files.checkpoint import decoded, encoded
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.sizes import NAMED
from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.layout import checksum_after, digest_of
from streamridge_service.ledger.opening import open_ledger, restore
from streamridge_service.ledger.reading import arrivals
from streamridge_service.ledger.records import RefitPoint, Snapshot
from streamridge_service.plan import HOUR, MINUTE, Declaration
from streamridge_service.rows import Batch, Row
from streamridge_service.verification.log_replay import SensorLog, replayed_refits
from streamridge_service.verification.verify import check_sensor, check_sensors, sampled
from tests.support.service.in_process import serving, settled

START = 1_700_000_000_000_000 // HOUR * HOUR
# The refits of these names are due soon after enough readings, at hours 173 to 178.
NORTH, SOUTH, RULED = NAMES = ("north-9", "south-24", "ruled-4")
HOURS = 252
HOURLY = {"step": "1h", "train_size": 72}


def value(name, hour):
    noise = random.Random(f"{name}{hour}").gauss(0, 5)
    return float(round(100 + 50 * np.sin(2 * np.pi * hour / 24) + noise, 3))


def rows(name, first, last):
    if name != RULED:
        return [(name, START + hour * HOUR, value(name, hour)) for hour in range(first, last)]
    return [
        (name, START + hour * HOUR + part * 20 * MINUTE, value(name, hour) / 3)
        for hour in range(first, last)
        for part in range(3)
    ]


def batch(readings):
    return Batch([Row(i + 1, *reading) for i, reading in enumerate(readings)], [])


async def lived(service):
    """Feed three sensors: with a backfill and actions, with a new declaration, and with a rule."""
    luck = random.Random(5)
    await service.ingest.store(batch(rows(NORTH, 0, 100)), IngestOptions(mode="backfill"))
    await service.operators.declare(RULED, Declaration(rule="sum", label="Three parts an hour"))
    waiting = []
    for hour in range(100, HOURS):
        new = [reading for name in NAMES for reading in rows(name, hour, hour + 1)]
        luck.shuffle(new)
        late = [reading for reading in new if luck.random() < 0.1]
        await service.ingest.store(
            batch([each for each in new if each not in late] + waiting), IngestOptions()
        )
        waiting = late
        await asyncio.sleep(0)
        if hour == 200:
            await settled(service)
            north = service.intake.sensors[NORTH]
            await service.operators.run(north, "set", {"values": {"regularization": 0.7}})
            await service.operators.run(north, "freeze", {"names": ["regularization"]})
            await service.operators.declare(SOUTH, Declaration(zone="Europe/London"))
        if hour == 230:
            revised = (NORTH, START + 220 * HOUR, 99.0)
            await service.ingest.store(batch([revised]), IngestOptions(on_conflict="replace"))
    await settled(service)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return the storage of a service that has lived."""
    database = tmp_path_factory.mktemp("verify") / "a.db"
    serving(lived, database, **HOURLY)
    return database


@pytest.fixture
def copied(served, tmp_path):
    """Return a copy to spoil."""
    copy = tmp_path / "copy.db"
    with open_ledger(str(served), read_only=True) as ledger:
        ledger.copy_to(str(copy))
    return copy


def is_faulty(database):
    """Return whether `verify` finds a fault; the last sensors are looked at first."""
    with open_ledger(str(database), read_only=True) as ledger:
        if list(ledger.check()):
            return True
        every = check_sensors(ledger, reversed(ledger.sensors()))
        return any(each.fault is not None for each in every)


def test_a_replay_of_an_intact_copy_gives_the_stored_states_byte_for_byte(copied, record_property):
    record_property("row", "F2")
    record_property("cases", len(NAMES))
    with open_ledger(str(copied), read_only=True) as ledger:
        assert not list(ledger.check())
        sensors = ledger.sensors()
        for sensor in sensors:
            again = list(replayed_refits(SensorLog.of(ledger, sensor)))
            assert again[-1] == ledger.snapshot(sensor.id), sensor.name
        found = list(check_sensors(ledger, sensors))
        kinds = {point.kind for sensor in sensors for point in ledger.refit_points(sensor.id)}
        unused = [
            point.unused
            for sensor in sensors
            for point in ledger.refit_points(sensor.id)
            if point.unused
        ]

    assert [(each.fault, each.remark, each.is_exact) for each in found] == [(None, None, True)] * 3
    assert min(each.forecasts for each in found) >= 150
    assert {"refit", "kept", "start"} <= kinds
    assert unused, "some cut was made while later readings were there"


def test_a_database_restored_into_postgresql_verifies(copied, postgres, record_property):
    record_property("row", "F2")
    record_property("cases", 1)
    address = postgres.new_database()

    restore(copied, address)

    with open_ledger(address, read_only=True) as ledger:
        assert not list(ledger.check())
        south = ledger.sensors()[-1]
        assert check_sensor(ledger, south).is_exact


def test_a_sensor_without_refit_points_verifies(tmp_path):
    async def brief(service):
        await service.ingest.store(batch(rows(NORTH, 0, 3)), IngestOptions())
        await settled(service)

    serving(brief, tmp_path / "a.db", **HOURLY)

    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        (north,) = ledger.sensors()
        assert not list(replayed_refits(SensorLog.of(ledger, north)))
        assert check_sensor(ledger, north).fault is None
        assert check_sensor(ledger, north).forecasts == 3


def one(connection, query, *values):
    return connection.execute(query, values).fetchone()


def middle(connection, table="readings", where="1=1"):
    """Return the arrival number in the middle of a table."""
    count = one(connection, f"SELECT count(*) FROM {table} WHERE {where}")[0]
    query = f"SELECT seq FROM {table} WHERE {where} ORDER BY seq LIMIT 1 OFFSET {count // 2}"
    return one(connection, query)[0]


def checksummed(connection, change):
    """Change readings, and let their checksum agree."""
    change(connection)
    columns = "seq, sensor, time, value, received, kind"

    class Session:
        def rows(self, sql, **values):
            return connection.execute(sql, values).fetchall()

    last = int(one(connection, "SELECT value FROM meta WHERE key = 'last'")[0])
    checksum = checksum_after(0, arrivals(Session(), 1, last))
    connection.execute("UPDATE buckets SET checksum = ?", (checksum,))
    return columns


def rewritten(connection, sensor, change):
    """Change a snapshot, and let its digest agree."""
    query = (
        "SELECT p.seq, p.until, p.kind, p.leftover, p.summary, p.tuning, p.fingerprint, s.state "
        "FROM snapshots p JOIN states s ON s.sensor = p.sensor WHERE p.sensor = ?"
    )
    seq, until, kind, unused, summary, tuning, fingerprint, state = one(connection, query, sensor)
    point = RefitPoint(sensor, seq, until, kind.decode(), tuple(msgspec.json.decode(unused)))
    made = change(Snapshot(point, state, summary, tuning, fingerprint.decode()))
    connection.execute(
        "UPDATE snapshots SET summary = ?, tuning = ?, fingerprint = ?, digest = ? "
        "WHERE sensor = ?",
        (made.summary, made.tuning, made.fingerprint.encode(), digest_of(made), sensor),
    )
    connection.execute("UPDATE states SET state = ? WHERE sensor = ?", (made.state, sensor))


def nudged(state, by):
    """Return a state whose numbers are moved by a share of themselves."""
    header, arrays = decoded(state, "state")
    moved = {
        name: array * (1 + by) if array.dtype.kind == "f" else array
        for name, array in arrays.items()
    }
    return encoded(header, moved)


def flipped(column, table, where):
    def flip(connection):
        (content,) = one(connection, f"SELECT {column} FROM {table} WHERE {where}")
        spoilt = bytearray(content)
        spoilt[len(spoilt) // 2] ^= 4
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (bytes(spoilt),))

    return flip


def forecast_moved(connection):
    seq = middle(connection, "forecasts", "sensor = 3")
    numbers = one(connection, "SELECT numbers FROM forecasts WHERE seq = ?", seq)[0]
    value, *band = struct.unpack("<3d", numbers)
    moved = struct.pack("<3d", np.nextafter(value, band[1]), *band)
    connection.execute("UPDATE forecasts SET numbers = ? WHERE seq = ?", (moved, seq))


def sql(statement, table="readings", where="sensor = 3"):
    """Return what runs a statement on the row in the middle of a table."""

    def run(connection):
        connection.execute(statement, {"seq": middle(connection, table, where)})

    return run


# North is the first sensor, the sensor with a rule the second, and south the third.
REFIT = "sensor = 3 AND kind = 'refit'"
FAULTS = {
    "a reading is gone": sql("DELETE FROM readings WHERE seq = :seq"),
    "the last reading is gone": lambda c: c.execute(
        "DELETE FROM readings WHERE seq = (SELECT max(seq) FROM readings)"
    ),
    "a value is another": sql("UPDATE readings SET value = value + 1 WHERE seq = :seq"),
    "a time is another": sql("UPDATE readings SET time = time + 1000000 WHERE seq = :seq"),
    "a kind is another": sql("UPDATE readings SET kind = 3 WHERE seq = :seq"),
    "a reading is of another sensor": sql("UPDATE readings SET sensor = 2 WHERE seq = :seq"),
    "a reading is there twice": sql(
        "INSERT INTO readings SELECT bucket, 2, seq, time, value, received, kind FROM readings "
        "WHERE seq = :seq"
    ),
    "an arrival is too many": lambda c: c.execute("UPDATE meta SET value = '9' WHERE key = 'last'"),
    "a value and its checksum are others": lambda c: checksummed(
        c, sql("UPDATE readings SET value = value + 1 WHERE seq = :seq")
    ),
    "an action is gone": lambda c: c.execute("DELETE FROM actions WHERE kind = 'freeze'"),
    "an action and its checksum are others": lambda c: checksummed(
        c,
        lambda c: c.execute(
            "UPDATE actions SET body = ? WHERE kind = 'set'",
            (b'{"values":{"regularization":0.71}}',),
        ),
    ),
    "a sensor is gone": lambda c: c.execute("DELETE FROM sensors WHERE id = 3"),
    "a declaration is another": lambda c: c.execute(
        "UPDATE sensors SET declared = ? WHERE id = 2", (b'{"rule":"mean"}',)
    ),
    "a refit is gone": sql("DELETE FROM cuts WHERE sensor = 3 AND seq = :seq", "cuts", REFIT),
    "a refit is called kept": sql(
        "UPDATE cuts SET kind = 'kept' WHERE sensor = 3 AND seq = :seq", "cuts", REFIT
    ),
    "a refit is earlier": sql(
        "UPDATE cuts SET seq = seq - 30 WHERE sensor = 3 AND seq = :seq", "cuts", REFIT
    ),
    "hyperparameters of a refit are others": sql(
        "UPDATE cuts SET tuning = x'7b7d' WHERE sensor = 3 AND seq = :seq",
        "cuts",
        REFIT,
    ),
    "the last cut is gone": lambda c: c.execute(
        "DELETE FROM cuts WHERE number = (SELECT max(number) FROM cuts WHERE sensor = 3)"
    ),
    "a byte of a state is flipped": flipped("state", "states", "sensor = 1"),
    "a byte of a summary is flipped": flipped("summary", "snapshots", "sensor = 3"),
    "a state and its digest are others": lambda c: rewritten(
        c, 3, lambda s: msgspec.structs.replace(s, state=nudged(s.state, 1e-6))
    ),
    "a summary and its digest are others": lambda c: rewritten(
        c,
        3,
        lambda s: msgspec.structs.replace(s, summary=s.summary.replace(b'"equal":1', b'"equal":5')),
    ),
    "a state is gone": lambda c: c.execute("DELETE FROM states WHERE sensor = 3"),
    "a snapshot is gone": lambda c: c.execute("DELETE FROM snapshots WHERE sensor = 3"),
    "a forecast is another by one bit": forecast_moved,
    "a forecast is gone": sql("DELETE FROM forecasts WHERE seq = :seq", "forecasts"),
    "a forecast is of another time": sql(
        "UPDATE forecasts SET time = time - 3600000000 WHERE seq = :seq", "forecasts"
    ),
    "a forecast has another source": sql(
        "UPDATE forecasts SET source = 'last' WHERE seq = :seq", "forecasts"
    ),
    "a forecast is of no fit": sql(
        "UPDATE forecasts SET fit = fit - 1 WHERE seq = :seq", "forecasts"
    ),
    "a forecast has a band upside down": sql(
        "UPDATE forecasts SET numbers = zeroblob(25) WHERE seq = :seq", "forecasts"
    ),
    "a list of times is gone": lambda c: c.execute("DELETE FROM buckets"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_found(fault, copied, record_property):
    record_property("row", "F2")
    record_property("cases", 1)
    with closing(sqlite3.connect(copied)) as connection:
        FAULTS[fault](connection)
        assert connection.total_changes > 0
        connection.commit()

    assert is_faulty(copied)


def test_a_damaged_page_is_found(copied, record_property):
    record_property("row", "F2")
    record_property("cases", 1)
    content = bytearray(copied.read_bytes())
    begin = len(content) // 8192 * 4096
    content[begin : begin + 64] = b"\xff" * 64
    copied.write_bytes(content)

    assert is_faulty(copied)


class TestOtherMachines:
    def on_another(self, database, by):
        with closing(sqlite3.connect(database)) as connection:
            rewritten(
                connection,
                1,
                lambda each: msgspec.structs.replace(
                    each, state=nudged(each.state, by), fingerprint="another machine"
                ),
            )
            connection.commit()

    @pytest.mark.parametrize(("by", "is_fault"), [(1e-12, False), (1e-6, True)])
    def test_the_last_digits_may_differ(self, copied, by, is_fault):
        self.on_another(copied, by)

        with open_ledger(str(copied), read_only=True) as ledger:
            found = check_sensor(ledger, ledger.sensors()[0])

        assert (found.fault is not None) == is_fault
        assert not found.is_exact
        if not is_fault:
            assert "another processor" in found.remark


class TestWhatCannotBeMadeAgain:
    def test_a_pruned_sensor_cannot_be_replayed(self, copied):
        with closing(sqlite3.connect(copied)) as connection:
            connection.execute("UPDATE meta SET value = '200' WHERE key = 'first'")
            connection.execute("DELETE FROM readings WHERE seq < 200")
            connection.commit()

        with open_ledger(str(copied), read_only=True) as ledger:
            found = list(check_sensors(ledger, ledger.sensors()))

        assert all(each.fault is None for each in found)
        assert all("pruned" in each.remark for each in found)


def settings_of(ledger, sensor):
    """Return the settings of the forecaster that is stored of a sensor."""
    return Forecaster.from_bytes(ledger.snapshot(sensor.id).state).settings


class TestWhatIsAskedOfTheService:
    """A plan and a declaration have their place in the log, and begin a new forecaster there."""

    def test_known_sensors_follow_a_new_plan(self, copied):
        async def went_on(service):
            for hour in range(HOURS, HOURS + 30, 6):
                await service.ingest.store(batch(rows(NORTH, hour, hour + 6)), IngestOptions())
                await settled(service)

        serving(went_on, copied, **{**HOURLY, "horizon": 3, "train_size": 72, "grace": "2h"})

        with open_ledger(str(copied), read_only=True) as ledger:
            north, *others = ledger.sensors()
            issued = list(ledger.forecasts(north.id))
            settings = settings_of(ledger, north)
            assert [len(each.values) for each in (issued[0], issued[-1])] == [1, 3]
            assert (settings.horizon, settings.train_size) == (3, 72)
            assert check_sensor(ledger, north).is_exact
            # Sensors without new readings follow at their next reading.
            assert all(check_sensor(ledger, other).is_exact for other in others)

    @pytest.mark.parametrize("model", ["compact", pytest.param("long", marks=pytest.mark.slow)])
    def test_known_sensors_follow_a_new_model_size(self, copied, model):
        async def went_on(service):
            for hour in range(HOURS, HOURS + 3):
                await service.ingest.store(batch(rows(NORTH, hour, hour + 1)), IngestOptions())
                await settled(service)

        serving(went_on, copied, **{**HOURLY, "model": model})

        with open_ledger(str(copied), read_only=True) as ledger:
            north, *_ = ledger.sensors()
            seasons = settings_of(ledger, north).preset.features.seasons
            assert NAMED[model].profile_seasons == tuple(season.count for season in seasons)
            assert check_sensor(ledger, north).is_exact

    def test_the_same_plan_changes_nothing(self, copied):
        with open_ledger(str(copied), read_only=True) as ledger:
            last = ledger.last_seq()

        serving(settled, copied, **HOURLY)

        with open_ledger(str(copied), read_only=True) as ledger:
            assert ledger.last_seq() == last

    def test_declarations_before_and_after_the_first_reading_verify(self, tmp_path):
        async def declared_twice(service):
            await service.operators.declare(NORTH, Declaration(bounds=(0.0, 900.0)))
            await service.ingest.store(batch(rows(NORTH, 0, 60)), IngestOptions())
            await settled(service)
            await service.operators.declare(NORTH, Declaration(bounds=(0.0, 800.0)))
            await settled(service)

        serving(declared_twice, tmp_path / "a.db", **HOURLY)

        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            (north,) = ledger.sensors()
            found = check_sensor(ledger, north)
            kinds = [point.kind for point in ledger.refit_points(north.id)]
            assert (found.fault, found.remark, found.forecasts) == (None, None, 60)
            assert kinds[-1] == "start"
            assert Forecaster.from_bytes(ledger.snapshot(north.id).state).settings.bounds == (
                0,
                800,
            )

    def test_a_start_ignores_an_open_step(self, tmp_path):
        quarters = [(NORTH, START + 15 * MINUTE * number, 1.0) for number in range(60 * 4)]

        async def begun_within_a_step(service):
            await service.ingest.store(
                batch(quarters[:202]), IngestOptions()
            )  # two of four quarters
            await settled(service)
            await service.operators.run(service.intake.sensors[NORTH], "reset", {})
            await settled(service)
            await service.ingest.store(batch(quarters[202:]), IngestOptions())
            await settled(service)

        serving(begun_within_a_step, tmp_path / "a.db", **HOURLY, rule="sum")

        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            (north,) = ledger.sensors()
            (reset,) = [point for point in ledger.refit_points(north.id) if point.kind == "reset"]
            assert len(reset.unused) == 2
            assert reset.until == START + 49 * HOUR
            assert check_sensor(ledger, north).is_exact
            issued = list(ledger.forecasts(north.id))
            assert all(each.values[0] == pytest.approx(4.0) for each in issued[5:])


def test_a_rebuilt_sensor_verifies(copied, record_property):
    record_property("row", "A6")
    record_property("cases", 1)
    with closing(sqlite3.connect(copied)) as connection:
        flipped("state", "states", "sensor = 1")(connection)
        connection.commit()

    async def went_on(service):
        for hour in range(HOURS, HOURS + 30):
            await service.ingest.store(batch(rows(NORTH, hour, hour + 1)), IngestOptions())
            await settled(service)

    serving(went_on, copied, **HOURLY)

    with open_ledger(str(copied), read_only=True) as ledger:
        north = ledger.sensors()[0]
        assert "rebuilt" in [point.kind for point in ledger.refit_points(north.id)]
        assert check_sensor(ledger, north).is_exact


def test_a_seed_draws_the_same_sample(served):
    with open_ledger(str(served), read_only=True) as ledger:
        sensors = ledger.sensors()

    assert sampled(sensors, 2, 7) == sampled(sensors, 2, 7)
    assert len(sampled(sensors, 2, 7)) == 2
    assert sampled(sensors, None, 7) == sampled(sensors, 99, 7) == sensors
