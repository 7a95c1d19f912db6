"""The log of SQLite stays short, however many read (A12)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamridge_service.ledger import sqlite
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.samples import entries, sensor

PAGE = 4096
# Batches that are written one after the other.
BURST = 5
LEAST_READ = 10


def poll(ledger, stop, pause, times, number):
    """Read again and again, and count how often."""
    while not stop.wait(pause):
        ledger.readings(1 + times[number] % 4, after=max(0, ledger.last_seq() - 500))
        times[number] += 1


def longest_log(path, pollers, bursts, batch, sensors, *, pause=0.0, rest=0.0):
    """Return the most bytes that the log had while some read and one wrote, in bursts.

    Readers pause after each reading, and the writer rests after each burst. There are `bursts` of
    them, and more until every reader has read a few times.
    """
    stop, longest, last, times = threading.Event(), 0, 0, [0] * pollers
    with open_ledger(path) as ledger, open_ledger(path, read_only=True) as reader:
        with ThreadPoolExecutor(pollers) as pool:
            ledger.append([sensor(number) for number in range(1, 5)])
            reading = [pool.submit(poll, reader, stop, pause, times, i) for i in range(pollers)]
            try:
                while last < bursts * BURST * batch or min(times) < LEAST_READ:
                    for _ in range(BURST):
                        ledger.append(readings=entries(last + 1, last + batch, sensors))
                        last += batch
                        longest = max(longest, ledger.size()["log"])
                    time.sleep(rest)
            finally:
                stop.set()
        assert [one.result() for one in reading] == [None] * pollers
        assert ledger.last_seq() == last
    return longest


def test_a_log_behind_readers_stays_short(folder, counted, monkeypatch):
    monkeypatch.setattr(sqlite, "CHECKPOINT_AT", 64)
    monkeypatch.setattr(sqlite, "RESTART_AT", 128)

    longest = longest_log(folder / "ledger.db", pollers=4, bursts=15, batch=200, sensors=4)

    # As 128 MB are to the log at which it is folded in.
    assert 64 * PAGE <= longest <= 4 * 64 * PAGE
    counted("A12", 4)


@pytest.mark.slow
def test_the_log_stays_below_its_limit(folder, counted):
    longest = longest_log(
        folder / "ledger.db",
        pollers=100,
        bursts=45,
        batch=39_000,
        sensors=39_000,
        pause=0.5,
        rest=4,
    )

    assert sqlite.CHECKPOINT_AT * PAGE <= longest <= 128 * 2**20
    counted("A12", 100)
