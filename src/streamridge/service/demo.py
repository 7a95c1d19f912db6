"""A service to look at: simulated detectors send their counts over HTTP, a step every second.

One of them has fallen silent, one is stuck at zero, one shows nonsense now and then, and one has
begun to miscount.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

from streamridge.arrays import Matrix
from streamridge.datasets.roads import simulate_roads
from streamridge.errors import StreamRidgeError
from streamridge.service.client import Client, Patience
from streamridge.service.feeding import EPOCH, Feed, Outcome, Pace, packed
from streamridge.service.settings import ServiceSettings, settings_of
from streamridge.service.stock import Stock
from streamridge.service.web.server import run

DETECTORS = 24
STEP, DAY = timedelta(minutes=15), 96
# Days that are known at the start, the last of them as they came; and days that are simulated,
# whole weeks, so that they can be repeated. The one that miscounts was forecast for some days more:
# errors stand out from those of earlier days only.
KNOWN, LIVED, LIVED_MORE, SIMULATED = 14 * DAY, DAY, 6 * DAY, 56 * DAY
# A few rows make a quick fit.
TRAIN_SIZE, HORIZON = 480, 4
BOUNDS, NONSENSE = (0, 2000), 1900.0 * 3
SILENT, STUCK, ODD, SHAKY = "mainline-7", "ramp-12", "mainline-16", "mainline-10"
# Steps before the start at which one falls silent, one sticks, and one begins to miscount.
SILENT_SINCE, STUCK_SINCE, SHAKY_SINCE = 48, 72, 40
# How often nonsense comes, and for how many steps; by how much of itself a count is off.
ODD_EVERY, ODD_FOR, SHAKE = 24, 6, 0.25
# Steps that are sent at once until the present is reached: so few that no sensor seems stale while
# the others catch up. And seconds until models are waited for no longer.
HURRY, PATIENCE = 3, 30.0


class _EndedError(Exception):
    """The demo is over."""


def run_demo(given: ServiceSettings, say: Callable[[str], None]) -> int:
    """Serve simulated detectors from a temporary storage until told to stop; return the exit code.

    Parameters
    ----------
    given
        Settings, of which the host and the port are taken; a port that is not free is replaced.
    say
        What lines for people are given to.
    """
    with TemporaryDirectory(prefix="streamridge-demo-") as folder:
        settings = settings_of(
            database=str(Path(folder) / "demo.db"),
            host=given.host,
            port=given.port if _is_free(given.host, given.port) else 0,
            clock="stream",
            horizon=HORIZON,
            train_size=TRAIN_SIZE,
            memory="500MB",
            min_free="50MB",
            log_level="error",
        )
        simulator = Simulator()

        def begin(line: str) -> None:
            address = line.rpartition(" ")[2]
            say(f"Open {address} in a browser. Ctrl-C ends it.")
            say(
                f"{DETECTORS} simulated detectors first learn from two weeks, for some 20 seconds. "
                "Then 15 minutes pass every second."
            )
            say(
                f"{SILENT} has fallen silent, {STUCK} is stuck at zero, {ODD} shows nonsense now "
                f"and then, and {SHAKY} has begun to miscount."
            )
            simulator.start(address)

        try:
            return run(settings, say=begin, complain=lambda line: say(f"error: {line}"))
        finally:
            simulator.stop()


class Simulator:
    """Detectors along a motorway, whose counts are sent from a thread."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight - timedelta(days=KNOWN // DAY)
        rng = np.random.default_rng(7)
        roads = simulate_roads(
            rng,
            detectors=DETECTORS,
            days=SIMULATED // DAY,
            start=start.date().isoformat(),
        )
        self._names, self._first = roads.names, (start - EPOCH) // timedelta(microseconds=1)
        self._flows = roads.flows
        self._shaken = rng.lognormal(0.0, SHAKE, SIMULATED)
        self._present = int((now - start) / STEP)
        self._over = Event()
        self._thread: Thread | None = None

    def start(self, address: str) -> None:
        """Begin to send."""
        self._thread = Thread(target=self._run, args=(address,), name="simulator", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, address: str) -> None:
        try:
            with Client(address, patience=Patience(60.0, sleep=self._sleep)) as client:
                self._declare(client)
                self._send(client)
        except (_EndedError, StreamRidgeError):
            return  # with the service, which says why

    def _sleep(self, seconds: float) -> None:
        """Wait; but not beyond the end."""
        if self._over.wait(seconds):
            raise _EndedError

    def _declare(self, client: Client) -> None:
        """Declare what the detectors are: along a road from the south-west to the north-east."""
        for at, name in enumerate(self._names):
            kind = "ramps" if name.startswith("ramp") else "mainline"
            declared = {
                "label": f"{'Ramp' if kind == 'ramps' else 'A2'} km {12 + 0.8 * at:.1f}",
                "group": f"A2 {kind}",
                "position": [52.10 + 0.006 * at, 5.05 + 0.011 * at + 0.002 * (at % 3)],
                "unit": "veh/15min",
                "bounds": BOUNDS,
            }
            body = json.dumps(declared).encode()
            client.ask("PUT", f"/v1/sensors/{name}", body, Content_Type="application/json")

    def _send(self, client: Client) -> None:
        """Send what is known already as fast as it is taken, then a step a second, without end."""
        present = self._present
        past, lived = present - KNOWN, present - LIVED
        others = [name for name in self._names if name != SHAKY]
        self._backfill(client, self._stock(past, lived - LIVED_MORE, [SHAKY]))
        self._hurry(client, self._stock(lived - LIVED_MORE, lived, [SHAKY]), LIVED_MORE)
        self._backfill(client, self._stock(past, lived, others))
        self._wait_for_models(client)
        self._hurry(client, self._stock(lived, present, self._names), HURRY)
        while True:
            self._live(client, present, present + SIMULATED)
            present += SIMULATED

    def _backfill(self, client: Client, stock: Stock) -> None:
        for _ in Feed(client, backfill=True).send(stock, {}, Outcome()):
            self._sleep(0.0)

    def _hurry(self, client: Client, stock: Stock, steps: int) -> None:
        """Send so many steps at once, and the next ones when these have been forecast."""
        waiting = list(stock.steps({}))
        for at in range(0, len(waiting), steps):
            body = packed(row for rows in waiting[at : at + steps] for row in rows)
            named = {"Content_Type": "application/x-ndjson", "Content_Encoding": "gzip"}
            client.insist("POST", "/v1/readings?forecast=true", body, **named)
            self._sleep(0.0)

    def _wait_for_models(self, client: Client) -> None:
        """Wait until all sensors have learned from the past, so that none lags behind."""
        until = time.monotonic() + PATIENCE
        while client.get("/v1/summary")["sensors"]["good"] < DETECTORS - 1:
            self._sleep(0.2)
            if time.monotonic() > until:
                return

    def _live(self, client: Client, begin: int, end: int) -> None:
        way = Feed(client, pace=Pace(steps_a_second=1.0), sleep=self._sleep)
        for _ in way.send(self._stock(begin, end, self._names), {}, Outcome()):
            self._sleep(0.0)

    def _stock(self, begin: int, end: int, names: Sequence[str]) -> Stock:
        """Return the counts of some steps, with what is wrong with some detectors."""
        steps = np.arange(begin, end)
        flows: Matrix = self._flows[steps % SIMULATED].T.copy()
        row = {name: flows[at] for at, name in enumerate(self._names)}
        row[SILENT][steps >= self._present - SILENT_SINCE] = np.nan
        row[STUCK][steps >= self._present - STUCK_SINCE] = 0.0
        row[ODD][steps % ODD_EVERY < ODD_FOR] = NONSENSE
        shaken = steps >= self._present - SHAKY_SINCE
        row[SHAKY][shaken] = np.rint(row[SHAKY] * self._shaken[steps % SIMULATED])[shaken]
        step = STEP // timedelta(microseconds=1)
        first = self._first + begin * step
        return Stock(names, step, first, [0] * len(names), np.array([row[name] for name in names]))


def _is_free(host: str, port: int) -> bool:
    """Return whether a port can be listened on."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False
