"""The demo: simulated detectors send their counts to a service over HTTP, a step every second.

One detector is silent, one is stuck at zero, one sends impossible values now and then, and one
miscounts. One more sensor has a step of its own: it sends the number of lorries every hour.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

import streamridge as sr
from streamridge.errors import StreamRidgeError
from streamridge_service.client.feed import EPOCH, Feed, FeedResult, Pace, compressed_rows
from streamridge_service.client.http_client import Client, RetryPolicy
from streamridge_service.client.readings_table import ReadingsTable
from streamridge_service.http.server import run
from streamridge_service.settings import ServiceSettings, settings_of

DETECTORS = 24
STEP, DAY = timedelta(minutes=15), 96
# Steps of history at the start. The last LIVE steps of it are sent as live readings. The detector
# with wrong counts needs more live steps, because its errors are compared with errors of earlier
# days. SIMULATED steps are whole weeks, which repeat.
HISTORY, LIVE, LIVE_MORE, SIMULATED = 14 * DAY, DAY, 6 * DAY, 56 * DAY
# Few rows are fitted quickly.
TRAIN_SIZE, HORIZON = 480, 4
# Waves of traffic pass from each detector to the next, so that sensors of a group help each other.
WAVES = 0.08
BOUNDS, IMPOSSIBLE = (0, 2000), 1900.0 * 3
SILENT, STUCK, ODD, MISCOUNTING = "mainline-7", "ramp-12", "mainline-16", "mainline-10"
# The sensor with readings every hour: the detector that it follows, and its share of the counts.
HOURLY, FOLLOWED, LORRIES, AN_HOUR = "lorries", "mainline-1", 0.12, 4
# Steps before the start at which the first fault begins, the second and the fourth.
SILENT_SINCE, STUCK_SINCE, MISCOUNTING_SINCE = 48, 72, 40
# Period and length of the impossible values, in steps; relative error of the miscounts.
ODD_EVERY, ODD_FOR, MISCOUNT = 24, 6, 0.25
# Steps of one request until the present is reached: few, so that no sensor seems stale while the
# others catch up. And the most seconds to wait for the models.
STEPS_AT_ONCE, MODEL_TIMEOUT = 3, 30.0


class _StoppedError(Exception):
    """The demo was stopped."""


def run_demo(given: ServiceSettings, print_line: Callable[[str], None]) -> int:
    """Serve simulated detectors from a temporary database; return the exit code.

    Only the host and the port of the settings are used. If the port is not free, another one is
    chosen.
    """
    with TemporaryDirectory(prefix="streamridge-demo-") as folder:
        settings = settings_of(
            database=str(Path(folder) / "demo.db"),
            host=given.host,
            port=given.port if _is_free(given.host, given.port) else 0,
            clock="stream",
            horizon=HORIZON,
            train_size=TRAIN_SIZE,
            min_free="50MB",
            log_level="error",
        )
        simulator = Simulator()

        def begin(line: str) -> None:
            address = line.rpartition(" ")[2]
            print_line(f"Open {address} in a browser. Ctrl-C stops it.")
            print_line(
                f"{DETECTORS} simulated detectors first learn from two weeks, which takes about 20 "
                "seconds. Then 15 minutes pass every second."
            )
            print_line(
                f"{SILENT} is silent, {STUCK} is stuck at zero, {ODD} sends impossible values now "
                f"and then, and {MISCOUNTING} miscounts. {HOURLY} has readings every hour."
            )
            simulator.start(address)

        try:
            return run(
                settings,
                print_line=begin,
                print_error=lambda line: print_line(f"error: {line}"),
                clean_up=lambda: rmtree(folder, ignore_errors=True),
            )
        finally:
            simulator.stop()


class Simulator:
    """Detectors along a motorway; a thread sends their counts."""

    def __init__(self) -> None:
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        start = midnight - timedelta(days=HISTORY // DAY)
        rng = np.random.default_rng(7)
        roads = sr.datasets.simulate_roads(
            rng,
            detectors=DETECTORS,
            days=SIMULATED // DAY,
            waves=WAVES,
            start=start.date().isoformat(),
        )
        self._names, self._first = roads.names, (start - EPOCH) // timedelta(microseconds=1)
        self._flows = roads.flows
        self._miscounts = rng.lognormal(0.0, MISCOUNT, SIMULATED)
        self._present = int((now - start) / STEP)
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self, address: str) -> None:
        """Start sending."""
        self._thread = Thread(target=self._run, args=(address,), name="simulator", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, address: str) -> None:
        try:
            with Client(address, retries=RetryPolicy(60.0, sleep=self._sleep)) as client:
                self._declare(client)
                self._send(client)
        except (_StoppedError, StreamRidgeError):
            return  # the service has stopped, and printed the reason

    def _sleep(self, seconds: float) -> None:
        """Wait; raise if the demo stops."""
        if self._stopped.wait(seconds):
            raise _StoppedError

    def _declare(self, client: Client) -> None:
        """Declare the detectors, along a road from the south-west to the north-east."""
        for at, name in enumerate(self._names):
            kind = "ramps" if name.startswith("ramp") else "mainline"
            declared = {
                "label": f"{'Ramp' if kind == 'ramps' else 'A2'} km {12 + 0.8 * at:.1f}",
                "group": f"A2 {kind}",
                "position": [52.10 + 0.006 * at, 5.05 + 0.011 * at + 0.002 * (at % 3)],
                "unit": "veh/15min",
                "bounds": BOUNDS,
            }
            _put(client, name, declared)
        hourly = {"label": "Lorries, A2 km 12.0", "group": "A2 mainline", "unit": "veh/h"}
        _put(client, HOURLY, {**hourly, "step": "1h"})

    def _send(self, client: Client) -> None:
        """Send the history as fast as possible, then a step a second, without end."""
        present = self._present
        past, live = present - HISTORY, present - LIVE
        others = [name for name in self._names if name != MISCOUNTING]
        self._backfill(client, self._counts(past, live - LIVE_MORE, [MISCOUNTING]))
        self._catch_up(client, self._counts(live - LIVE_MORE, live, [MISCOUNTING]), LIVE_MORE)
        self._backfill(client, self._counts(past, live, others))
        self._backfill(client, self._lorries(past, present))
        self._wait_for_models(client)
        self._catch_up(client, self._counts(live, present, self._names), STEPS_AT_ONCE)
        while True:
            self._live(client, present, present + SIMULATED)
            present += SIMULATED

    def _backfill(self, client: Client, table: ReadingsTable) -> None:
        for _ in Feed(client, backfill=True).send([table], {}, FeedResult()):
            self._sleep(0.0)

    def _catch_up(self, client: Client, table: ReadingsTable, steps: int) -> None:
        """Send `steps` steps at a time, each time after the forecasts of the last ones."""
        waiting = [rows for _, rows in table.by_step({})]
        for at in range(0, len(waiting), steps):
            body = compressed_rows(row for rows in waiting[at : at + steps] for row in rows)
            headers = {"Content_Type": "application/x-ndjson", "Content_Encoding": "gzip"}
            client.request_until_final("POST", "/v1/readings?forecast=true", body, **headers)
            self._sleep(0.0)

    def _wait_for_models(self, client: Client) -> None:
        """Wait until all sensors have learned from their history."""
        until = time.monotonic() + MODEL_TIMEOUT
        while client.get("/v1/summary")["sensors"]["good"] < DETECTORS - 1:
            self._sleep(0.2)
            if time.monotonic() > until:
                return

    def _live(self, client: Client, begin: int, end: int) -> None:
        feed = Feed(client, pace=Pace(steps_a_second=1.0), sleep=self._sleep)
        tables = [self._counts(begin, end, self._names), self._lorries(begin, end)]
        for _ in feed.send(tables, {}, FeedResult()):
            self._sleep(0.0)

    def _counts(self, begin: int, end: int, names: Sequence[str]) -> ReadingsTable:
        """Return the counts of some steps, with the faults of some detectors."""
        steps = np.arange(begin, end)
        flows = self._flows[steps % SIMULATED].T.copy()
        row = {name: flows[at] for at, name in enumerate(self._names)}
        row[SILENT][steps >= self._present - SILENT_SINCE] = np.nan
        row[STUCK][steps >= self._present - STUCK_SINCE] = 0.0
        row[ODD][steps % ODD_EVERY < ODD_FOR] = IMPOSSIBLE
        wrong = steps >= self._present - MISCOUNTING_SINCE
        row[MISCOUNTING][wrong] = np.rint(row[MISCOUNTING] * self._miscounts[steps % SIMULATED])[
            wrong
        ]
        step = STEP // timedelta(microseconds=1)
        first = self._first + begin * step
        return ReadingsTable(
            names, step, first, [0] * len(names), np.array([row[name] for name in names])
        )

    def _lorries(self, begin: int, end: int) -> ReadingsTable:
        """Return the lorries of the hours that start within some steps."""
        first, last = (-(-step // AN_HOUR) for step in (begin, end))
        hours = np.arange(first, last)[:, None] * AN_HOUR + np.arange(AN_HOUR)
        counts = self._flows[hours % SIMULATED, self._names.index(FOLLOWED)].sum(axis=1)
        step = AN_HOUR * (STEP // timedelta(microseconds=1))
        values = np.rint(LORRIES * counts)[None]
        return ReadingsTable([HOURLY], step, self._first + first * step, [0], values)


def _put(client: Client, name: str, declared: Mapping[str, object]) -> None:
    body = json.dumps(declared).encode()
    client.request("PUT", f"/v1/sensors/{name}", body, Content_Type="application/json")


def _is_free(host: str, port: int) -> bool:
    """Return whether a port is free."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False
