"""The log of SQLite stays short, however many read (A12)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamridge.service.ledger import sqlite
from streamridge.service.ledger.opening import open_ledger
from tests.service.ledger.samples import entries, sensor

PAGE = 4096
# Batches that are written one after the other.
BURST = 5


def poll(ledger, stop, pause):
    """Read again and again, and return how often."""
    times = 0
    while not stop.wait(pause):
        ledger.entries(1 + times % 4, after=max(0, ledger.last() - 500))
        times += 1
    return times


def longest_log(path, pollers, seconds, batch, sensors, *, pause=0.0, rest=0.0):
    """Return the most bytes that the log had while some read and one wrote, in bursts.

    Readers pause after each reading, and the writer rests after each burst.
    """
    stop, longest, last = threading.Event(), 0, 0
    with open_ledger(path) as ledger, open_ledger(path, read_only=True) as reader:
        with ThreadPoolExecutor(pollers) as pool:
            reading = [pool.submit(poll, reader, stop, pause) for _ in range(pollers)]
            ledger.append([sensor(number) for number in range(1, 5)])
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for _ in range(BURST):
                    ledger.append(entries=entries(last + 1, last + batch, sensors))
                    last += batch
                    longest = max(longest, ledger.size()["log"])
                time.sleep(rest)
            stop.set()
        assert all(one.result() for one in reading)
        assert ledger.last() == last
    return longest


def test_a_log_behind_readers_stays_short(folder, counted, monkeypatch):
    monkeypatch.setattr(sqlite, "FOLD_AT", 64)
    monkeypatch.setattr(sqlite, "RESTART_AT", 128)

    longest = longest_log(folder / "ledger.db", pollers=4, seconds=2, batch=200, sensors=4)

    # As 128 MB are to the log at which it is folded in.
    assert 64 * PAGE <= longest <= 4 * 64 * PAGE
    counted("A12", 4)


@pytest.mark.slow
def test_the_log_stays_below_its_limit(folder, counted):
    longest = longest_log(
        folder / "ledger.db",
        pollers=100,
        seconds=240,
        batch=39_000,
        sensors=39_000,
        pause=0.5,
        rest=4,
    )

    assert sqlite.FOLD_AT * PAGE <= longest <= 128 * 2**20
    counted("A12", 100)
