"""The disk is full at any write (A4), or a sync fails (A5)."""

import json
import shutil
import subprocess
import sys

import apsw
import pytest

from streamridge_service.ledger.errors import DiskFullError, StorageFailedError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger import batches, driver
from tests.support.ledger.faulty_files import Journal, noted
from tests.support.ledger.samples import entries, sensor
from tests.support.ledger.traced import needs_strace, run_traced

COMMITS, SIZE = 30, 10


pytestmark = pytest.mark.usefixtures("short_log")


class FailingOnce(Journal):
    """A file layer that fails at one call, counted from when it is armed."""

    def __init__(self, call, code):
        super().__init__(self._code)
        self._call, self._error, self._at = call, code, None

    def arm(self, number):
        self._at = self.count(self._call) + number

    def _code(self, call, number):
        return self._error if call == self._call and number == self._at else 0


def append_all(ledger):
    """Append all batches, and try again whenever the disk is full; return how often it was."""
    full = 0
    for first in range(1, COMMITS * SIZE, SIZE):
        batch = entries(first, first + SIZE - 1)
        try:
            ledger.append(readings=batch)
        except DiskFullError:
            full += 1
            there = len(list(ledger.readings_after(0)))  # reading goes on
            assert there == ledger.last_seq() == first - 1
            ledger.append(readings=batch)
    return full


def calls_of_a_run(folder, call):
    """Return how many calls a run takes if none fails."""
    journal = FailingOnce(call, 0)
    with noted(journal), open_ledger(folder / "whole.db") as ledger:
        before = journal.count(call)
        ledger.append([sensor(number) for number in range(1, 5)])
        append_all(ledger)
        return journal.count(call) - before


def test_a_full_disk_at_any_write_loses_nothing(folder, counted):
    writes = calls_of_a_run(folder, "write")
    points = range(12, writes, 3)

    told = 0
    for point in points:
        journal = FailingOnce("write", apsw.SQLITE_FULL)
        with noted(journal), open_ledger(folder / f"{point}.db") as ledger:
            ledger.append([sensor(number) for number in range(1, 5)])
            journal.arm(point - 10)
            told += append_all(ledger)

            assert sorted(ledger.readings_after(0), key=lambda one: one.seq) == entries(
                1, COMMITS * SIZE
            )
            assert list(ledger.check()) == []

    # The others were while the log was folded in, which can wait.
    assert told > len(points) / 2
    counted("A4", len(points))


@pytest.mark.parametrize(
    ("megabytes", "times"),
    [
        (2, 3),
        pytest.param(2, 20, marks=pytest.mark.slow),
        pytest.param(4, 20, marks=pytest.mark.slow),
        pytest.param(8, 20, marks=pytest.mark.slow),
    ],
)
def test_a_real_full_disk_loses_nothing(tmp_path, counted, megabytes, times):
    mount = f"mount -t tmpfs -o size={megabytes}m tmpfs {tmp_path}"
    private = [shutil.which("unshare") or "unshare", "-rm", "sh", "-c"]
    if subprocess.run([*private, mount], capture_output=True, check=False).returncode:
        pytest.skip("NO SMALL DISK: a really full disk is NOT tested, since nothing can be mounted")

    command = [sys.executable, driver.__file__, "filling", str(tmp_path), str(times)]
    done = subprocess.run(
        [*private, f'{mount} && exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rounds) == times
    for found in rounds:
        assert found["acknowledged"] == found["last"] > 100
        assert found["went on"] > 0
        assert found["wrong"] == []
    counted("A4", times)


def test_the_ledger_stops_writing_after_a_failed_sync(folder, counted):
    points = range(1, calls_of_a_run(folder, "sync"))

    for point in points:
        journal = FailingOnce("sync", apsw.SQLITE_IOERR_FSYNC)
        path = folder / f"{point}.db"
        with noted(journal), open_ledger(path) as ledger:
            ledger.append([sensor(number) for number in range(1, 5)])
            journal.arm(point)
            acknowledged = append_until_failed(ledger)
            with pytest.raises(StorageFailedError, match="Check its disk"):
                ledger.add_events([])
            assert ledger.last_seq() >= acknowledged  # reading goes on

        with open_ledger(path) as again:
            last = again.last_seq()
            assert last >= acknowledged
            assert list(again.check()) == []
            assert sorted(again.readings_after(0), key=lambda one: one.seq) == entries(1, last)

    counted("A5", len(points))


def append_until_failed(ledger):
    """Append until the storage fails; return the last arrival number that was acknowledged."""
    last = 0
    try:
        while True:
            ledger.append(readings=entries(last + 1, last + SIZE))
            last += SIZE
    except StorageFailedError:
        return last


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "call", "error", "times"),
    [("A4", "pwrite64", "ENOSPC", 100), ("A5", "fdatasync", "EIO", 30)],
)
def test_a_failing_system_call_loses_nothing(folder, counted, row, call, error, times):
    failed = 0
    for number in range(1, times + 1):
        path = folder / str(number) / "ledger.db"

        inject = f"inject={call}:error={error}:when={number}"
        acknowledged, status = run_traced(path, "after", f"trace={call}", inject)

        failed += status != 0
        with open_ledger(path) as ledger:
            assert ledger.last_seq() >= len(acknowledged) * batches.SIZE
            assert list(ledger.check()) == []
            batches.write_all(ledger, lambda _: None)
            assert list(ledger.check()) == []
    assert failed > times / 2
    counted(row, times)
