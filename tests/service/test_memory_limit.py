"""A service that may have little more memory than it needs, under bursts of readings (A15)."""

import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from streamridge_service.ledger.opening import open_ledger
from streamridge_service.verification.verify import check_sensors, sampled
from tests.support.service.live_server import stamp
from tests.support.service.serve_command import await_forecasts, memory_of, served

NAMES = [f"road-{i}" for i in range(60)]
# Bursts, and requests of one that come at once; the steps that each sends grow by this.
BURSTS, AT_ONCE, MORE = 10, 4, 120
FIRST, HOUR = 1_700_000_100 // 900 * 900, 4
SETTINGS = {"memory": "100MB"}


def rows(steps):
    """Return the readings of all sensors for some steps, as lines of CSV."""
    times = [stamp(FIRST + step * 900) for step in steps]
    lines = [f"{name},{time},{i % 97}" for i, time in enumerate(times) for name in NAMES]
    return "\n".join(["sensor,time,value", *lines]).encode()


def post(service, body, mode="live"):
    """Send readings; return the status of the answer, or None if the service is gone."""
    headers, params = {"Content-Type": "text/csv"}, {"mode": mode}
    try:
        with service.client() as client:
            answer = client.post("/v1/readings", content=body, headers=headers, params=params)
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        return None
    return answer.status_code


def steady_memory(database):
    """Return how much memory a service and its worker have after an hour of usual readings."""
    with served(database, **SETTINGS) as service, service.client() as client:
        for step in range(HOUR):
            assert post(service, rows([step])) == 200
        await_forecasts(client)
        (worker,) = service.workers
        return memory_of(service.pid, "VmPeak"), memory_of(worker, "VmPeak")


@contextmanager
def limited(database, own, worker):
    """Give a service that may have a fifth more memory than it had, and so may its worker."""
    with served(database, most_memory=own * 6 // 5, **SETTINGS) as service:
        for pid in service.workers:
            resource.prlimit(pid, resource.RLIMIT_AS, (worker * 6 // 5,) * 2)
        yield service


def burst(service, first, steps):
    """Send large batches at once; return their spans of steps, and the status of each answer."""
    spans = [range(first + i * steps, first + (i + 1) * steps) for i in range(AT_ONCE)]
    bodies = [rows(span) for span in spans]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = pool.map(lambda body: post(service, body, "backfill"), bodies)
        return list(zip(spans, statuses, strict=True))


@pytest.mark.slow
def test_a_service_with_little_memory_refuses_requests_and_loses_nothing(
    tmp_path, monkeypatch, record_property
):
    """It may end for lack of memory, but never hangs, and all acknowledged readings are stored."""
    # Addresses are limited here, and every thread would reserve many that it does not use.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    database, sizes = tmp_path / "a.db", steady_memory(tmp_path / "a.db")
    answers, number, newest = [], 0, HOUR

    while number < BURSTS:
        with limited(database, *sizes) as service:
            while number < BURSTS and service.process.poll() is None:
                number += 1
                answers += burst(service, newest, number * MORE)
                newest += AT_ONCE * number * MORE
    with limited(database, *sizes) as service, service.client() as client:
        assert post(service, rows([newest])) == 200
        await_forecasts(client)
        assert service.end() == 0

    statuses = Counter(status for _, status in answers)
    acknowledged = {step for span, status in answers if status == 200 for step in span}
    # The library that parses requests answers 400 if it has no memory for one.
    assert statuses.keys() <= {200, 400, 503, None}
    assert 0 < statuses[200] < len(answers), "some did not fit"
    with open_ledger(str(database), read_only=True) as ledger:
        assert list(ledger.check()) == []
        for sensor in ledger.sensors():
            stored = [entry.time // 10**6 for entry in ledger.readings(sensor.id)]
            assert len(stored) == len(set(stored))
            assert {FIRST + step * 900 for step in acknowledged} <= set(stored)
        found = list(check_sensors(ledger, sampled(ledger.sensors(), 2, seed=15)))
    assert [each.fault for each in found] == [None, None]
    record_property("row", "A15")
    record_property("cases", BURSTS)
