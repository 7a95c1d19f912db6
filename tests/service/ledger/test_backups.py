"""A backup while others write is a sound prefix of the log (A14)."""

import threading

import pytest

from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.samples import entries, forecast, sensor, snapshot
from tests.support.waiting import LIMIT

SIZE = 40


class Load:
    """A thread that writes without a pause, and knows what was acknowledged."""

    def __init__(self, ledger):
        self._ledger, self.acknowledged = ledger, 0
        self._stop, self._progress = threading.Event(), threading.Condition()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self):
        self._ledger.append([sensor(number) for number in range(1, 5)])
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()

    def wait_for(self, seq):
        with self._progress:
            assert self._progress.wait_for(lambda: self.acknowledged >= seq, timeout=LIMIT)

    def _write(self):
        while not self._stop.is_set():
            first, last = self.acknowledged + 1, self.acknowledged + SIZE
            self._ledger.append(readings=entries(first, last))
            with self._progress:
                self.acknowledged = last
                self._progress.notify()
            self._ledger.add_forecasts([forecast(seq) for seq in range(first, last + 1)])
            self._ledger.add_snapshots([snapshot(last, 1 + last % 4)])


@pytest.mark.usefixtures("short_log")
@pytest.mark.parametrize("copies", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_each_backup_under_load_is_an_intact_prefix(address, folder, copies, counted):
    backups = []
    with (
        open_ledger(address) as ledger,
        open_ledger(address, read_only=True) as reader,
        Load(ledger) as load,
    ):
        for number in range(copies):
            path, before = folder / f"backup-{number}.db", load.acknowledged
            reader.copy_to(str(path))
            backups.append((path, before))
            load.wait_for(before + SIZE)

    for path, before in backups:
        with open_ledger(path, read_only=True) as backup:
            last = backup.last_seq()
            assert list(backup.check()) == []
            assert last >= before
            assert sorted(backup.readings_after(0), key=lambda one: one.seq) == entries(1, last)
    assert load.acknowledged >= copies * SIZE
    counted("A14", len(backups))
