"""A service without a port: readings go in by steps, and everything is waited for."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec

from streamridge.service.intake import Wish
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.rows import Batch, Row
from streamridge.service.service import Service
from streamridge.service.settings import settings_of
from tests.service.fleet.logs import START, STEP, daily

NAMES = ("north", "south", "east")
WEEK = {name: daily(7 * 96, seed=i) for i, name in enumerate(NAMES)}


def small(database, **changes):
    """Return the settings of a small service, whose time is that of its readings."""
    usual = {"clock": "stream", "workers": 1, "train_size": 96, "memory": "500MB"}
    return settings_of(database=str(database), **{**usual, **changes})


def rows_of(step, names=NAMES):
    """Return the readings of one step."""
    return [Row(i + 1, name, START + step * STEP, WEEK[name][step]) for i, name in enumerate(names)]


async def settled(service):
    """Wait until all that was taken has been worked off, and nothing is being refitted."""
    quiet = 0
    while quiet < 2:
        fleet, writer = service.fleet, service.writer
        busy = fleet.done < writer.seq or fleet.waiting or fleet.cuts or writer._backlog
        quiet = 0 if busy else quiet + 1
        await asyncio.sleep(0.003)
    # What is being written at this moment does not wait any more.
    await asyncio.wrap_future(service.writer.do(lambda ledger: None))


def is_critical(step, plan):
    """Return whether a cut may be made now: what is forecast then depends on when it is done."""
    index = START // STEP + step
    return any((index + plan.stagger(name)) % 96 < 5 for name in NAMES)


async def fed(service, first, last, names=NAMES, **wish):
    """Feed steps one by one, and wait until they have been worked off."""
    for step in range(first, last):
        await service.take(Batch(rows_of(step, names), []), Wish(**wish))
        if is_critical(step, service.plan) or step % 16 == 0:
            await settled(service)
    await settled(service)


def serving(work, database, **changes):
    """Run a service while `work`, an async function of it, is done; return what that returns."""

    async def run():
        service = Service(small(database, **changes))
        service.open()
        try:
            return await work(service)
        finally:
            await service.close()

    return asyncio.run(run())


def digest_of(database):
    """Return a digest of readings, states and forecasts as they are stored."""
    digest = hashlib.sha256()
    with open_ledger(str(database), read_only=True) as ledger:
        for sensor in sorted(ledger.sensors(), key=lambda each: each.name):
            entries = [(e.seq, e.time, e.value, e.kind) for e in ledger.entries(sensor.id)]
            issued = [
                (f.seq, f.time, f.values, f.lower, f.upper) for f in ledger.forecasts(sensor.id)
            ]
            snapshot = ledger.snapshot(sensor.id)
            digest.update(msgspec.json.encode((sensor.name, entries, issued)))
            digest.update(b"" if snapshot is None else snapshot.state)
    return digest.hexdigest()
