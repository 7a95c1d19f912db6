"""Measure how long clients and operators of a service wait: for answers, refusals, starts, stops.

    python benchmarks/bench_waits.py [--sensors 39000] [--only attacks] [--json]

Each figure stands beside its goal:

- start_cpu_s: processor time of a start with 4,000 known sensors;
- second_start_refused_s: a second process on the database of a running service;
- metrics_ms: one scrape of all sensors, best of five;
- event_s: from the sending of a reading to the event with its forecast, worst of five;
- answer_beside_a_stalled_stream_ms: median, while a client of the event stream reads nothing;
- stalled_body_refused_s: a body of which nothing comes, including the 30 s that it may take;
- full_queue_refused_ms: a request that finds the queue full, worst;
- stop_s: from the signal to the exit, with 50 event streams and a client that writes;
- second_signal_s: from a second signal to the exit of a service that hangs;
- headers, half_open, slow_readers: the longest answer of /livez during an attack, and by how much
  the memory of the service grew. The attacks are 600 MB of headers, 1,100 connections with half a
  request each while 1,024 files may be open, and 200 clients that do not read their responses.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic, process_time, sleep, time

import msgspec
import numpy as np
from bench_service import STEP, Prober, ask, post, rows, served, status_mb, worked_off

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.errors import InUseError
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.records import (
    IssuedForecast,
    RefitPoint,
    SensorRow,
    Snapshot,
    StoredReading,
)
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch, Row
from streamridge_service.service.service import Service
from streamridge_service.service.writer import MAX_WAITING
from streamridge_service.settings import ServiceSettings, settings_of
from streamridge_service.workers.sensor_state import SensorSummary

GOALS = {
    "start_cpu_s": 2.0,
    "second_start_refused_s": 2.0,
    "metrics_ms": 50.0,
    "event_s": 3.0,
    "answer_beside_a_stalled_stream_ms": 100.0,
    "stalled_body_refused_s": 35.0,
    "full_queue_refused_ms": 100.0,
    "stop_s": 10.0,
    "second_signal_s": 1.0,
    "headers_livez_s": 1.0,
    "headers_growth_mb": 64.0,
    "half_open_livez_s": 1.0,
    "half_open_growth_mb": 64.0,
    "slow_readers_livez_s": 1.0,
    "slow_readers_growth_mb": 64.0,
}
KNOWN, STREAMS, HEARD = 4000, 50, 100
# Open files of a service that is attacked, and of this process.
FEW_FILES, MANY_FILES = 1024, 4096
HALF_REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: "
# Seconds for which an attack goes on after its last connection.
ATTACK_SECONDS = 3.0
HANGING = """
import sys, time
from streamridge_service.http.server import run
from streamridge_service.service.service import Service
from streamridge_service.settings import settings_of
Service._close = lambda *_: (print("hangs", flush=True), time.sleep(600))
sys.exit(run(settings_of(database=sys.argv[1], port=0, workers=1, log_level="error")))
"""


def main() -> None:
    """Print the figures with their goals, or write them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sensors", type=int, default=39_000)
    parser.add_argument("--only", choices=["attacks"], help="one part")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.train_size, options.memory, options.workers, options.model = 672, "8GB", 2, None
    with tempfile.TemporaryDirectory(prefix="streamridge-") as folder:
        found = attacked(folder, options)
        if options.only is None:
            found |= {
                "start_cpu_s": start_cpu(Path(folder) / "known.db"),
                "full_queue_refused_ms": 1000 * full_queue_refused(Path(folder) / "full.db"),
                **by_http(str(Path(folder) / "served.db"), options),
                "second_signal_s": second_signal(str(Path(folder) / "hanging.db")),
            }
    if options.json:
        print(json.dumps(found))
        return
    for name, goal in GOALS.items():
        if name in found:
            print(f"{name:>34}  {found[name]:8.3g}  (goal {goal:g})")


def small(database: Path) -> ServiceSettings:
    """Return the settings of a service with one worker."""
    return settings_of(database=str(database), clock="stream", workers=1, train_size=96)


