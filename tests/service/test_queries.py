"""Queries: quick ones at once, long ones in parts that take turns and let readings go first."""

import asyncio
import threading
from contextlib import contextmanager

from streamridge_service.service import queries as module
from streamridge_service.service.queries import Queries
from tests.support.waiting import LIMIT, wait_until_async


@contextmanager
def queries(is_storing=lambda: False):
    made = Queries("ledger", is_storing)
    try:
        yield made
    finally:
        made.close()


def test_the_parts_of_several_requests_take_turns():
    async def run():
        done = []

        async def request(name):
            for part in range(3):
                await made.work(lambda part=part: done.append((name, part)))

        await asyncio.gather(request("a"), request("b"), request("c"))
        return done

    with queries() as made:
        done = asyncio.run(run())

    assert done == [(name, part) for part in range(3) for name in "abc"]


def test_one_part_runs_at_a_time():
    running, most = 0, 0

    def part():
        nonlocal running, most
        running += 1
        most = max(most, running)
        running -= 1

    async def run():
        await asyncio.gather(*(made.work(part) for _ in range(50)))

    with queries() as made:
        asyncio.run(run())

    assert most == 1


def test_a_quick_query_does_not_wait_for_a_long_one(counted):
    counted("D5", 20)
    gate = threading.Event()

    async def run():
        long = [asyncio.ensure_future(made.work(lambda: gate.wait(LIMIT))) for _ in range(20)]
        answer = await made.read(lambda ledger: ledger)
        gate.set()
        await asyncio.gather(*long)
        return answer

    with queries() as made:
        assert asyncio.run(run()) == "ledger"


def test_no_part_begins_while_readings_are_stored(monkeypatch, counted):
    counted("D5", 1)
    monkeypatch.setattr(module, "MAX_WAIT", LIMIT)
    looks, done = [], []

    def is_storing():
        looks.append(len(done))
        return len(looks) < 5

    async def run():
        await made.read_part(done.append)

    with queries(is_storing) as made:
        asyncio.run(run())

    assert looks == [0] * 5
    assert done == ["ledger"]


def test_a_part_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAIT", 0.01)

    with queries(lambda: True) as made:
        assert asyncio.run(made.work(lambda: "done")) == "done"


def test_a_request_that_is_cancelled_lets_others_go_on():
    gate = threading.Event()

    async def run():
        first = asyncio.ensure_future(made.work(lambda: gate.wait(LIMIT)))
        second = asyncio.ensure_future(made.work(lambda: "second"))
        await wait_until_async(made._turn.locked, "the first part")
        first.cancel()
        gate.set()
        return await second

    with queries() as made:
        assert asyncio.run(run()) == "second"
