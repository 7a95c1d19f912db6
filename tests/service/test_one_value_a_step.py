"""Null, values that follow it, and times about a step: log, model, history and gaps agree."""

import httpx
import pytest

from streamridge_service.http.app import create_app
from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.plan import HOUR, MINUTE, SECOND, Declaration
from streamridge_service.rows import Batch, Row
from streamridge_service.service.answers import iso
from streamridge_service.verification.verify import check_sensors
from tests.support.service.in_process import serving, settled
from tests.support.workers.logs import daily

START = 1_700_000_000_000_000 // HOUR * HOUR
HOURS = 100
HOURLY = {"step": "1h", "train_size": 48}
VALUES = daily(HOURS, seed=4)
# Hours that are null at first; the second is filled only after its step was closed. And hours for
# which another value comes at a time beside the step.
NULL, LATE, TWICE = 80, 84, 82


async def sent(service, *rows, **options):
    """Store rows one by one; return the codes of the refusals."""
    codes = []
    for row in rows:
        receipt = await service.ingest.store(Batch([Row(1, *row)], []), IngestOptions(**options))
        codes += [refusal.code for refusal in receipt.refusals]
    return codes


async def lived(service):
    await service.operators.declare("ruled", Declaration(rule="sum"))
    for hour in range(HOURS):
        time = START + hour * HOUR
        first = None if hour in (NULL, LATE) else VALUES[hour]
        await sent(service, ("a", time, first), ("ruled", time + MINUTE, first))
        if hour == TWICE:
            assert await sent(service, ("a", time + 80 * SECOND, 1.0)) == ["sr-conflict"]
            assert await sent(service, ("a", time + 80 * SECOND, VALUES[hour])) == []
        if hour in (NULL, LATE + 3):
            await settled(service)  # the forecasts after null are issued before the values come
            filled = NULL if hour == NULL else LATE
            time, value = START + filled * HOUR, VALUES[filled]
            await sent(service, ("a", time - 80 * SECOND, value), ("ruled", time + MINUTE, value))
    await settled(service)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("steps") / "a.db"
    serving(lived, path, **HOURLY)
    return path


def answers(database, *paths):
    async def asked(service):
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [(await client.get(path)).json() for path in paths]

    return serving(asked, database, **HOURLY)


def test_a_replay_gives_the_stored_data(database):
    with open_ledger(str(database), read_only=True) as ledger:
        found = list(check_sensors(ledger, ledger.sensors()))

    assert [(each.fault, each.is_exact) for each in found] == [(None, True)] * 2


def test_history_and_gaps_show_the_values_that_were_learned(database):
    span = f"from={iso(START)}&to={iso(START + (HOURS - 1) * HOUR)}".replace(":", "%3A")
    paths = [
        f"/v1/sensors/{name}/{what}?{span}" for name in ("a", "ruled") for what in ("history",)
    ]
    hours = f"from={iso(START)}&to={iso(START + HOURS * HOUR)}".replace(":", "%3A")

    *histories, gaps = answers(database, *paths, f"/v1/sensors/a/gaps?{hours}")

    for each in histories:
        assert [row["actual"] for row in each["items"]] == VALUES
    assert {hour["received"] for hour in gaps["hours"]} == {1}
