"""Batches that a process writes, and says when each is there, to be killed at any moment."""

import os

from streamridge_service.ledger import sqlite
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger import samples

BATCHES, SIZE = 12, 20


def write_batch(ledger, number):
    """Write the readings of a batch, which is what is acknowledged, or find that they are there."""
    first = number * SIZE + 1
    known = [samples.sensor(one) for one in range(1, 5)] if number == 0 else []
    readings = samples.entries(first, first + SIZE - 2)
    ledger.append(known, readings, [samples.action(first + SIZE - 1)])


def write_consequences(ledger, number):
    """Write what follows from a batch."""
    first = number * SIZE + 1
    forecasts = [samples.forecast(seq) for seq in range(first, first + SIZE - 1)]
    ledger.add_forecasts(forecasts, done=first + SIZE - 1)
    if number % 3 == 2:
        ledger.add_snapshots([samples.snapshot(first, one) for one in range(1, 5)])
    ledger.add_events([samples.event(number + 1)])


def write_all(ledger, acknowledge, *, too_early=False):
    """Write all batches, and acknowledge each once it is there; or too early, by mistake."""
    for number in range(BATCHES):
        if too_early:
            acknowledge(number)
        write_batch(ledger, number)
        if not too_early:
            acknowledge(number)
        write_consequences(ledger, number)


def main(path, when):
    """Write all batches to a file, and print the number of each that is there."""
    # The log is folded in several times in a short run, both with and without a new beginning.
    sqlite.CHECKPOINT_AT, sqlite.RESTART_AT = 24, 40
    with open_ledger(path) as ledger:
        write_all(ledger, lambda number: os.write(1, b"%d\n" % number), too_early=when == "before")
