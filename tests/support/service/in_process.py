"""A service without a port, fed step by step."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.rows import Batch, Row
from streamridge_service.service.service import Service
from streamridge_service.settings import settings_of
from tests.support.waiting import wait_until_async
from tests.support.workers.logs import START, STEP, daily

# The limit of a wait: some tests have thousands of sensors.
MANY_MINUTES = 900.0
NAMES = ("north", "south", "east")
WEEK = {name: daily(7 * 96, seed=i) for i, name in enumerate(NAMES)}


def small(database, **changes):
    """Return the settings of a small service that follows the clock of its readings."""
    usual = {"clock": "stream", "workers": 1, "train_size": 96, "memory": "4GB"}
    return settings_of(database=str(database), **{**usual, **changes})


def rows_of(step, names=NAMES):
    """Return the readings of one step."""
    return [Row(i + 1, name, START + step * STEP, WEEK[name][step]) for i, name in enumerate(names)]


async def settled(service):
    """Wait until all readings are processed, and nothing is being refitted or written."""
    quiet = 0

    def is_quiet():
        nonlocal quiet
        pool, writer = service.forecasts.pool, service.writer
        busy = pool.done < writer.seq or pool.waiting or pool.pending_refits or writer._pending
        busy = busy or service.forecasts.groups.waiting
        quiet = 0 if busy else quiet + 1
        return quiet > 1

    await wait_until_async(is_quiet, "an end of all work of the service", MANY_MINUTES, pause=0.003)
    # Rows that are being written at this moment are not pending any more.
    await asyncio.wrap_future(service.writer.submit(lambda ledger: None))


def is_critical(step, plan):
    """Return whether a refit may be due at a step: forecasts then depend on its completion."""
    index = START // STEP + step
    return any((index + plan.stagger(name)) % 96 < 5 for name in NAMES)


async def fed(service, first, last, names=NAMES, **wish):
    """Feed steps one by one, and wait until they are processed."""
    for step in range(first, last):
        await service.ingest.store(Batch(rows_of(step, names), []), IngestOptions(**wish))
        if is_critical(step, service.plan) or step % 16 == 0:
            await settled(service)
    await settled(service)


def serving(work, database, **changes):
    """Run a service during an async function of it; return the function's result."""

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
            entries = [(e.seq, e.time, e.value, e.kind) for e in ledger.readings(sensor.id)]
            issued = [
                (f.seq, f.time, f.values, f.lower, f.upper) for f in ledger.forecasts(sensor.id)
            ]
            snapshot = ledger.snapshot(sensor.id)
            digest.update(msgspec.json.encode((sensor.name, entries, issued)))
            digest.update(b"" if snapshot is None else snapshot.state)
    return digest.hexdigest()
