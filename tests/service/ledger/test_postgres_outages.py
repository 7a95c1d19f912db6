"""An outage of PostgreSQL loses and duplicates nothing (A13)."""

import random
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import psycopg
import pytest

from streamridge_service.ledger import postgres as postgres_ledger
from streamridge_service.ledger.errors import StorageAwayError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger.postgres_server import PostgresServer
from tests.support.ledger.samples import entries, forecast, sensor, snapshot
from tests.support.waiting import wait_until

SIZE = 25


class Client:
    """A thread that writes batches, and sends each again until it is acknowledged."""

    def __init__(self, ledger):
        self._ledger = ledger
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.acknowledged = self.away = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()

    def await_more(self, name, after=lambda: None):
        """Do something, and wait until a number of this client has grown since before it."""
        before = getattr(self, name)
        after()
        wait_until(lambda: getattr(self, name) > before, f"more {name}")

    def _write(self):
        known = [sensor(number) for number in range(1, 5)]
        while not self._stop.is_set():
            first, last = self.acknowledged + 1, self.acknowledged + SIZE
            forecasts = [forecast(seq) for seq in range(first, last + 1)]
            self._insist(self._ledger.append, known, entries(first, last))
            self._insist(self._ledger.add_forecasts, forecasts)
            self._insist(self._ledger.add_snapshots, [snapshot(last, 1 + last % 4)])
            self.acknowledged = last

    def _insist(self, write, *rows):
        while True:
            try:
                return write(*rows)
            except StorageAwayError:
                self.away += 1
                time.sleep(0.005)


def end_connections(url):
    """End all connections of a database but one's own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def assert_all_there(ledger, last):
    assert list(ledger.check()) == []
    assert ledger.last_seq() >= last
    assert sorted(ledger.readings_after(0), key=lambda one: one.seq) == entries(
        1, ledger.last_seq()
    )
    assert [one.seq for one in ledger.forecasts()] == list(range(1, ledger.last_seq() + 1))


def test_connections_that_end_lose_nothing(postgres, counted):
    url, chance = postgres.new_database(), random.Random(13)

    with open_ledger(url) as ledger:
        with Client(ledger) as client:
            for _ in range(20):
                client.await_more("acknowledged")
                time.sleep(chance.uniform(0, 0.02))  # at any moment of a batch
                client.await_more("away", after=lambda: end_connections(url))
        assert_all_there(ledger, client.acknowledged)

    assert client.acknowledged >= 20 * SIZE
    counted("A13", 20)


@pytest.mark.slow
def test_a_server_that_is_killed_loses_nothing(counted):
    server, chance = PostgresServer(), random.Random(131)
    try:
        url = server.new_database()
        with open_ledger(url) as ledger, open_ledger(url, read_only=True) as reader:
            with Client(ledger) as client:
                for _ in range(99):
                    time.sleep(chance.uniform(0, 0.3))
                    if chance.random() < 0.5:
                        end_connections(url)
                    else:
                        server.kill()
                        server.start()
                    before = client.acknowledged
            assert_all_there(ledger, client.acknowledged)
            server.kill()
            with pytest.raises(StorageAwayError, match="cannot be reached"):
                reader.last_seq()
            server.start()
            assert await_last(reader) >= before
    finally:
        server.stop()
    assert client.away > 20
    counted("A13", 100)


def await_last(ledger):
    """Return the last arrival number, once the server answers."""

    def last():
        with suppress(StorageAwayError):
            return ledger.last_seq()

    return wait_until(last, "an answer of the server")


def test_attempts_to_connect_back_off(postgres, monkeypatch):
    url, attempts, clock = postgres.new_database(), [], SimpleNamespace(now=0.0)
    monkeypatch.setattr(postgres_ledger, "time", SimpleNamespace(monotonic=lambda: clock.now))

    with open_ledger(url) as ledger:
        ledger._storage._url = url.replace("host=", "host=/nowhere")
        end_connections(url)
        for _ in range(80):
            with pytest.raises(StorageAwayError, match="cannot be reached") as error:
                ledger.append([sensor(1)])
            if "the next attempt is in" not in str(error.value):
                attempts.append(clock.now)
            clock.now += 0.01
        ledger._storage._url = url
        clock.now += 0.8
        ledger.append([sensor(1)])

    # The first error reports the lost connection.
    assert attempts == pytest.approx([0.0, 0.01, 0.11, 0.31, 0.71], abs=0.02)
