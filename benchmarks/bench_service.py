"""Measure what a service carries on this machine: by HTTP, into a real database.

    python benchmarks/bench_service.py [--sensors 39000] [--train-size 672] [--seconds 60]

- batch: one reading of every sensor in one request: until it is acknowledged, and until all
  forecasts are stored.
- sustained: batches of 43 readings, ten times the pace of 39,000 sensors: percentiles of the
  acknowledgement, while forecasts are made and refits go on.
- restart: from the start of the process until it is ready, with all sensors known.
- day: all sensors with a model each, step after step, as fast as it goes.
- history: 200,000 readings of one sensor in one request, a year of seven sensors, and a month
  before known readings; rows per second until they are acknowledged, rows per processor second of
  the process that stores them, which depends less on other work of the machine, and the longest
  answer of /livez meanwhile. Then a restart with a million rows, and the first reading after it.
- fleet: steps of all sensors with default settings, one after the other: seconds of each step,
  processor seconds of the workers, and the memory that all processes hold beside its limit. With
  `--models`, every sensor has a model of full size: a few are fitted, and the others start from
  copies of their stored states. It runs only by `--only fleet`.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep, time

import numpy as np
from msgspec.structs import replace

from streamridge_service.ledger.opening import open_ledger

STEP = 900
PACE, FEED = 433, 43
# Sensors of the fleet that are fitted, and the steps of their history.
FITTED, MONTH = 12, 45 * 96


def main() -> None:
    """Print what was measured, or write it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sensors", type=int, default=39_000)
    parser.add_argument("--train-size", type=int, default=672)
    parser.add_argument("--seconds", type=int, default=60, help="of the sustained load")
    parser.add_argument("--steps", type=int, default=8, help="of the simulated day")
    parser.add_argument("--day-sensors", type=int, default=2000, help="of the simulated day")
    parser.add_argument("--memory", help="of the service; by default its own default")
    parser.add_argument("--models", action="store_true", help="of full size in the fleet")
    parser.add_argument("--model", help="of the service; by default its own default")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=["load", "day", "history", "fleet"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, object] = {"sensors": options.sensors, "train_size": options.train_size}
    begin = int(time()) // STEP * STEP - 40 * 86_400
    with tempfile.TemporaryDirectory(prefix="streamridge-") as folder:
        if options.only in (None, "history"):
            found |= history(folder, options)
        if options.only in (None, "load"):
            found |= load(folder, options, begin)
        if options.only in (None, "day"):
            options.sensors = options.day_sensors
            found |= {"day_sensors": options.sensors, **day(folder, options, begin)}
        if options.only == "fleet":
            found = {"sensors": options.sensors, **fleet(folder, options, begin)}
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:>28}  {value:.4g}" if isinstance(value, float) else f"{name:>28}  {value}")


def load(folder: str, options: argparse.Namespace, begin: int) -> dict[str, float]:
    """Measure batches of all sensors, a sustained load, and a restart after them."""
    database = str(Path(folder) / "bench.db")
    with served(database, options) as (port, process):
        found = batches(port, process, options, begin)
        found |= sustained(port, process, options, begin + 10 * STEP)
    begun = monotonic()
    with served(database, options) as (port, process):
        found["restart_ready_s"] = monotonic() - begun
        found["restart_rss_mb"] = memory_of(process)
    return found


