"""PostgreSQL is gone at any moment: nothing is lost, nothing is there twice (A13)."""

import random
import threading
import time

import psycopg
import pytest

from streamridge.service.ledger.base import StorageAwayError
from streamridge.service.ledger.opening import open_ledger
from tests.service.ledger.postgres_server import PostgresServer
from tests.service.ledger.samples import entries, forecast, sensor, snapshot

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

    def _write(self):
        known = [sensor(number) for number in range(1, 5)]
        while not self._stop.is_set():
            first, last = self.acknowledged + 1, self.acknowledged + SIZE
            forecasts = [forecast(seq) for seq in range(first, last + 1)]
            self._insist(self._ledger.append, known, entries(first, last))
            self._insist(self._ledger.issue, forecasts)
            self._insist(self._ledger.keep, [snapshot(last, 1 + last % 4)])
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
    assert ledger.last() >= last
    assert sorted(ledger.recent(0), key=lambda one: one.seq) == entries(1, ledger.last())
    assert [one.seq for one in ledger.forecasts()] == list(range(1, ledger.last() + 1))


def test_connections_that_end_lose_nothing(postgres, counted):
    url, chance = postgres.new_database(), random.Random(13)

    with open_ledger(url) as ledger:
        with Client(ledger) as client:
            for _ in range(20):
                time.sleep(chance.uniform(0, 0.1))
                end_connections(url)
        assert_all_there(ledger, client.acknowledged)

    assert client.away >= 10
    assert client.acknowledged > 10 * SIZE
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
                reader.last()
            server.start()
            assert await_last(reader) >= before
    finally:
        server.stop()
    assert client.away > 20
    counted("A13", 100)


def await_last(ledger):
    """Return the last arrival number, once the server answers."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return ledger.last()
        except StorageAwayError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_attempts_to_connect_become_rarer(postgres):
    url, attempts = postgres.new_database(), []

    with open_ledger(url) as ledger:
        ledger._storage._url = url.replace("host=", "host=/nowhere")
        end_connections(url)
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            with pytest.raises(StorageAwayError, match="cannot be reached") as error:
                ledger.append([sensor(1)])
            attempts.append("the next attempt is in" not in str(error.value))
            time.sleep(0.01)
        ledger._storage._url = url
        time.sleep(0.9)
        ledger.append([sensor(1)])

    assert len(attempts) > 30
    # One is told of the lost connection; the next come after 0, 0.1, 0.3 and 0.7 seconds.
    assert 3 <= sum(attempts) <= 5
