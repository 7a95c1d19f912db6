"""`kill -9` of a whole service, at any moment while a client sends readings (A1)."""

import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.rows import Batch, Row
from streamridge_service.verification.groups import check_groups
from streamridge_service.verification.verify import check_sensors
from tests.support.service.batches import NAMES, SENSORS, batches_of
from tests.support.service.in_process import digest_of, serving, settled
from tests.support.service.live_server import stamp
from tests.support.service.serve_command import await_forecasts, begun, figure_of, served
from tests.support.workers.logs import PLAN

# Times that a service is killed in one test; batches that are sent in one life, at most, and
# seconds between them.
KILLS, SHARE, PAUSE = 50, 12, 0.02
SETTINGS = {"train_size": 1440}  # a refit takes a while


def mode_of(number):
    return "live" if number else "backfill"


def lived(database, batches):
    """Let a service live without a stop; return how many cuts are due after each batch."""

    async def fed(service):
        for number, rows in enumerate(batches):
            batch = Batch([Row(i + 1, n, t * 10**6, v) for i, (n, t, v) in enumerate(rows)], [])
            await service.ingest.store(batch, IngestOptions(mode=mode_of(number)))
            await settled(service)

    serving(fed, database, **SETTINGS)
    with open_ledger(str(database), read_only=True) as ledger:
        points = [point for sensor in ledger.sensors() for point in ledger.refit_points(sensor.id)]
    return [sum(is_due(point, rows[-1][1] * 10**6) for point in points) for rows in batches]


def is_due(point, newest):
    """Return whether a cut must have been made, given the time of the newest reading."""
    return point.kind == "start" or newest - point.until > PLAN.open_for


def cuts_in(ledger):
    """Return how many cuts are stored."""
    return sum(len(ledger.refit_points(sensor.id)) for sensor in ledger.sensors())


class Sender:
    """A client that sends batches in order, and each again until it is acknowledged.

    Parameters
    ----------
    batches
        The batches to send.
    points
        How many cuts must be stored after each batch before the next one is sent, if that is to be
        waited for: forecasts do not depend on the pace then.
    group
        The group that the sensors declare, if there is one.
    """

    def __init__(self, batches, points=None, group=None):
        self._batches, self._refit_points, self._group = batches, points, group
        self.acknowledged = 0
        self.rests = False  # whether it has sent all it may in this life of the service

    def send(self, service, most):
        """Repeat the last batch, then send at most `most` batches until the service is gone."""
        unused, self.rests = len(self._batches) - self.acknowledged, False
        with (
            suppress(httpx.TransportError),
            service.client() as client,
            open_ledger(str(service.database), read_only=True) as ledger,
        ):
            self._await_cuts(service, ledger)
            if self.acknowledged:
                assert self._post(client, self.acknowledged - 1) == "duplicate"
            elif self._group:
                self._declare(client)
            for _ in range(min(most, unused)):
                self._post(client, self.acknowledged)
                self.acknowledged += 1
                self._await_cuts(service, ledger)
                time.sleep(PAUSE)
            self.rests = True

    def _declare(self, client):
        for name in NAMES:
            client.put(f"/v1/sensors/{name}", json={"group": self._group}).raise_for_status()

    def _post(self, client, number):
        """Send a batch; return what became of all of its readings."""
        rows, params = self._batches[number], {"mode": mode_of(number)}
        body = [{"sensor": n, "time": stamp(t), "value": v} for n, t, v in rows]
        answer = client.post("/v1/readings", json=body, params=params)
        assert answer.status_code == 200, answer.text
        (word,) = (word for word, count in answer.json().items() if count == len(rows))
        return word

    def _await_cuts(self, service, ledger):
        if self._refit_points is None or not self.acknowledged:
            return
        while cuts_in(ledger) < self._refit_points[self.acknowledged - 1]:
            if service.process.poll() is not None:
                raise httpx.ReadError("it was killed")
            time.sleep(0.005)