def start_cpu(database: Path) -> float:
    """Return the processor seconds of a start with known sensors."""
    summary = msgspec.json.encode(SensorSummary(newest=0, first=0, value=1.0, fitted=True))
    numbers = range(1, KNOWN + 1)
    with open_ledger(str(database)) as ledger:
        ledger.append(
            [SensorRow(i, f"sensor-{i}", 0) for i in numbers],
            [StoredReading(i, i, 0, 1.0, 0) for i in numbers],
        )
        forecasts = [
            IssuedForecast(i, i, STEP * 10**6, 0, "last", (1.0,), (0.5,), (1.5,)) for i in numbers
        ]
        ledger.add_forecasts(forecasts, done=KNOWN)
        ledger.add_snapshots(
            [
                Snapshot(RefitPoint(i, i, 0, "kept"), bytes(50_000), summary, b"{}", "here")
                for i in numbers
            ]
        )

    async def started() -> float:
        service, begun = Service(small(database)), process_time()
        service.open()
        try:
            return process_time() - begun
        finally:
            await service.close()

    return asyncio.run(started())


def full_queue_refused(database: Path) -> float:
    """Return the longest time until a request is refused while nothing can be written."""
    gate = Event()

    async def refused() -> float:
        service = Service(small(database))
        service.open()
        append = service.ledger.append
        service.ledger.append = lambda *given, **more: (gate.wait(), append(*given, **more))[1]  # type: ignore[method-assign]
        waiting, seconds = [], []
        for step in range(2 * MAX_WAITING):
            begun = monotonic()
            batch = Batch([Row(1, "a", step * STEP * 10**6, 1.0)], [])
            task = asyncio.ensure_future(service.ingest.store(batch, IngestOptions()))
            await asyncio.sleep(0)
            if task.done():
                assert isinstance(task.exception(), Problem)
                seconds.append(monotonic() - begun)
            else:
                waiting.append(task)
        gate.set()
        await asyncio.gather(*waiting)
        await service.close()
        return max(seconds)

    return asyncio.run(refused())


