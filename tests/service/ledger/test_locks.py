"""Only one process serves a storage; the lock of a killed process is released (A11)."""

import os
import subprocess
import sys

import pytest

from streamridge_service.ledger.errors import InUseError
from streamridge_service.ledger.opening import open_ledger
from tests.support.ledger import driver
from tests.support.ledger.samples import entries, sensor

RACERS = 2


def start(address):
    """Start a process that waits for the signal to open a storage."""
    return subprocess.Popen(
        [sys.executable, driver.__file__, "racing", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def race(address):
    """Let processes race for a storage, kill who won, and return the words of all."""
    racers = [start(address) for _ in range(RACERS)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * RACERS
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    words = [racer.stdout.readline() for racer in racers]
    winners = [racer for racer, word in zip(racers, words, strict=True) if word == "serving\n"]
    for racer in racers:
        racer.kill()
        racer.communicate()
    return [winner.pid for winner in winners], [word for word in words if word != "serving\n"]


@pytest.mark.parametrize(
    ("address", "races"),
    [
        ("sqlite", 2),
        ("postgres", 1),
        pytest.param("sqlite", 50, marks=pytest.mark.slow),
        pytest.param("postgres", 50, marks=pytest.mark.slow),
    ],
    indirect=["address"],
)
def test_only_one_of_several_processes_serves(address, races, counted):
    with open_ledger(address) as ledger:
        ledger.append([sensor(1)], entries(1, 5, 1))

    for number in range(races):
        winners, words = race(address)

        assert len(winners) == 1
        assert len(words) == RACERS - 1
        for word in words:
            assert f"is served by process {winners[0]} since 20" in word
        # The winner was killed, which must not block the next.
        with open_ledger(address) as ledger:
            ledger.append(readings=[*entries(1, 5 + number + 1, 1)])

    counted("A11", races)


def test_a_second_writer_is_refused(address):
    with (
        open_ledger(address),
        pytest.raises(InUseError, match=f"process {os.getpid()} since"),
    ):
        open_ledger(address)


def test_readers_take_no_lock(address):
    open_ledger(address).close()

    with (
        open_ledger(address, read_only=True),
        open_ledger(address, read_only=True),
        open_ledger(address) as ledger,
    ):
        ledger.append([sensor(1)], entries(1, 5, 1))