@contextmanager
def served(
    database: str, options: argparse.Namespace
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run a service in a process of its own until the end of a block."""
    command = [sys.executable, "-m", "streamridge", "serve", "--database", database, "--port", "0"]
    command += ["--clock", "stream", "--log-level", "error", "--workers", str(options.workers)]
    for name in ("train_size", "memory", "model"):
        if getattr(options, name) is not None:
            command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if (address := re.search(r"http://127.0.0.1:(\d+)", line)) is not None:
            break
    else:
        raise SystemExit("the service did not start")
    port = int(address[1])
    while ask(port, "/readyz")[0] != 200:
        sleep(0.02)
    try:
        yield port, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def ask(port: int, path: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def rows(names: range, step: int, begin: int) -> bytes:
    """Return the readings of some sensors at a step, as lines of JSON."""
    at = np.datetime64(begin + step * STEP, "s")
    phases = np.array(names) % 96
    noise = np.random.default_rng(step).standard_normal(len(phases))
    values = 100 + 50 * np.sin(2 * np.pi * (step + phases) / 96) + 5 * noise
    lines = [
        f'{{"sensor":"sensor-{name}","time":"{at}Z","value":{value:.2f}}}'
        for name, value in zip(names, values.tolist(), strict=True)
    ]
    return "\n".join(lines).encode()


def post(connection: http.client.HTTPConnection, body: bytes, query: str = "") -> float:
    """Send lines of JSON; return the seconds until they were acknowledged."""
    packed = gzip.compress(body, 1) if len(body) > 100_000 else body
    headers = {"Content-Type": "application/x-ndjson"}
    if packed is not body:
        headers["Content-Encoding"] = "gzip"
    begun = monotonic()
    connection.request("POST", f"/v1/readings{query}", packed, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status}: {text[:300]!r}")
    return monotonic() - begun


def figure(port: int, name: str) -> float:
    """Return a figure of /metrics."""
    found = re.search(rf"^streamridge_{name} (\S+)$", ask(port, "/metrics")[1], re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def worked_off(port: int, *names: str) -> None:
    """Wait until nothing waits any more."""
    while any(figure(port, name) for name in names):
        sleep(0.1)


def children_of(process: subprocess.Popen[str]) -> list[str]:
    """Return the process ids of the children of a process, and of their children."""
    return list(descendants(str(process.pid)))


def descendants(pid: str) -> Iterator[str]:
    """Yield the process ids of all processes that a process has started."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield child
        yield from descendants(child)


def memory_of(process: subprocess.Popen[str], kind: str = "VmRSS") -> float:
    """Return the resident memory of a process and its children, in MB; "VmHWM" is the highest."""
    return sum(status_mb(pid, kind) for pid in (process.pid, *children_of(process)))


def status_mb(pid: int | str, name: str) -> float:
    """Return a memory figure of a process, such as VmRSS, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(rf"{name}:\s+(\d+)", status)[0]) * 1024 / 1e6


def processor_seconds(*pids: int) -> float:
    """Return the processor time that some processes have used, without their children."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in pids]
    ticks = [sum(map(int, each.rpartition(")")[2].split()[11:13])) for each in stats]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def batches(
    port: int, process: subprocess.Popen[str], options: argparse.Namespace, begin: int
) -> dict[str, float]:
    """Measure five batches of all sensors, each acknowledged and then worked off."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    acknowledged, forecast = [], []
    for step in range(5):
        connection.close()  # it has been idle for longer than a service keeps one
        body = rows(range(options.sensors), step, begin)
        begun = monotonic()
        acknowledged.append(post(connection, body))
        worked_off(port, "readings_behind")
        forecast.append(monotonic() - begun)
    return {
        "batch_acknowledged_s": max(acknowledged),
        "batch_forecast_s": max(forecast),
        "rss_mb": memory_of(process),
    }


def sustained(
    port: int, process: subprocess.Popen[str], options: argparse.Namespace, begin: int
) -> dict[str, float]:
    """Measure acknowledgements of small batches at ten times the pace of 39,000 sensors."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    seconds, sent = [], 0
    begun = monotonic()
    while monotonic() - begun < options.seconds:
        first = sent % (options.sensors - FEED + 1)
        step = sent // (options.sensors - FEED + 1)
        seconds.append(post(connection, rows(range(first, first + FEED), step, begin)))
        sent += FEED
        sleep(max(0.0, sent / PACE - (monotonic() - begun)))
    lasted = monotonic() - begun
    worked_off(port, "readings_behind")
    return {
        "sustained_readings_per_s": sent / lasted,
        "sustained_p50_ms": 1000 * float(np.percentile(seconds, 50)),
        "sustained_p99_ms": 1000 * float(np.percentile(seconds, 99)),
        "sustained_most_ms": 1000 * max(seconds),
    }


class Prober:
    """A thread that asks for /livez all the time, and notes the longest answer.

    It uses one connection, or a new one every time, as a new client does.
    """

    def __init__(self, port: int, *, every_time_new: bool = False) -> None:
        self._port, self._done, self.longest = port, Event(), 0.0
        self._every_time_new, self._thread = every_time_new, Thread(target=self._run)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._done.wait(0.005):
            begun = monotonic()
            connection.request("GET", "/livez")
            connection.getresponse().read()
            self.longest = max(self.longest, monotonic() - begun)
            if self._every_time_new:
                connection.close()
        connection.close()

    def __enter__(self) -> Prober:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def past(names: list[str], first: int, steps: int) -> bytes:
    """Return readings of some sensors, step after step, as lines of JSON."""
    times = np.datetime_as_string(
        np.datetime64(first, "s") + STEP * np.arange(steps).astype("timedelta64[s]"), unit="s"
    ).tolist()
    return "\n".join(
        f'{{"sensor":"{name}","time":"{at}Z","value":{100 + i % 96}}}'
        for i, at in enumerate(times)
        for name in names
    ).encode()


def history(folder: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure large backfills, and a restart with a million rows."""
    database, now = str(Path(folder) / "history.db"), int(time()) // STEP * STEP
    seven = [f"seven-{i}" for i in range(7)]
    year = 365 * 96
    bodies = {
        "one_sensor": [past(["one"], now - 200_000 * STEP, 200_000)],
        "seven_sensors": [
            past(seven, now - year * STEP, year // 2),
            past(seven, now - (year - year // 2) * STEP, year - year // 2),
        ],
        "older": [past(seven, now - (year + 30 * 96) * STEP, 30 * 96)],
    }
    found = {}
    with served(database, options) as (port, process):
        for name, parts in bodies.items():
            found |= backfilled(port, process, name, parts)
        number = 0
        while figure(port, "readings_stored_total") < 1_000_000:
            more = [past([f"m{number}"], now - 190_000 * STEP, 190_000)]
            found |= backfilled(port, process, "more", more)
            number += 1
        found["history_rss_mb"] = memory_of(process)
    begun = monotonic()
    with served(database, options) as (port, process):
        found["million_rows_ready_s"] = monotonic() - begun
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        with Prober(port) as prober:
            found["first_reading_s"] = post(connection, past(["one", *seven], now, 1))
            worked_off(port, "readings_behind")
        found["restart_longest_pause_s"] = prober.longest
    return found


def backfilled(
    port: int, process: subprocess.Popen[str], name: str, parts: list[bytes]
) -> dict[str, float]:
    """Send large bodies; return rows per second, and the longest answer of /livez."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    count = sum(part.count(b"\n") + 1 for part in parts)
    with Prober(port) as prober:
        before = processor_seconds(process.pid)
        seconds = sum(post(connection, part, "?mode=backfill") for part in parts)
        busy = processor_seconds(process.pid) - before
        worked_off(port, "readings_behind")
    connection.close()
    return {
        f"{name}_rows_per_s": count / seconds,
        f"{name}_rows_per_cpu_s": count / busy,
        f"{name}_longest_pause_s": prober.longest,
    }


def day(folder: str, options: argparse.Namespace, begin: int) -> dict[str, float]:
    """Measure steps of all sensors with a model each, and the pace of a backfill."""
    database = str(Path(folder) / "day.db")
    history = options.train_size + 2 * 96
    with served(database, options) as (port, process):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        sent, begun = 0, monotonic()
        part = max(150_000 // options.sensors, 1)
        for step in range(0, history, part):
            steps = range(step, min(step + part, history))
            body = b"\n".join(rows(range(options.sensors), each, begin) for each in steps)
            post(connection, body, "?mode=backfill")
            sent += options.sensors * len(steps)
        stored = monotonic() - begun
        worked_off(port, "readings_behind", "refits_waiting")
        fitted = monotonic() - begun - stored
        begun = monotonic()
        for step in range(history, history + options.steps):
            post(connection, rows(range(options.sensors), step, begin))
            worked_off(port, "readings_behind")
        lasted = (monotonic() - begun) / options.steps
        return {
            "backfill_rows_per_s": sent / stored,
            "first_fits_s": fitted,
            "step_of_all_s": lasted,
            "times_real_time": STEP / lasted,
            "day_rss_mb": memory_of(process),
        }


def fleet(folder: str, options: argparse.Namespace, begin: int) -> dict[str, object]:
    """Measure steps of all sensors with default settings, and the memory beside its limit."""
    database, first = str(Path(folder) / "fleet.db"), 0
    options.train_size = None
    if options.models:
        first = MONTH
        begin -= first * STEP
        with_models(database, options, begin)
    seconds, work, held, limit = [], [], [], 0
    with served(database, options) as (port, process):
        started = memory_of(process)
        for step in range(first, first + options.steps):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
            begun, before = monotonic(), processor_seconds(*children_of(process))
            post(connection, rows(range(options.sensors), step, begin))
            worked_off(port, "readings_behind")
            connection.close()
            seconds.append(round(monotonic() - begun, 1))
            work.append(round(processor_seconds(*children_of(process)) - before, 1))
            held.append(round(memory_of(process)))
            limit = json.loads(ask(port, "/v1/summary")[1])["memory"]["limit"]
            line = f"step {step}: {seconds[-1]} s, {work[-1]} s of processors, {held[-1]} MB held"
            print(f"{line} of {limit / 1e6:.0f} MB", file=sys.stderr, flush=True)
        return {
            "start_mb": started,
            "step_s": seconds,
            "step_processor_s": work,
            "held_mb": held,
            "highest_mb": memory_of(process, "VmHWM"),
            "limit_mb": limit / 1e6,
        }


def with_models(database: str, options: argparse.Namespace, begin: int) -> None:
    """Make a database of sensors with models: some are fitted, and the others are their copies."""
    with served(database, options) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        for step in range(0, MONTH, 480):
            steps = range(step, min(step + 480, MONTH))
            body = b"\n".join(rows(range(FITTED), each, begin) for each in steps)
            post(connection, body, "?mode=backfill")
        worked_off(port, "readings_behind", "refits_waiting")
    with open_ledger(database) as ledger:
        fitted = [(sensor, ledger.snapshot(sensor.id)) for sensor in ledger.sensors()]
        for start in range(FITTED, options.sensors, 1000):
            sensors, snapshots = [], []
            for number in range(start, min(start + 1000, options.sensors)):
                sensor, snapshot = fitted[number % FITTED]
                assert snapshot is not None
                point = replace(snapshot.point, sensor=number + 1)
                sensors.append(replace(sensor, id=number + 1, name=f"sensor-{number}"))
                snapshots.append(replace(snapshot, point=point))
            ledger.append(sensors)
            ledger.add_snapshots(snapshots)


if __name__ == "__main__":
    main()
