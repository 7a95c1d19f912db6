"""A storage is made again from its log to the last bit, and any fault in it is found."""

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
from streamridge.forecaster.presets import landmarks_of
from streamridge.service.intake import Wish
from streamridge.service.ledger.layout import checksum_after, digest_of
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.reading import arrivals
from streamridge.service.ledger.records import Cut, Snapshot
from streamridge.service.ledger.restoring import restore
from streamridge.service.plan import HOUR, MINUTE, Declaration
from streamridge.service.replaying import Log, cuts_again
from streamridge.service.rows import Batch, Row
from streamridge.service.verify import sampled, verdict, verdicts
from tests.service.ledger.postgres_server import PostgresServer
from tests.service.living import serving, settled

START = 1_700_000_000_000_000 // HOUR * HOUR
# By these names, refits are due soon after there are enough readings, at the hours 173 to 178.
NORTH, SOUTH, RULED = NAMES = ("north-9", "south-24", "ruled-4")
HOURS = 286
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
    """Let three sensors live: one is backfilled and acted on, one declared anew, one combined."""
    luck = random.Random(5)
    await service.take(batch(rows(NORTH, 0, 100)), Wish(mode="backfill"))
    await service.declare(RULED, Declaration(rule="sum", label="Three parts an hour"))
    waiting = []
    for hour in range(100, HOURS):
        new = [reading for name in NAMES for reading in rows(name, hour, hour + 1)]
        luck.shuffle(new)
        late = [reading for reading in new if luck.random() < 0.1]
        await service.take(batch([each for each in new if each not in late] + waiting), Wish())
        waiting = late
        await asyncio.sleep(0)
        if hour == 200:
            await settled(service)
            north = service.intake.sensors[NORTH]
            await service.act(north, "set", {"values": {"regularization": 0.7}})
            await service.act(north, "freeze", {"names": ["regularization"]})
            await service.declare(SOUTH, Declaration(zone="Europe/London"))
        if hour == 230:
            revised = (NORTH, START + 220 * HOUR, 99.0)
            await service.take(batch([revised]), Wish(on_conflict="replace"))
    await settled(service)
    await asyncio.sleep(0.2)


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
        every = verdicts(ledger, reversed(ledger.sensors()))
        return any(each.fault is not None for each in every)


def test_states_are_functions_of_the_log_to_the_last_byte(served, record_property):
    record_property("row", "F2")
    record_property("cases", len(NAMES))
    with open_ledger(str(served), read_only=True) as ledger:
        sensors = ledger.sensors()
        for sensor in sensors:
            again = list(cuts_again(Log.of(ledger, sensor)))
            assert again[-1] == ledger.snapshot(sensor.id), sensor.name
        found = list(verdicts(ledger, sensors))
        kinds = {cut.kind for sensor in sensors for cut in ledger.cuts(sensor.id)}
        left = [cut.left for sensor in sensors for cut in ledger.cuts(sensor.id) if cut.left]

    assert [(each.fault, each.remark, each.is_exact) for each in found] == [(None, None, True)] * 3
    assert min(each.forecasts for each in found) > 150
    assert {"refit", "kept", "start"} <= kinds
    assert left, "some cut was made while later readings were there"


def test_restored_into_postgresql_it_is_the_same(copied, record_property):
    record_property("row", "F2")
    record_property("cases", 1)
    try:
        server = PostgresServer()
    except OSError as error:
        pytest.skip(f"NO POSTGRESQL: its ledger is NOT verified here, since {error}")
    try:
        address = server.new_database()
        restore(copied, address)
        with open_ledger(address, read_only=True) as ledger:
            assert not list(ledger.check())
            south = ledger.sensors()[-1]
            assert verdict(ledger, south).is_exact
    finally:
        server.stop()


def test_a_sensor_without_cuts_has_nothing_to_be_made_again(tmp_path):
    async def brief(service):
        await service.take(batch(rows(NORTH, 0, 3)), Wish())
        await settled(service)

    serving(brief, tmp_path / "a.db", **HOURLY)

    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        (north,) = ledger.sensors()
        assert not list(cuts_again(Log.of(ledger, north)))
        assert verdict(ledger, north).fault is None
        assert verdict(ledger, north).forecasts == 3


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
    seq, until, kind, left, summary, tuning, fingerprint, state = one(connection, query, sensor)
    cut = Cut(sensor, seq, until, kind.decode(), tuple(msgspec.json.decode(left)))
    made = change(Snapshot(cut, state, summary, tuning, fingerprint.decode()))
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


# North is the first sensor, the one of a rule the second, and south the third.
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


def test_a_sound_copy_has_no_fault(copied):
    assert not is_faulty(copied)


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
            found = verdict(ledger, ledger.sensors()[0])

        assert (found.fault is not None) == is_fault
        assert not found.is_exact
        if not is_fault:
            assert "another processor" in found.remark


class TestWhatCannotBeMadeAgain:
    def test_pruned_sensors_are_named(self, copied):
        with closing(sqlite3.connect(copied)) as connection:
            connection.execute("UPDATE meta SET value = '200' WHERE key = 'first'")
            connection.execute("DELETE FROM readings WHERE seq < 200")
            connection.commit()

        with open_ledger(str(copied), read_only=True) as ledger:
            found = list(verdicts(ledger, ledger.sensors()))

        assert all(each.fault is None for each in found)
        assert all("pruned" in each.remark for each in found)