class Killer:
    """Kills a service once in each of its lives: while it starts, in a refit, or whenever.

    Parameters
    ----------
    sender
        The client that sends meanwhile.
    seed
        The random generator that draws the moments.
    """

    def __init__(self, sender, seed):
        self._sender, self._chance = sender, random.Random(seed)
        self._start = 2.0  # seconds that a start took last
        self.tally = Counter()

    def kill(self, service):
        """Kill a service while clients send, and record its activity."""
        moment = self._chance.choice((self._in_start, self._in_refit, self._whenever))
        self.tally[moment(service)] += 1

    def _in_start(self, service):
        time.sleep(self._chance.uniform(0, self._start))
        service.kill()
        return "start" if "streamridge serves" not in service.words else "served"

    def _whenever(self, service):
        self._await_ready(service)
        time.sleep(self._chance.uniform(0, 1.2 * self._start))  # its workers need a while, too
        service.kill()
        return "served"

    def _in_refit(self, service):
        """Kill it in a refit, as its figures tell; or at rest, if there is none."""
        self._await_ready(service)
        with service.client() as client:
            while not is_refitting(client) and (
                not self._sender.rests or figure_of(client, "readings_behind")
            ):
                time.sleep(0.005)
            time.sleep(self._chance.uniform(0, self._chance.choice((0.1, 0.1, 1.0))))
            word = "refit" if is_refitting(client) else "served"
        service.kill()
        return word

    def _await_ready(self, service):
        assert service.await_ready()
        self._start = time.monotonic() - service.begun


def is_refitting(client):
    """Return whether a service makes a refit."""
    return figure_of(client, "refits_waiting") > 0


def live_and_die(database, sender, killer, times):
    """Kill a service `kills` times while batches are sent to it."""
    for _ in range(times):
        with begun(database, **SETTINGS) as service, ThreadPoolExecutor(1) as pool:
            killing = pool.submit(killer.kill, service)
            if service.await_ready():
                sender.send(service, SHARE)
            killing.result()
        assert service.process.returncode == -signal.SIGKILL
        assert "Traceback" not in service.words


def live_on(database, sender):
    """Let a service take all that is left to send, and end in order."""
    with served(database, **SETTINGS) as service:
        sender.send(service, 10**6)
        with service.client() as client:
            await_forecasts(client)
        assert service.end() == 0
        assert "Traceback" not in service.words


def readings_in(ledger):
    """Return the readings that are stored: of each sensor, by its name."""
    return {
        sensor.name: [(each.time, each.value) for each in ledger.readings(sensor.id)]
        for sensor in ledger.sensors()
    }


def readings_of(batches):
    """Return the readings of batches: of each sensor, by its name."""
    readings = {name: [] for name in NAMES}
    for rows in batches:
        for name, seconds, value in rows:
            readings[name].append((seconds * 10**6, value))
    return readings


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_repeated_kills_change_no_byte(tmp_path, seed, record_property):
    """To the last bit: the client waits for refits, so that nothing depends on its pace."""
    batches = batches_of(KILLS * SHARE)
    sender = Sender(batches, lived(tmp_path / "whole.db", batches))
    killer = Killer(sender, seed)

    live_and_die(tmp_path / "killed.db", sender, killer, KILLS)
    live_on(tmp_path / "killed.db", sender)

    assert_all_there(tmp_path / "killed.db", batches)
    assert digest_of(tmp_path / "killed.db") == digest_of(tmp_path / "whole.db")
    assert min(killer.tally["start"], killer.tally["refit"]) >= KILLS / 10
    record_property("row", "A1")
    record_property("cases", KILLS)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "group"), [(3, None), (4, "A2")])
def test_a_kill_under_load_leaves_a_consistent_log(tmp_path, seed, group, record_property):
    batches, database = batches_of(KILLS * SHARE), tmp_path / "killed.db"
    sender = Sender(batches, group=group)
    killer = Killer(sender, seed)

    live_and_die(database, sender, killer, KILLS)
    live_on(database, sender)

    assert_all_there(database, batches)
    with open_ledger(str(database), read_only=True) as ledger:
        found = [
            (v.fault, v.is_exact, v.forecasts) for v in check_sensors(ledger, ledger.sensors())
        ]
        groups = [(g.group, g.fault, g.is_exact, g.corrections > 0) for g in check_groups(ledger)]
        steps = ledger.group_steps(group, PLAN.step) if group else []
    assert found == [(None, True, len(batches) - 1)] * SENSORS
    assert groups == ([(group, None, True, True)] if group else [])
    assert [i for i, each in enumerate(steps) if each.begins] == ([0] if group else [])
    assert min(killer.tally["start"], killer.tally["refit"]) >= KILLS / 10
    record_property("row", "A1")
    record_property("cases", KILLS)


def assert_all_there(database, batches):
    """See that each reading that was acknowledged is stored, and once."""
    with open_ledger(str(database), read_only=True) as ledger:
        assert list(ledger.check()) == []
        assert readings_in(ledger) == readings_of(batches)
