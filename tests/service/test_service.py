"""A service: readings, restarts, crashed workers, actions and damage."""

import asyncio
import os
import signal
import threading
import time
from itertools import pairwise

import apsw
import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.errors import StorageAwayError
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import Kind, SensorRow, StoredReading
from streamridge_service.plan import Declaration
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch, Row
from streamridge_service.service import service as module
from streamridge_service.service.answers import sensor_item
from streamridge_service.workers import pool
from tests.support.service.in_process import NAMES, WEEK, digest_of, fed, rows_of, serving, settled
from tests.support.service.serve_command import fork_servers
from tests.support.waiting import LIMIT, wait_until_async
from tests.support.workers.logs import DAY, START, STEP

FITTED = 4 * DAY + 40


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Return the database of a service that ran for more than four days without a restart."""
    database = tmp_path_factory.mktemp("service") / "a.db"
    serving(lambda service: fed(service, 0, FITTED), database)
    return database


@pytest.fixture(scope="module")
def digest(lived):
    return digest_of(lived)


class TestRestart:
    def test_restarts_do_not_change_a_bit(self, digest, tmp_path, record_property):
        record_property("row", "A1")
        record_property("cases", 4)
        parts = (0, 50, 2 * DAY + 7, 4 * DAY, FITTED)
        for first, last in pairwise(parts):
            serving(lambda service, a=first, b=last: fed(service, a, b), tmp_path / "a.db")

        assert digest_of(tmp_path / "a.db") == digest

    # With 1 MB, every sensor is parked after each step.
    @pytest.mark.parametrize(
        ("workers", "memory"), [(2, "1MB"), pytest.param(3, "4GB", marks=pytest.mark.slow)]
    )
    def test_neither_workers_nor_memory_change_a_bit(
        self, digest, tmp_path, workers, memory, record_property
    ):
        record_property("row", "A8")
        record_property("cases", 1)
        work = lambda service: fed(service, 0, FITTED)  # noqa: E731
        with capture_logs() as lines:
            serving(work, tmp_path / "a.db", workers=workers, memory=memory)

        assert digest_of(tmp_path / "a.db") == digest
        warned = any("--memory" in line["event"] for line in lines)
        assert warned == (memory == "1MB"), "less than the processes need is logged"

    def test_forecasts_that_were_not_stored_are_made_after_a_restart(self, lived, tmp_path):
        # The power fails after the readings are stored, and before the forecasts are.
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))
        entries = []
        with open_ledger(str(copy)) as ledger:
            entries = [
                msgspec.structs.replace(entry, seq=ledger.last_seq() + 1 + i)
                for i, entry in enumerate(unstored(ledger, FITTED))
            ]
            ledger.append(readings=entries)

        serving(settled, copy)

        with open_ledger(str(copy), read_only=True) as ledger:
            made = [
                each for s in (1, 2, 3) for each in ledger.forecasts(s, after=entries[0].seq - 1)
            ]
        assert sorted(each.seq for each in made) == [each.seq for each in entries]

    def test_a_restarted_service_knows_its_sensors(self, lived):
        async def looked(service):
            item = sensor_item(service.statuses[1], service.now)
            return service.summary(), item

        summary, item = serving(looked, lived)

        assert summary.total == 3
        assert sum(msgspec.structs.astuple(summary.sensors)) == 3
        assert item.value == WEEK["north"][FITTED - 1]
        assert item.forecast.source in ("model", "seasonal", "last")

    def test_readings_before_a_long_backfill_are_known(self, tmp_path, monkeypatch, counted):
        counted("B2", 3)
        monkeypatch.setattr(module, "RECENT", 10)
        live, older = rows_of(50), [row for step in range(4) for row in rows_of(step)]
        with open_ledger(str(tmp_path / "a.db")) as ledger:
            ledger.append([SensorRow(i, name, START) for i, name in enumerate(NAMES, 1)])
            kinds = [*((row, Kind.LIVE) for row in live), *((row, Kind.BACKFILL) for row in older)]
            ledger.append(
                readings=[
                    StoredReading(seq, 1 + NAMES.index(row.sensor), row.time, row.value, 0, kind)
                    for seq, (row, kind) in enumerate(kinds, 1)
                ]
            )

        async def resent(service):
            newest = [service.statuses[i].newest for i in (1, 2, 3)]
            last_step = service.summary().last_step.received
            return newest, last_step, await service.ingest.store(Batch(live, []), IngestOptions())

        newest, last_step, receipt = serving(resent, tmp_path / "a.db")

        assert (receipt.duplicate, receipt.written) == (3, 0)
        assert newest == [row.time for row in live]
        assert last_step == 3


def unstored(ledger, step):
    ids = {each.name: each.id for each in ledger.sensors()}
    return [StoredReading(0, ids[row.sensor], row.time, row.value, 0) for row in rows_of(step)]


class TestWorkers:
    def test_a_crashed_worker_is_restarted_and_nothing_is_lost(
        self, digest, tmp_path, monkeypatch, record_property
    ):
        monkeypatch.setattr(pool, "EARLY_CRASH", 0.0)  # no pause before a restart
        record_property("row", "C2")
        record_property("cases", 6)

        async def killed(service):
            for step in range(0, FITTED, 70):
                await service.ingest.store(Batch(rows_of(step), []), IngestOptions())
                os.kill(service.forecasts.pool.workers[0].pid, signal.SIGKILL)
                await settled(service)
                await fed(service, step + 1, min(step + 70, FITTED))
            return service.forecasts.pool.restarts

        assert serving(killed, tmp_path / "a.db") >= 5
        assert digest_of(tmp_path / "a.db") == digest

    def test_a_sensor_is_not_loaded_from_an_older_snapshot_than_its_last(
        self, tmp_path, monkeypatch
    ):
        rows, stored = [row for step in range(5 * DAY) for row in rows_of(step)], threading.Event()

        async def loaded_early(service):
            add = service.ledger.add_snapshots
            wait = lambda snapshots: (stored.wait(LIMIT), add(snapshots))[1]  # noqa: E731
            monkeypatch.setattr(service.ledger, "add_snapshots", wait)
            await service.ingest.store(Batch(rows, []), IngestOptions(mode="backfill"))
            starts = service.forecasts.counts
            await wait_until_async(lambda: starts["start"] == len(NAMES), "all new starts")
            service.forecasts.pool.take((), [service.intake.sensors["north"]])  # it is dropped
            await service.forecasts.ask(1)
            stored.set()
            await settled(service)
            return starts["start"]

        assert serving(loaded_early, tmp_path / "a.db") == len(NAMES)
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert [point.kind for point in ledger.refit_points(1)] == ["start"]

    def test_a_hanging_worker_is_restarted(self, tmp_path, monkeypatch, record_property):
        record_property("row", "C2")
        record_property("cases", 1)
        passed = [0.0]  # seconds that the clock of the workers is ahead
        monkeypatch.setattr(pool, "monotonic", lambda: time.monotonic() + passed[0])

        async def stopped(service):
            await fed(service, 0, 3)
            os.kill(service.forecasts.pool.workers[0].pid, signal.SIGSTOP)
            await service.ingest.store(Batch(rows_of(3), []), IngestOptions())
            passed[0] += 2 * pool.ANSWER_TIMEOUT
            await asyncio.wait_for(settled(service), LIMIT)
            return service.forecasts.pool.restarts

        assert serving(stopped, tmp_path / "a.db") >= 1

    def test_workers_are_restarted_although_the_process_that_forks_them_was_killed(self, tmp_path):
        async def killed(service):
            await fed(service, 0, 3)
            (server,) = fork_servers(os.getpid())
            for pid in (server, service.forecasts.pool.workers[0].pid):
                os.kill(pid, signal.SIGKILL)
            await asyncio.wait_for(fed(service, 3, 5), LIMIT)
            return server, fork_servers(os.getpid())

        before, after = serving(killed, tmp_path / "a.db")

        assert len(after) == 1
        assert before not in after
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert [len(list(ledger.forecasts(sensor))) for sensor in (1, 2, 3)] == [5, 5, 5]


class TestActions:
    def test_set_hyperparameters_survive_a_restart(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def act(service):
            sensor = service.intake.sensors["north"]
            await service.operators.run(sensor, "set", {"values": {"regularization": 0.7}})
            await service.operators.run(sensor, "freeze", {"names": ["regularization"]})
            with pytest.raises(Problem, match="hyperparameter must be one of"):
                await service.operators.run(sensor, "set", {"values": {"nonsense": 1.0}})

        async def looked(service):
            return msgspec.json.decode((await service.forecasts.ask(1)).tuning)

        serving(act, copy)
        tuning = serving(looked, copy)

        assert tuning["values"]["regularization"] == 0.7
        assert tuning["frozen"] == ["regularization"]

    def test_a_declaration_of_bounds_rebuilds_the_forecaster(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def declared(service):
            await service.operators.declare(
                "north", Declaration(label="North", bounds=(0.0, 120.0))
            )
            await settled(service)
            return await service.forecasts.ask(1)

        told = serving(declared, copy)

        assert told.forecast.upper[0] <= 120.0
        assert told.state.summary.fitted

    def test_an_archived_sensor_is_not_counted_and_its_readings_are_refused(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def archived(service):
            await service.operators.archive("north")
            receipt = await service.ingest.store(Batch(rows_of(FITTED), []), IngestOptions())
            return service.summary().total, [each.code for each in receipt.refusals]

        assert serving(archived, copy) == (2, ["sr-archived"])


class TestBackfillAndRevision:
    def test_a_backfill_fits_each_sensor_once(self, tmp_path, record_property):
        record_property("row", "D3")
        rows = [row for step in range(5 * DAY) for row in rows_of(step)]

        async def filled(service):
            batch = Batch([msgspec.structs.replace(r, line=i) for i, r in enumerate(rows)], [])
            await service.ingest.store(batch, IngestOptions(mode="backfill"))
            await settled(service)
            await fed(service, 5 * DAY, 5 * DAY + 2)
            return dict(service.forecasts.counts), (await service.forecasts.ask(1))

        counts, told = serving(filled, tmp_path / "a.db")

        assert counts["start"] == len(NAMES)
        assert told.forecast.source == "model"
        assert told.forecast.time == START + (5 * DAY + 2) * STEP
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert all(len(list(ledger.forecasts(s))) == 2 for s in (1, 2, 3))

    def test_a_revision_rebuilds_the_forecaster(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))
        row = Row(1, "north", START + (FITTED - 9) * STEP, 77.0)

        async def revised(service):
            receipt = await service.ingest.store(
                Batch([row], []), IngestOptions(on_conflict="replace")
            )
            await settled(service)
            return receipt.replaced, service.forecasts.counts["start"]

        assert serving(revised, copy) == (1, 1)


class TestDamage:
    def test_a_damaged_state_is_rebuilt_and_shown(self, lived, tmp_path, record_property):
        record_property("row", "A6")
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))
        connection = apsw.Connection(str(copy))
        state = bytearray(connection.execute("select state from states where sensor=1").get)
        state[len(state) // 2] ^= 1
        connection.execute("update states set state=? where sensor=1", (bytes(state),))
        connection.close()

        async def noticed(service):
            await service.ingest.store(Batch(rows_of(FITTED), []), IngestOptions())
            await settled(service)
            states = {
                name: service.statuses[i + 1].state(service.now)[0] for i, name in enumerate(NAMES)
            }
            return states, (await service.forecasts.ask(1)).forecast

        states, forecast = serving(noticed, copy)

        assert states == {"north": "rebuilt", "south": "good", "east": "good"}
        assert np.isfinite(forecast.values).all()


class TestRefusals:
    def test_a_service_with_another_step_is_refused(self, lived):
        with pytest.raises(Problem, match="a step of 900 seconds"):
            serving(settled, lived, step="1h")

    def test_readings_are_refused_while_the_disk_is_full(self, tmp_path):
        async def full(service):
            service.health.disk = {"free": 10, "data": 0}
            with pytest.raises(Problem, match="too little free space"):
                await service.ingest.store(Batch(rows_of(0), []), IngestOptions())
            ready = service.health.is_ready
            service.health.disk = {"free": 1 << 40, "data": 0}
            return ready, (
                await service.ingest.store(Batch(rows_of(0), []), IngestOptions())
            ).accepted

        assert serving(full, tmp_path / "a.db") == (False, 3)


class TestUnknownOutcome:
    def test_rows_of_a_write_with_unknown_outcome_are_duplicates(
        self, tmp_path, monkeypatch, record_property
    ):
        record_property("row", "A13")
        record_property("cases", 1)

        async def lost(service):
            append = service.ledger.append

            def stored_and_lost(*args, **more):
                append(*args, **more)
                raise StorageAwayError("the connection was lost")

            # The periodic check would find out at once what was stored.
            monkeypatch.setattr(service.writer, "check_storage", lambda: None)
            monkeypatch.setattr(service.ledger, "append", stored_and_lost)
            with pytest.raises(Problem, match="refused the write"):
                await service.ingest.store(Batch(rows_of(0), []), IngestOptions())
            ready = service.health.is_ready
            monkeypatch.setattr(service.ledger, "append", append)
            again = await service.ingest.store(Batch(rows_of(0), []), IngestOptions())
            later = await service.ingest.store(Batch(rows_of(1), []), IngestOptions())
            await settled(service)
            return ready, again.duplicate, later.accepted, service.health.is_ready

        assert serving(lost, tmp_path / "a.db") == (False, 3, 3, True)
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert [len(list(ledger.forecasts(sensor))) for sensor in (1, 2, 3)] == [2, 2, 2]


class TestForecastRequests:
    def test_a_request_for_a_forecast_loses_no_forecast(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def asked(service):
            # The request reaches the worker before the reading, which it finds in the ledger.
            held, service.forecasts.pool.take = [], lambda *args: held.append(args)
            await service.ingest.store(Batch(rows_of(FITTED), []), IngestOptions())
            del service.forecasts.pool.take
            await service.forecasts.ask(1)
            for args in held:
                service.forecasts.pool.take(*args)
            await settled(service)

        serving(asked, copy)

        with open_ledger(str(copy), read_only=True) as ledger:
            last = START + (FITTED + 1) * STEP
            assert [each.time for each in ledger.forecasts(1, start=last)] == [last]
