"""Steps of all sensors and many small batches: all rows are stored and forecast.

How long it takes is measured by benchmarks/bench_service.py; here the results are counted.
"""

import asyncio
from collections import Counter

import numpy as np
import pytest

from streamridge_service.ledger.opening import open_ledger
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, Live, stamp
from tests.support.service.request_bodies import NDJSON

DAY = 96
SECOND = 10**6
FEED = 43  # readings a second of 39,000 sensors
LONG = 900  # timeout in seconds, also for a busy machine


def lines(names, step):
    """Return a reading of each sensor at a step, as NDJSON."""
    course = 100 + 50 * np.sin(2 * np.pi * (step + np.arange(len(names)) % DAY) / DAY)
    values = course + 5 * np.random.default_rng(step).standard_normal(len(names))
    at = stamp(START + 900 * step)
    return "\n".join(
        f'{{"sensor":"{name}","time":"{at}","value":{value:.2f}}}'
        for name, value in zip(names, values, strict=True)
    )


def send(served, names, step, **params):
    """Send a reading of each sensor; require that all are accepted."""
    answer = served.client.post(
        "/v1/readings",
        content=lines(names, step),
        headers={"Content-Type": NDJSON},
        params=params,
        timeout=LONG,
    )
    assert (answer.status_code, answer.json()["accepted"]) == (200, len(names)), answer.text


def wait(served, what):
    """Wait for an async function of the service, with a timeout."""

    async def bounded():
        async with asyncio.timeout(LONG):
            await what(served.service)

    asyncio.run_coroutine_threadsafe(bounded(), served.loop).result()


def wait_for_forecasts(served, since, count):
    """Wait until `count` forecasts are stored after an arrival number; refits may go on."""

    async def stored(service):
        while service.forecasts.pool.done < since + count:
            await asyncio.sleep(0.003)
        # Forecasts that are being written count as done.
        while await service.read(lambda ledger: made_since(ledger, since)) < count:
            await asyncio.sleep(0.003)

    wait(served, stored)


def made_since(ledger, seq):
    return sum(1 for _ in ledger.forecasts(after=seq))


def require_all_forecast(database, names, steps):
    """Require that each reading is stored, with one forecast of the next step."""
    with open_ledger(str(database), read_only=True) as ledger:
        readings = {entry.seq: (entry.sensor, entry.time) for entry in ledger.readings_after(0)}
        made = {each.seq: (each.sensor, each.time) for each in ledger.forecasts()}
        count = sum(1 for _ in ledger.forecasts())
        numbers = {each.id for each in ledger.sensors()}
    expected = Counter(dict.fromkeys(numbers, len(steps)))
    assert (len(numbers), count) == (len(names), len(made))
    assert Counter(sensor for sensor, _ in readings.values()) == expected
    assert made == {seq: (sensor, time + 900 * SECOND) for seq, (sensor, time) in readings.items()}


@pytest.mark.parametrize("sensors", [150, pytest.param(39_000, marks=pytest.mark.slow)])
def test_five_steps_of_all_sensors_are_stored_and_forecast(tmp_path, sensors, counted):
    names = [f"sensor-{i}" for i in range(sensors)]
    with Live(tmp_path / "a.db", workers=2, memory="8GB") as served:
        for step in range(5):
            send(served, names, step)
        wait_for_forecasts(served, 0, 5 * sensors)

    require_all_forecast(tmp_path / "a.db", names, range(5))
    counted("D2", 5 * sensors)


@pytest.mark.parametrize("batches", [12, pytest.param(600, marks=pytest.mark.slow)])
def test_many_small_batches_are_stored_and_forecast(tmp_path, batches, counted):
    names = [f"sensor-{i}" for i in range(FEED * batches // 4)]
    with Live(tmp_path / "a.db", workers=2, memory="8GB") as served:
        for step in range(4):
            for first in range(0, len(names), FEED):
                send(served, names[first : first + FEED], step)
        assert served.call(lambda service: service.ingest.counts["refused"]) == 0
        wait_for_forecasts(served, 0, 4 * len(names))

    require_all_forecast(tmp_path / "a.db", names, range(4))
    counted("D1", batches)


@pytest.mark.slow
def test_no_forecast_is_late_during_a_day_of_refits(tmp_path, counted):
    """The forecasts of every step are stored before the next step, even during refits."""
    names, past = [f"sensor-{i}" for i in range(200)], 5 * DAY
    # A sensor whose turn comes within half a day of its start waits for the next turn.
    steps = DAY // 2 + DAY + 3
    with Live(tmp_path / "a.db", workers=2, memory="8GB") as served:
        for step in range(past):
            send(served, names, step, mode="backfill")
        wait(served, settled)
        for step in range(past, past + steps):
            send(served, names, step)
            wait_for_forecasts(served, step * len(names), len(names))
        wait(served, settled)
        plan = served.service.plan

    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        for sensor in ledger.sensors():
            refits = [each.until for each in ledger.refit_points(sensor.id) if each.kind == "refit"]
            turns = [(until // plan.step + plan.stagger(sensor.name)) % DAY for until in refits]
            assert turns in ([0], [0, 0])
        issued = [each for each in ledger.forecasts() if each.seq > past * len(names)]
    assert len({each.seq for each in issued}) == steps * len(names)
    assert {each.source for each in issued} <= {"model", "seasonal", "last"}
    counted("D6", steps * len(names))
