"""The table of sensors: their states, and which threads use it."""

import asyncio
import threading

import httpx
import msgspec
import pytest

from streamridge_service.http.app import create_app
from streamridge_service.http.pagination import FEW, SensorPages
from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.records import Event, IssuedForecast, SensorRow
from streamridge_service.plan import DAY, HOUR, MINUTE
from streamridge_service.rows import Batch, Row
from streamridge_service.service.answers import sensor_item
from streamridge_service.service.sensor_status import SensorStatuses
from streamridge_service.workers.error_scores import Scores
from streamridge_service.workers.sensor_state import SensorSummary
from tests.support.service.in_process import serving, settled
from tests.support.workers.logs import PLAN, START, STEP

LIMIT = 120  # seconds for anything that takes far less than one
NOW = 1000 * HOUR
MODEL = SensorSummary(newest=NOW, first=0, value=1.0, fitted=True)


def statuses_of(count, summary=MODEL):
    """Return a table of sensors whose newest readings are one second apart."""
    statuses = SensorStatuses(PLAN)
    for i in range(1, count + 1):
        statuses.put(SensorRow(i, f"s{i:04}", 0))
        newest = summary.newest - (count - i) * 1_000_000
        statuses.set_summary(i, msgspec.structs.replace(summary, newest=newest))
    return statuses


def test_a_sensor_whose_readings_wait_for_its_worker_is_not_stale():
    statuses = statuses_of(2)
    later = NOW + 30 * HOUR
    statuses.set_accepted({1: later, 2: later})
    statuses.set_summary(2, msgspec.structs.replace(MODEL, newest=later))

    changes = [change for chunk in statuses.check(statuses.newest) for change in chunk]

    assert statuses.newest == later
    assert [(sensor.id, state) for sensor, state, _ in changes] == [(1, "good"), (2, "good")]


@pytest.mark.parametrize(
    ("changes", "state", "reason"),
    [
        ({}, "good", ""),
        ({"newest": NOW - STEP - 75 * MINUTE}, "stale", "no reading for 90 minutes"),
        ({"newest": NOW - STEP - 25 * HOUR}, "silent", "no reading for 25 hours"),
        ({"rebuilt": True}, "rebuilt", "was rebuilt from the readings"),
        ({"failed": "no factor"}, "degraded", "the last refit failed: no factor"),
        ({"doubted": True}, "implausible", "far outside the sensor's usual range"),
        ({"equal": 50}, "constant", "50 equal readings in a row"),
        ({"equal": 50, "value": 0.0}, "zero", "50 equal readings in a row"),
        ({"fitted": False}, "new", "too few readings for a model"),
    ],
)
def test_a_state_has_a_reason(changes, state, reason):
    status = statuses_of(1, msgspec.structs.replace(MODEL, **changes))[1]

    found, told = status.state(NOW)

    assert found == state
    assert reason in told


def test_a_sensor_without_readings_is_new():
    statuses = SensorStatuses(PLAN)

    status = statuses.put(SensorRow(1, "a", 0))

    assert status.state(NOW) == ("new", "there is no reading yet")
    assert status.reason_without_forecast(NOW) == "there is no reading yet"


def test_a_check_yields_each_change_of_state_once():
    statuses = statuses_of(3)
    statuses.mark_announced(NOW)
    statuses.set_summary(2, msgspec.structs.replace(MODEL, doubted=True))

    first, second = ([each for part in statuses.check(NOW) for each in part] for _ in range(2))

    assert [(sensor.name, state) for sensor, state, _ in first] == [("s0002", "implausible")]
    assert second == []
    assert (statuses.counts["good"], statuses.counts["implausible"]) == (2, 1)


def test_an_older_forecast_does_not_replace_a_newer_one():
    statuses = statuses_of(1)
    older, newer = (IssuedForecast(seq, 1, seq, 0, "last", (), (), ()) for seq in (4, 5))

    statuses.set_forecast(newer)
    statuses.set_forecast(older)

    assert statuses[1].forecast == newer


