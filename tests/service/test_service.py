"""A service: what it takes, what it survives, and what it knows after a restart."""

import asyncio
import os
import signal
from itertools import pairwise

import apsw
import msgspec
import numpy as np
import pytest

from streamridge.service import views
from streamridge.service.intake import Wish
from streamridge.service.ledger.base import StorageAwayError
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.records import Entry
from streamridge.service.plan import Declaration
from streamridge.service.problems import Problem
from streamridge.service.rows import Batch, Row
from tests.service.fleet.logs import DAY, START, STEP
from tests.service.living import NAMES, WEEK, digest_of, fed, rows_of, serving, settled

FITTED = 4 * DAY + 40


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Return the database of a service that ran for four days and more without a stop."""
    database = tmp_path_factory.mktemp("service") / "a.db"
    serving(lambda service: fed(service, 0, FITTED), database)
    return database


@pytest.fixture(scope="module")
def digest(lived):
    return digest_of(lived)


class TestRestart:
    def test_stopped_in_between_it_is_the_same_bit_for_bit(self, digest, tmp_path, record_property):
        record_property("row", "A1")
        record_property("cases", 4)
        parts = (0, 50, 2 * DAY + 7, 4 * DAY, FITTED)
        for first, last in pairwise(parts):
            serving(lambda service, a=first, b=last: fed(service, a, b), tmp_path / "a.db")

        assert digest_of(tmp_path / "a.db") == digest

    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_any_number_of_workers_gives_the_same(self, digest, tmp_path, workers, record_property):
        record_property("row", "A8")
        record_property("cases", 3)
        work = lambda service: fed(service, 0, FITTED)  # noqa: E731
        serving(work, tmp_path / "a.db", workers=workers)

        assert digest_of(tmp_path / "a.db") == digest

    def test_forecasts_that_were_not_stored_are_made_again(self, lived, tmp_path):
        # As if the power had failed after the readings were stored, and before the forecasts.
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))
        entries = []
        with open_ledger(str(copy)) as ledger:
            entries = [
                msgspec.structs.replace(entry, seq=ledger.last() + 1 + i)
                for i, entry in enumerate(unstored(ledger, FITTED))
            ]
            ledger.append(entries=entries)

        serving(settled, copy)

        with open_ledger(str(copy), read_only=True) as ledger:
            made = [
                each for s in (1, 2, 3) for each in ledger.forecasts(s, after=entries[0].seq - 1)
            ]
        assert sorted(each.seq for each in made) == [each.seq for each in entries]

    def test_it_knows_its_sensors_at_once(self, lived):
        async def looked(service):
            return views.summary(service), views.item(service, service.board.places[1])

        summary, item = serving(looked, lived)

        assert summary["total"] == 3
        assert item["value"] == WEEK["north"][FITTED - 1]
        assert item["forecast"]["source"] in ("model", "seasonal", "last")


def unstored(ledger, step):
    ids = {each.name: each.id for each in ledger.sensors()}
    return [Entry(0, ids[row.sensor], row.time, row.value, 0) for row in rows_of(step)]


class TestWorkers:
    def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(
        self, digest, tmp_path, record_property
    ):
        record_property("row", "C2")
        record_property("cases", 6)

        async def killed(service):
            for step in range(0, FITTED, 70):
                await service.take(Batch(rows_of(step), []), Wish())
                os.kill(service.fleet.hands[0].pid, signal.SIGKILL)
                await settled(service)
                await fed(service, step + 1, min(step + 70, FITTED))
            return service.fleet.restarts

        assert serving(killed, tmp_path / "a.db") >= 5
        assert digest_of(tmp_path / "a.db") == digest

    def test_a_worker_that_hangs_is_replaced(self, tmp_path, monkeypatch, record_property):
        record_property("row", "C2")
        record_property("cases", 1)
        monkeypatch.setattr("streamridge.service.fleet.fleet.LONGEST", 5.0)

        async def stopped(service):
            await fed(service, 0, 3)
            os.kill(service.fleet.hands[0].pid, signal.SIGSTOP)
            await service.take(Batch(rows_of(3), []), Wish())
            await asyncio.wait_for(settled(service), 60)
            return service.fleet.restarts

        assert serving(stopped, tmp_path / "a.db") >= 1


class TestActing:
    def test_hyperparameters_are_set_and_stay_set(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def act(service):
            sensor = service.intake.sensors["north"]
            await service.act(sensor, "set", {"values": {"regularization": 0.7}})
            await service.act(sensor, "freeze", {"names": ["regularization"]})
            with pytest.raises(Problem, match="hyperparameter must be one of"):
                await service.act(sensor, "set", {"values": {"nonsense": 1.0}})

        async def looked(service):
            return msgspec.json.decode((await service.ask(1)).tuning)

        serving(act, copy)
        tuning = serving(looked, copy)

        assert tuning["values"]["regularization"] == 0.7
        assert tuning["frozen"] == ["regularization"]

    def test_a_declaration_begins_a_new_forecaster(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def declared(service):
            await service.declare("north", Declaration(label="North", bounds=(0.0, 120.0)))
            await settled(service)
            return await service.ask(1)

        told = serving(declared, copy)

        assert told.forecast.upper[0] <= 120.0
        assert told.known.standing.fitted

    def test_an_archived_sensor_is_not_shown(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def archived(service):
            await service.archive(service.intake.sensors["north"])
            receipt = await service.take(Batch(rows_of(FITTED), []), Wish())
            return views.summary(service)["total"], [each.code for each in receipt.refusals]

        assert serving(archived, copy) == (2, ["sr-archived"])


class TestManyAtOnce:
    def test_a_backfill_is_learned_from_once(self, tmp_path, record_property):
        record_property("row", "D3")
        rows = [row for step in range(5 * DAY) for row in rows_of(step)]

        async def filled(service):
            batch = Batch([msgspec.structs.replace(r, line=i) for i, r in enumerate(rows)], [])
            await service.take(batch, Wish(mode="backfill"))
            await settled(service)
            await fed(service, 5 * DAY, 5 * DAY + 2)
            return dict(service.counts), (await service.ask(1))

        counts, told = serving(filled, tmp_path / "a.db")

        assert counts["start"] == len(NAMES)
        assert told.forecast.source == "model"
        assert told.forecast.time == START + (5 * DAY + 2) * STEP
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert all(len(list(ledger.forecasts(s))) == 2 for s in (1, 2, 3))

    def test_a_revision_is_learned_from_anew(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))
        row = Row(1, "north", START + (FITTED - 9) * STEP, 77.0)

        async def revised(service):
            receipt = await service.take(Batch([row], []), Wish(on_conflict="replace"))
            await settled(service)
            return receipt.replaced, service.counts["start"]

        assert serving(revised, copy) == (1, 1)


class TestDamage:
    def test_a_damaged_state_is_made_again_and_says_so(self, lived, tmp_path, record_property):
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
            await service.take(Batch(rows_of(FITTED), []), Wish())
            await settled(service)
            states = {
                name: views.item(service, service.board.places[i + 1])["state"]
                for i, name in enumerate(NAMES)
            }
            return states, (await service.ask(1)).forecast

        states, forecast = serving(noticed, copy)

        assert states == {"north": "rebuilt", "south": "good", "east": "good"}
        assert np.isfinite(forecast.values).all()


class TestRefusals:
    def test_another_step_is_refused(self, lived):
        with pytest.raises(Problem, match="a step of 900 seconds"):
            serving(settled, lived, step="1h")

    def test_a_full_disk_is_told_and_recovers(self, tmp_path):
        async def full(service):
            service._size = {"free": 10, "data": 0}
            with pytest.raises(Problem, match="too little space"):
                await service.take(Batch(rows_of(0), []), Wish())
            ready = service.is_ready
            service._size = {"free": 1 << 40, "data": 0}
            return ready, (await service.take(Batch(rows_of(0), []), Wish())).accepted

        assert serving(full, tmp_path / "a.db") == (False, 3)


class TestUnknownOutcome:
    def test_a_write_that_was_stored_and_not_answered_is_recognized(
        self, tmp_path, monkeypatch, record_property
    ):
        record_property("row", "A13")
        record_property("cases", 1)

        async def lost(service):
            append = service.ledger.append

            def stored_and_lost(*args, **more):
                append(*args, **more)
                raise StorageAwayError("the connection was lost")

            monkeypatch.setattr(service.ledger, "append", stored_and_lost)
            with pytest.raises(Problem, match="refused the write"):
                await service.take(Batch(rows_of(0), []), Wish())
            ready = service.is_ready
            monkeypatch.setattr(service.ledger, "append", append)
            again = await service.take(Batch(rows_of(0), []), Wish())
            later = await service.take(Batch(rows_of(1), []), Wish())
            await settled(service)
            return ready, again.duplicate, later.accepted, service.is_ready

        assert serving(lost, tmp_path / "a.db") == (False, 3, 3, True)
        with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
            assert [len(list(ledger.forecasts(sensor))) for sensor in (1, 2, 3)] == [2, 2, 2]


class TestAsking:
    def test_a_question_loses_no_forecast(self, lived, tmp_path):
        copy = tmp_path / "a.db"
        with open_ledger(str(lived), read_only=True) as ledger:
            ledger.copy_to(str(copy))

        async def asked(service):
            # The question is first in the pipe, and the worker finds the reading in the ledger.
            held, service.fleet.take = [], lambda *args: held.append(args)
            await service.take(Batch(rows_of(FITTED), []), Wish())
            del service.fleet.take
            await service.ask(1)
            for args in held:
                service.fleet.take(*args)
            await settled(service)

        serving(asked, copy)

        with open_ledger(str(copy), read_only=True) as ledger:
            last = START + (FITTED + 1) * STEP
            assert [each.time for each in ledger.forecasts(1, start=last)] == [last]
