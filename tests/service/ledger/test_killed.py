"""A process that writes is killed at each of its writes, syncs, truncations and removals (A1)."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger import batches
from tests.support.ledger.samples import digest
from tests.support.ledger.traced import KILLED, needs_strace, run_traced

CALLS = ("pwrite64", "fdatasync", "ftruncate", "unlink")

pytestmark = needs_strace


def points_of_a_run(path):
    """Return each call of a run that may be its last, as its name and number."""
    acknowledged, status = run_traced(path, "after", f"trace={','.join(CALLS)}")
    assert (acknowledged, status) == (list(range(batches.BATCHES)), 0)
    names = re.findall(r"^\d+ +(\w+)\(", Path(f"{path}.trace").read_text(), re.MULTILINE)
    seen = Counter()
    return [(name, seen[name]) for name in names if seen.update([name]) is None]


def lost_batches(path, when, point):
    """Kill a run at a point, and return the batches that were acknowledged and are not there.

    The stored data must be intact, and sending all batches again must complete them.
    """
    name, number = point
    inject = f"inject={name}:signal=KILL:when={number}"
    acknowledged, status = run_traced(path, when, f"trace={name}", inject)
    assert status == KILLED, point
    with open_ledger(path) as ledger:
        assert list(ledger.check()) == [], point
        there = ledger.last_seq() // batches.SIZE
        batches.write_all(ledger, lambda _: None)
        assert list(ledger.check()) == [], point
        assert digest(ledger) == digest_of(path.parents[1] / "whole" / path.name), point
    return [batch for batch in acknowledged if batch >= there]


def digest_of(path):
    with open_ledger(path, read_only=True) as ledger:
        return digest(ledger)


def kill_at(points, folder, when):
    def case(number):
        return lost_batches(folder / str(number) / "ledger.db", when, points[number])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(case, range(len(points))))


@pytest.mark.parametrize(
    "share", [pytest.param(64, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_a_kill_loses_nothing_acknowledged(folder, share, counted):
    points = points_of_a_run(folder / "whole" / "ledger.db")[share // 2 :: share]

    lost = kill_at(points, folder, "after")

    assert {name for name, _ in points} >= {"pwrite64", "fdatasync"}
    assert not any(lost), lost
    counted("A1", len(points))


@pytest.mark.slow
def test_acknowledging_before_the_commit_is_noticed(folder, counted):
    points = points_of_a_run(folder / "whole" / "ledger.db")[200::16]

    lost = kill_at(points, folder, "before")

    assert any(lost)
    counted("A1 broken", len(points))