def test_a_page_that_another_thread_makes_does_not_change_under_it():
    statuses = statuses_of(FEW + 100)
    later = msgspec.structs.replace(MODEL, newest=NOW + HOUR)

    async def listed():
        loop = asyncio.get_running_loop()

        def wanted(status):
            if status.sensor.id == 1:  # a reading comes while the page is made
                changed = threading.Event()
                loop.call_soon_threadsafe(lambda: (statuses.set_summary(1, later), changed.set()))
                assert changed.wait(LIMIT), "the event loop did not change the status"
            return True

        return await SensorPages(statuses, lambda: NOW, asyncio.to_thread).page(
            "newest", wanted, None, 10_000
        )

    page = asyncio.run(listed())

    newest = [status.summary.newest for status in page.statuses]
    assert newest == sorted(newest)
    assert statuses[1].summary.newest == NOW + HOUR


def noting(name):
    """Return a method of `dict` that notes the thread that calls it."""

    def method(self, *arguments):
        self.threads.add(threading.get_ident())
        return getattr(dict, name)(self, *arguments)

    return method


METHODS = (
    "__getitem__",
    "__setitem__",
    "__iter__",
    "__contains__",
    "get",
    "keys",
    "values",
    "items",
)
Watched = type("Watched", (dict,), {name: noting(name) for name in METHODS})


PATHS = (
    "/v1/sensors?limit=10000", "/v1/sensors?sort=-newest&state=new&format=csv",
    "/v1/forecasts?limit=10000", "/v1/forecasts?limit=10000&format=csv", "/v1/gaps?limit=1000",
    "/v1/accuracy?by=hour", "/v1/events", "/v1/summary", "/v1/sensors/s0001", "/metrics",
)  # fmt: skip


def test_only_the_event_loop_touches_the_table(tmp_path):
    names = [f"s{i:04}" for i in range(FEW + 20)]
    rows = [Row(i + 1, name, START, 1.0) for i, name in enumerate(names)]

    async def used(service):
        table = service.statuses._by_id = Watched()
        table.threads = set()
        transport = httpx.ASGITransport(create_app(service))
        await service.ingest.store(Batch(rows, []), IngestOptions())
        await settled(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answers = [await client.get(path) for path in PATHS]
        return table, threading.get_ident(), {answer.status_code for answer in answers}

    table, event_loop, codes = serving(used, tmp_path / "a.db")

    assert codes == {200}
    assert len(table) == len(names)
    assert table.threads == {event_loop}


def test_a_sensor_without_a_reading_in_the_last_day_has_no_error_of_that_day():
    scores = Scores(count=300, error=2.0, usual=4.0, outside=0.1, trend="up")
    status = statuses_of(1, msgspec.structs.replace(MODEL, scores=scores))[1]

    assert status.scores(NOW + DAY) == scores
    assert status.scores(NOW + DAY + 1) == scores.without_last_day
    assert sensor_item(status, NOW + 37 * HOUR).error_ratio is None


def test_an_acknowledged_state_is_known_until_it_changes_and_after_a_restart():
    statuses = statuses_of(1, msgspec.structs.replace(MODEL, doubted=True))
    events = [(1, "good", ""), (2, "implausible", "why"), (3, "acknowledged", "implausible: why")]
    stored = [Event(number, NOW, kind, 1, reason) for number, kind, reason in events]
    list(statuses.check(NOW))

    statuses.restore_acknowledged(stored)
    known = sensor_item(statuses[1], NOW).acknowledged
    list(statuses.check(NOW))
    still_known = sensor_item(statuses[1], NOW).acknowledged
    statuses.set_summary(1, MODEL)
    list(statuses.check(NOW))
    statuses.set_summary(1, msgspec.structs.replace(MODEL, doubted=True))
    list(statuses.check(NOW))

    assert (known, still_known) == (True, True)
    assert not sensor_item(statuses[1], NOW).acknowledged
