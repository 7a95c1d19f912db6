"""A long run at many times the usual pace: memory and open files stay as they were (D8)."""

import os
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from streamridge_service.ledger.opening import open_ledger
from tests.support.service.live_server import stamp
from tests.support.service.serve_command import await_forecasts, figure_of, memory_of, served
from tests.support.workers.logs import DAY, daily

MINUTES = float(os.environ.get("STREAMRIDGE_SOAK_MINUTES", "0"))
STEP, SPEED = 900, 50
FIRST = 1_700_000_100 // STEP * STEP
# Steps before the run: history of all the days that forecasters use, and days in which every
# forecaster refits and the cache of the database is filled.
HISTORY, LIVE = 40 * DAY, 4 * DAY
PAST = HISTORY + LIVE
# Requests for the readings of one step.
SENSORS, PARTS = 100, 20
# This share of the samples is before all memory was used once.
WARMUP = 0.3
# How much memory may grow in an hour; and in all, since a short run shows no slope.
MOST_AN_HOUR, MOST_AT_ALL = 0.01, 0.001


class Sample(NamedTuple):
    """Memory and open files of a service and its workers at a moment."""

    seconds: float
    memory: int
    files: int

    @classmethod
    def of(cls, service):
        processes = [service.pid, *service.workers]
        memory = sum(memory_of(pid, "RssAnon") for pid in processes)
        files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in processes)
        return cls(time.monotonic(), memory, files)


def rows(names, values, first, last):
    """Return the readings of some sensors from a step to another, as lines of CSV."""
    lines = [
        f"{name},{stamp(FIRST + step * STEP)},{values[name][step]}"
        for step in range(first, last)
        for name in names
    ]
    return "\n".join(["sensor,time,value", *lines]).encode()


def post(client, body, mode="live"):
    headers = {"Content-Type": "text/csv"}
    answer = client.post("/v1/readings", content=body, headers=headers, params={"mode": mode})
    assert answer.status_code == 200, answer.text


def begin(service, client, values):
    """Let all sensors have their history and a model, and refit it."""
    for name in values:
        post(client, rows([name], values, 0, HISTORY), "backfill")
    while figure_of(client, "refits_start_total") < SENSORS:
        time.sleep(0.5)
    for step in range(HISTORY, PAST):
        post(client, rows(values, values, step, step + 1))
        await_forecasts(client)
    assert figure_of(client, "refits_refit_total") > 2 * SENSORS


def look_around(service, name):
    """Ask for this and that on connections of their own, and listen to events for a moment."""
    with service.client() as client:
        for path in ("/v1/summary", "/v1/sensors", f"/v1/sensors/{name}/forecasts", "/metrics"):
            assert client.get(path).status_code == 200
        with client.stream("GET", "/v1/stream") as stream:
            assert next(stream.iter_bytes())


def soak(service, client, values, seconds):
    """Feed a service for so long; return what it had all the while."""
    names, samples, begun = list(values), [], time.monotonic()
    pause = STEP / SPEED / PARTS
    for number in range(int(seconds / pause)):
        time.sleep(max(0.0, begun + number * pause - time.monotonic()))
        step, part = PAST + number // PARTS, number % PARTS
        post(client, rows(names[part::PARTS], values, step, step + 1))
        look_around(service, names[part])
        samples.append(Sample.of(service))
    return samples


@pytest.mark.slow
@pytest.mark.skipif(
    not MINUTES, reason="on request: set STREAMRIDGE_SOAK_MINUTES to 60, or as long as you like"
)
def test_memory_and_open_files_do_not_grow(tmp_path, record_property):
    steps = PAST + int(MINUTES * 60 * SPEED / STEP) + 2
    values = {f"road-{i}": daily(steps, seed=i) for i in range(SENSORS)}
    database = tmp_path / "a.db"

    with served(database, train_size=200) as service, service.client() as client:
        begin(service, client, values)
        samples = soak(service, client, values, MINUTES * 60)
        await_forecasts(client)
        assert service.end() == 0
        assert "Traceback" not in service.words

    warm = samples[int(WARMUP * len(samples)) :]
    growth, hours = growth_of(warm)
    record_property("growth", f"{growth:.3%} of {warm[-1].memory} bytes in {hours:.2f} hours")
    assert growth <= MOST_AN_HOUR * hours + MOST_AT_ALL
    halves = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    before, after = (statistics.median(sample.files for sample in half) for half in halves)
    assert after <= before
    with open_ledger(str(database), read_only=True) as ledger:
        assert list(ledger.check()) == []
    record_property("row", "D8")
    record_property("cases", len(samples))


def growth_of(samples):
    """Return by which share memory grew along a straight line, and in how many hours."""
    seconds, memory = zip(*((sample.seconds, sample.memory) for sample in samples), strict=True)
    passed = seconds[-1] - seconds[0]
    slope = statistics.linear_regression(seconds, memory).slope
    return slope * passed / statistics.mean(memory), passed / 3600
