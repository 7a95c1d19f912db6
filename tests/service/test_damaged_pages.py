"""Pages of the database that are damaged while a service runs: each costs only its sensors (A6)."""

import random

import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.rows import Batch, Row
from tests.support.ledger.damaged_pages import damage, pages_of, repair, states_of
from tests.support.service.in_process import serving, settled
from tests.support.waiting import wait_until_async
from tests.support.workers.logs import DAY, START, STEP, daily

DAYS = 10
LIVED = DAYS * DAY
AFTER = 3  # steps after the damage


def rows(sensors, first, last):
    """Return the readings of some sensors, step by step."""
    values = [daily(last, seed) for seed in range(sensors)]
    return [
        Row(1, f"s{i}", START + step * STEP, values[i][step])
        for step in range(first, last)
        for i in range(sensors)
    ]


def lived(database, sensors):
    """Let a service learn from a history of ten days, and make a forecast."""

    async def filled(service):
        for span, mode in (((0, LIVED - 1), "backfill"), ((LIVED - 1, LIVED), "live")):
            await service.ingest.store(Batch(rows(sensors, *span), []), IngestOptions(mode=mode))
            await settled(service)

    serving(filled, database, workers=2)
    return database


def copied(database, target):
    with open_ledger(str(database), read_only=True) as ledger:
        ledger.copy_to(str(target))
    return target


async def fed(service, sensors):
    """Feed the steps after the damage, and ask for every forecast."""
    for step in range(LIVED, LIVED + AFTER):
        batch = Batch(rows(sensors, step, step + 1), [])
        assert (await service.ingest.store(batch, IngestOptions())).accepted == sensors
        await settled(service)
    return {sensor: await service.forecasts.ask(sensor) for sensor in range(1, sensors + 1)}


def states(service):
    """Return the state of each sensor by number."""
    known = service.statuses.copy()
    return {sensor: status.state(service.now)[0] for sensor, status in known.items()}


def forecasts_in(database):
    with open_ledger(str(database), read_only=True) as ledger:
        return {each.id: list(ledger.forecasts(each.id)) for each in ledger.sensors()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("lived") / "a.db", 4)


@pytest.mark.parametrize(
    ("sensors", "count"), [(4, 1), pytest.param(40, 30, marks=pytest.mark.slow)]
)
def test_damaged_pages_of_states_cost_only_their_sensors(
    small, tmp_path, sensors, count, record_property
):
    record_property("row", "A6")
    record_property("cases", count)
    whole = small if sensors == 4 else lived(tmp_path / "lived.db", sensors)
    undisturbed, database = (copied(whole, tmp_path / f"{i}.db") for i in range(2))
    before = states_of(database)
    pages = random.Random(count).sample(pages_of(database, "states", "leaf", "overflow"), count)

    async def damaged(service):
        for page in pages:
            damage(database, page)
        after = states_of(database)
        harmed = {sensor for sensor in before if after[sensor] != before[sensor]}
        answers = await fed(service, sensors)
        return harmed, answers, states(service), service.forecasts.pool.restarts, service.failure

    serving(lambda service: fed(service, sensors), undisturbed, workers=2)
    harmed, answers, known, restarts, failure = serving(damaged, database, workers=2)

    assert 0 < len(harmed) < sensors
    assert {sensor for sensor, state in known.items() if state != "good"} == harmed
    assert {known[sensor] for sensor in harmed} <= {"rebuilt", "degraded"}
    assert (restarts, failure) == (0, None)
    assert all(answer.forecast.values for answer in answers.values())
    expected, found = forecasts_in(undisturbed), forecasts_in(database)
    assert {each for each in expected if expected[each] != found[each]} <= harmed
    assert {len(each) for each in found.values()} == {AFTER + 1}


def test_a_sensor_whose_readings_are_damaged_too_has_failed_until_they_can_be_read(
    small, tmp_path, record_property
):
    """It costs no other sensor, and its readings are learned afterwards."""
    record_property("row", "A6")
    record_property("cases", 1)
    undisturbed, database = (copied(small, tmp_path / f"{i}.db") for i in range(2))
    # The readings of the second sensor begin after those of the first; its newest are elsewhere.
    readings = pages_of(database, "readings", "leaf")
    pages = [pages_of(database, "states", "leaf")[1], readings[len(readings) // 4 + 2]]

    async def damaged(service):
        replaced = [(page, damage(database, page)) for page in pages]
        answers = await fed(service, 4)
        known, failed = states(service), service.forecasts.pool.failed
        reason = service.statuses[2].state(service.now)[1]
        for page, content in replaced:
            repair(database, page, content)
        await wait_until_async(lambda: not service.forecasts.pool.failed, "a second attempt")
        await settled(service)
        return answers, known, failed, reason, states(service), service.forecasts.pool.restarts

    serving(lambda service: fed(service, 4), undisturbed, workers=2)
    answers, known, failed, reason, later, restarts = serving(damaged, database, workers=2)

    assert known == {1: "good", 2: "degraded", 3: "good", 4: "good"}
    assert "its stored data cannot be read; restore a backup" in reason
    assert [sensor for sensor, answer in answers.items() if answer.forecast is None] == [2]
    assert (failed, restarts, set(later.values())) == (1, 0, {"good"})
    assert forecasts_in(database) == forecasts_in(undisturbed)
