"""Power is lost: what was not synced vanishes, all of it or some (A2)."""

import random

import pytest

from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.faulty_files import Journal, disk_after, noted
from tests.support.ledger.samples import entries, forecast, sensor, snapshot

COMMITS, SIZE = 150, 3


pytestmark = pytest.mark.usefixtures("short_log")


def recorded_run(folder, synchronous):
    """Return what a run of many commits asked of the file layer, with its acknowledgements."""
    journal = Journal()
    with noted(journal), open_ledger(folder / "ledger.db") as ledger:
        ledger._storage._writer.execute(f"PRAGMA synchronous = {synchronous}").fetchall()
        ledger.append([sensor(number) for number in range(1, 5)])
        for first in range(1, COMMITS * SIZE, SIZE):
            last = first + SIZE - 1
            ledger.append(readings=entries(first, last))
            journal.note("acknowledged", last)
            if first % 25 == 1:
                ledger.add_forecasts([forecast(seq) for seq in range(first, last + 1)])
                ledger.add_snapshots([snapshot(last, size=9000)])
    return journal.calls


def lost(calls, end, folder, keep):
    """Return how many acknowledged readings are lost if power goes after a call."""
    acknowledged = max((call[1] for call in calls[:end] if call[0] == "acknowledged"), default=0)
    folder.mkdir()
    disk_after((call for call in calls[:end] if call[0] != "acknowledged"), folder, keep)
    with open_ledger(folder / "ledger.db") as ledger:
        last = ledger.last_seq()
        assert list(ledger.check()) == []
        assert sorted(ledger.readings_after(0), key=lambda one: one.seq) == entries(1, last)
    return max(0, acknowledged - last)


def losses(folder, synchronous, every):
    """Return the loss at every n-th call, with nothing and with a random half of the unsynced."""
    calls = recorded_run(folder, synchronous)
    ends = range(0, len(calls) + 1, every)
    nothing = [lost(calls, end, folder / f"{end}", None) for end in ends]
    half = [lost(calls, end, folder / f"{end}-half", random.Random(end)) for end in ends]
    return nothing + half


@pytest.mark.parametrize("every", [20, pytest.param(3, marks=pytest.mark.slow)])
def test_a_power_failure_loses_nothing_acknowledged(folder, every, counted):
    found = losses(folder, "FULL", every=every)

    assert not any(found)
    counted("A2", len(found))


@pytest.mark.slow
def test_a_commit_that_is_not_synced_is_noticed(folder, counted):
    found = losses(folder, "NORMAL", every=15)

    assert sum(loss > 0 for loss in found) > len(found) / 4
    counted("A2 broken", len(found))