def settings_of(ledger, sensor):
    """Return the settings of the forecaster that is stored of a sensor."""
    return Forecaster.from_bytes(ledger.snapshot(sensor.id).state).settings


class TestWhatIsAskedOfTheService:
    """A plan and a declaration have their place in the log, and begin a new forecaster there."""

    def test_another_plan_is_followed_by_sensors_that_are_known(self, copied):
        async def went_on(service):
            for hour in range(HOURS, HOURS + 30):
                await service.take(batch(rows(NORTH, hour, hour + 1)), Wish())
                await settled(service)

        serving(went_on, copied, **{**HOURLY, "horizon": 3, "train_size": 72, "grace": "2h"})

        with open_ledger(str(copied), read_only=True) as ledger:
            north, *others = ledger.sensors()
            issued = list(ledger.forecasts(north.id))
            settings = settings_of(ledger, north)
            assert [len(each.values) for each in (issued[0], issued[-1])] == [1, 3]
            assert (settings.horizon, settings.train_size) == (3, 72)
            assert verdict(ledger, north).is_exact
            # Those of which nothing has come since go on when something does.
            assert all(verdict(ledger, other).is_exact for other in others)

    @pytest.mark.parametrize("model", ["compact", "long"])
    def test_a_model_of_another_size_is_followed(self, copied, model):
        async def went_on(service):
            for hour in range(HOURS, HOURS + 3):
                await service.take(batch(rows(NORTH, hour, hour + 1)), Wish())
                await settled(service)

        serving(went_on, copied, **{**HOURLY, "model": model})

        with open_ledger(str(copied), read_only=True) as ledger:
            north, *_ = ledger.sensors()
            assert landmarks_of(settings_of(ledger, north).preset) is not None
            assert verdict(ledger, north).is_exact

    def test_the_same_plan_again_is_no_change(self, copied):
        with open_ledger(str(copied), read_only=True) as ledger:
            last = ledger.last()

        serving(settled, copied, **HOURLY)

        with open_ledger(str(copied), read_only=True) as ledger:
            assert ledger.last() == last

    def test_a_sensor_may_be_declared_before_its_first_reading_and_again(self, tmp_path):
        async def declared_twice(service):
            await service.declare(NORTH, Declaration(bounds=(0.0, 900.0)))
            await service.take(batch(rows(NORTH, 0, 60)), Wish())
            await settled(service)
            await service.declare(NORTH, Declaration(bounds=(0.0, 800.0)))
            await settled(service)

        serving(declared_twice, tmp_path / "a.db", **HOURLY)

        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            (north,) = ledger.sensors()
            found = verdict(ledger, north)
            kinds = [cut.kind for cut in ledger.cuts(north.id)]
            assert (found.fault, found.remark, found.forecasts) == (None, None, 60)
            assert kinds[-1] == "start"
            assert Forecaster.from_bytes(ledger.snapshot(north.id).state).settings.bounds == (
                0,
                800,
            )

    def test_a_start_does_not_count_a_step_that_is_not_over(self, tmp_path):
        quarters = [(NORTH, START + 15 * MINUTE * number, 1.0) for number in range(60 * 4)]

        async def begun_within_a_step(service):
            await service.take(batch(quarters[:202]), Wish())  # two of four quarters
            await settled(service)
            await service.act(service.intake.sensors[NORTH], "reset", {})
            await settled(service)
            await service.take(batch(quarters[202:]), Wish())
            await settled(service)

        serving(begun_within_a_step, tmp_path / "a.db", **HOURLY, rule="sum")

        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            (north,) = ledger.sensors()
            (reset,) = [cut for cut in ledger.cuts(north.id) if cut.kind == "reset"]
            assert len(reset.left) == 2
            assert reset.until == START + 49 * HOUR
            assert verdict(ledger, north).is_exact
            issued = list(ledger.forecasts(north.id))
            assert all(each.values[0] == pytest.approx(4.0) for each in issued[5:])


def test_a_sensor_that_was_rebuilt_is_made_again_too(copied, record_property):
    record_property("row", "A6")
    record_property("cases", 1)
    with closing(sqlite3.connect(copied)) as connection:
        flipped("state", "states", "sensor = 1")(connection)
        connection.commit()

    async def went_on(service):
        for hour in range(HOURS, HOURS + 30):
            await service.take(batch(rows(NORTH, hour, hour + 1)), Wish())
            await settled(service)
        await asyncio.sleep(0.3)
        await settled(service)

    serving(went_on, copied, **HOURLY)

    with open_ledger(str(copied), read_only=True) as ledger:
        north = ledger.sensors()[0]
        assert "rebuilt" in [cut.kind for cut in ledger.cuts(north.id)]
        assert verdict(ledger, north).is_exact


def test_samples_are_drawn_again_by_their_seed(served):
    with open_ledger(str(served), read_only=True) as ledger:
        sensors = ledger.sensors()

    assert sampled(sensors, 2, 7) == sampled(sensors, 2, 7)
    assert len(sampled(sensors, 2, 7)) == 2
    assert sampled(sensors, None, 7) == sampled(sensors, 99, 7) == sensors