def by_http(database: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure a service with all sensors; stop it at the end."""
    begin = int(time()) // STEP * STEP - 40 * 86_400
    with served(database, options) as (port, process):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        post(connection, rows(range(options.sensors), 0, begin))
        worked_off(port, "readings_behind")
        connection.close()  # it has been idle for longer than a service keeps one
        return {
            "metrics_ms": 1000 * min(seconds_of_answer(port, "/metrics") for _ in range(5)),
            "second_start_refused_s": second_start_refused(database),
            "event_s": event_after_reading(port, begin),
            "answer_beside_a_stalled_stream_ms": 1000 * beside_a_stalled_stream(port, begin),
            "stalled_body_refused_s": stalled_body_refused(port),
            "stop_s": stop_under_load(port, process, begin),
        }


def seconds_of_answer(port: int, path: str) -> float:
    """Return the seconds until an answer has come."""
    begun = monotonic()
    status, _ = ask(port, path)
    assert status == 200
    return monotonic() - begun


def second_start_refused(database: str) -> float:
    """Return the seconds until a second process may not use the database."""
    begun = monotonic()
    try:
        open_ledger(database)
    except InUseError:
        return monotonic() - begun
    raise SystemExit("two processes use one database")


@contextmanager
def listening(port: int, query: str = "") -> Iterator[socket.socket]:
    """Open an event stream of which nothing is read beyond its first bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(f"GET /v1/stream{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
        yield connection


def event_after_reading(port: int, begin: int) -> float:
    """Return the longest time from the sending of a reading to its event."""
    writer = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    seconds = []
    with listening(port, "?sensors=sensor-0") as connection, connection.makefile("rb") as lines:
        for step in range(1, 6):
            newest = f'"newest":"{np.datetime64(begin + step * STEP, "s")}Z"'.encode()
            begun = monotonic()
            post(writer, rows(range(1), step, begin))
            while newest not in next(lines):
                pass
            seconds.append(monotonic() - begun)
    writer.close()
    return max(seconds)


def beside_a_stalled_stream(port: int, begin: int) -> float:
    """Return the median time of an answer while a client does not read its events."""
    writer = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    names = ",".join(f"sensor-{i}" for i in range(HEARD))
    seconds = []
    with listening(port, f"?sensors={names}"):
        for step in range(6, 46):
            post(writer, rows(range(HEARD), step, begin))
            seconds.append(seconds_of_answer(port, "/livez"))
    writer.close()
    return statistics.median(seconds)


def stalled_body_refused(port: int) -> float:
    """Return the seconds until a body of which nothing comes is refused."""
    head = "POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(f"{head}Content-Length: 100000\r\n\r\n".encode())
        begun = monotonic()
        assert connection.recv(12) == b"HTTP/1.1 408"
        return monotonic() - begun


def stop_under_load(port: int, process: subprocess.Popen[str], begin: int) -> float:
    """Return the seconds from a signal to the end of a service with streams and a writer."""
    acknowledged = Event()

    def write() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            for step in range(46, 10_000):
                post(connection, rows(range(43), step, begin))
                acknowledged.set()
        except (OSError, http.client.HTTPException, SystemExit):
            return  # the service stops

    with ExitStack() as streams:
        for _ in range(STREAMS):
            streams.enter_context(listening(port))
        writer = Thread(target=write)
        writer.start()
        acknowledged.wait()
        begun = monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait()
        lasted = monotonic() - begun
        writer.join()
    return lasted


def second_signal(database: str) -> float:
    """Return the seconds from a second signal to the end of a service that hangs."""
    command = [sys.executable, "-c", HANGING, database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert re.match(r"streamridge serves http://\S+$", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "hangs\n"
        begun = monotonic()
        process.send_signal(signal.SIGINT)
        process.wait()
        lasted = monotonic() - begun
        process.stdout.read()  # until its worker has ended as well
        return lasted


def attacked(folder: str, options: argparse.Namespace) -> dict[str, float]:
    """Return the longest answers of /livez and the growth of memory during each attack."""
    found = {}
    for name, attack in {
        "headers": endless_headers,
        "half_open": half_open,
        "slow_readers": slow_readers,
    }.items():
        with (
            few_files(),
            served(str(Path(folder) / f"{name}.db"), options) as (port, process),
            ExitStack() as connections,
        ):
            allow_files(MANY_FILES)
            before = status_mb(process.pid, "VmRSS")
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # forget the peak
            with Prober(port, every_time_new=True) as prober:
                attack(port, connections)
            found[f"{name}_livez_s"] = prober.longest
            found[f"{name}_growth_mb"] = status_mb(process.pid, "VmHWM") - before
    return found


@contextmanager
def few_files() -> Iterator[None]:
    """Let processes that are started in a block open few files."""
    before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_files(FEW_FILES)
    try:
        yield
    finally:
        allow_files(before)


def allow_files(most: int) -> None:
    """Set how many files this process, and those that it starts, may open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def endless_headers(port: int, connections: ExitStack) -> None:
    """Send headers of 100 MB on each of six connections, as far as the service takes them."""

    def send() -> None:
        with socket.create_connection(("127.0.0.1", port), 120) as connection:
            connection.sendall(HALF_REQUEST)
            with suppress(OSError):
                for _ in range(1600):
                    connection.sendall(b"a" * 65_536)

    threads = [Thread(target=send) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def half_open(port: int, connections: ExitStack) -> None:
    """Send half a request on each of 1,100 connections."""
    for _ in range(1100):
        connection = socket.create_connection(("127.0.0.1", port), 120)
        connections.enter_context(connection).sendall(HALF_REQUEST + b"a" * 4000)
    sleep(ATTACK_SECONDS)


def slow_readers(port: int, connections: ExitStack) -> None:
    """Send ten requests on each of 200 connections, and read no response."""
    for _ in range(200):
        connection = connections.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
    sleep(ATTACK_SECONDS)


if __name__ == "__main__":
    main()
