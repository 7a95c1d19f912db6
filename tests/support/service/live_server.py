"""Services on their own ports, in this process or in another one."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

from streamridge_service.http import tokens
from streamridge_service.http.app import create_app
from streamridge_service.http.server import ForcedExit, Server, bind
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.logs import TOKEN_PREFIX
from streamridge_service.service.service import Service
from streamridge_service.settings import settings_of
from tests.support.paths import ROOT
from tests.support.waiting import LIMIT

YEAR = 365 * 86_400_000_000
NOW = time.time_ns() // 1000
SMALL = {"workers": 1, "train_size": 96, "memory": "400MB", "clock": "stream", "port": 0}


class Live:
    """A service on a port, in a thread of this process, for use with `with`."""

    def __init__(self, database, **changes):
        self.settings = settings_of(database=str(database), **{**SMALL, **changes})
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self):
        self.loop = asyncio.get_running_loop()
        self.service = Service(self.settings)
        self.service.open()
        self.app = create_app(self.service)
        self.server = Server(self.app, self.service, lambda line: self._ready.set(), ForcedExit())
        await self.server.serve([bind(self.settings.host, self.settings.port)])
        await self.service.close()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(LIMIT), "the service does not listen"
        self.client = self.new_client()
        return self

    def __exit__(self, *_):
        self.client.close()
        self.loop.call_soon_threadsafe(self.server.stop)
        self._thread.join()

    @property
    def url(self):
        return self.server.address

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def new_client(self, token=None, address=None):
        """Return a client with a token, at an address of this machine."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.HTTPTransport(local_address=address) if address else None
        return httpx.Client(base_url=self.url, headers=headers, timeout=LIMIT, transport=transport)

    def do(self, work):
        """Return the result of an async function of the service, run in its event loop."""
        return asyncio.run_coroutine_threadsafe(work(self.service), self.loop).result(LIMIT)

    def call(self, function):
        """Return the result of a function of the service, run in its event loop."""

        async def work(service):
            return function(service)

        return self.do(work)

    def post(self, rows, **params):
        return self.client.post("/v1/readings", json=rows, params=params)


def readings(name, first, values, step=900):
    """Return readings of a sensor from a time on, one step apart."""
    return [
        {"sensor": name, "time": stamp(first + i * step), "value": value}
        for i, value in enumerate(values)
    ]


def stamp(seconds):
    """Return a time as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def make_tokens(database):
    """Store a token of each kind in a database; return their texts."""
    made = {}
    with open_ledger(str(database)) as ledger:
        for scope in tokens.SCOPES:
            made[scope] = tokens.create(ledger, scope, [scope], now=NOW)[1]
        for name in ("expired", "revoked"):
            past = NOW - YEAR
            token, made[name] = tokens.create(ledger, name, ["admin"], now=past, expires=NOW)
        tokens.revoke(ledger, token.id, now=NOW)
    made["wrong"] = TOKEN_PREFIX + "A" * 43
    return made


class Process:
    """A service in its own process."""

    def __init__(self, database, *, patches=(), wait=True, **changes):
        given = {**SMALL, "database": str(database), **changes}
        command = [
            sys.executable,
            "-m",
            "tests.support.service.serve_process",
            json.dumps(given),
            *patches,
        ]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.pid, self.url = self.process.pid, ""
        if wait:
            line = self.process.stdout.readline()
            found = re.match(r"streamridge serves (http://\S+)$", line)
            assert found, self.process.communicate()[1]
            self.url = found[1]

    def end(self, sig=signal.SIGTERM, timeout=LIMIT):
        """Send a signal; return the exit code and the log."""
        self.process.send_signal(sig)
        return self.left(timeout)

    def left(self, timeout=LIMIT):
        """Wait for the end; return the exit code and the log."""
        _, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, errors

    def memory(self, name):
        """Return a memory figure of the process, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])

    def forget_peak(self):
        """Reset the peak of memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


@contextmanager
def process(database, **changes):
    """Run a service in its own process until the end of the block."""
    served = Process(database, **changes)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.end()
        served.process.stdout.close()
        served.process.stderr.close()


def raw(port, request, *, host="127.0.0.1", timeout=LIMIT):
    """Send raw bytes; return status, headers and body of the response."""
    with socket.create_connection((host, port), timeout=timeout) as connection:
        connection.sendall(request)
        return parsed(connection)


def parsed(connection):
    """Read a response; return its status, headers and body."""
    file = connection.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while line := file.readline().strip():
        name, _, value = line.decode("latin-1").partition(": ")
        headers[name.lower()] = value
    size = headers.get("content-length")
    body = file.read(int(size)) if size else b""
    return status, headers, body


# The time of the first reading of services that follow the clock of their readings.
START = 1_767_225_600
STEPS = 5 * 96


def daily(count, seed=0):
    """Return values with a daily profile."""
    return [
        100 + 50 * math.sin(i / 96 * 2 * math.pi + seed) + i * (7 + seed) % 5 for i in range(count)
    ]
