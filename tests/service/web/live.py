"""Services on ports of their own, in this process or in another one."""

from __future__ import annotations

import asyncio
import json
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

from streamridge.service.ledger.opening import open_ledger
from streamridge.service.service import Service
from streamridge.service.settings import settings_of
from streamridge.service.web import tokens
from streamridge.service.web.app import create_app
from streamridge.service.web.beginning import bound
from streamridge.service.web.ending import LastResort
from streamridge.service.web.server import Server

ROOT = Path(__file__).parents[3]
YEAR = 365 * 86_400_000_000
NOW = time.time_ns() // 1000
SMALL = {"workers": 1, "train_size": 96, "memory": "200MB", "clock": "stream", "port": 0}


class Live:
    """A service on a port, in a thread of this process; to be used by `with`."""

    def __init__(self, database, **changes):
        self.settings = settings_of(database=str(database), **{**SMALL, **changes})
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self):
        self.loop = asyncio.get_running_loop()
        self.service = Service(self.settings)
        self.service.open()
        self.app = create_app(self.service)
        self.server = Server(self.app, self.service, lambda line: self._ready.set(), LastResort())
        await self.server.serve([bound(self.settings.host, self.settings.port)])
        await self.service.close()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(60)
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
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, transport=transport)

    def do(self, work):
        """Return what an async function of the service returns, called in its event loop."""
        return asyncio.run_coroutine_threadsafe(work(self.service), self.loop).result(60)

    def call(self, function):
        """Return what a function of the service returns, called in its event loop."""

        async def work(service):
            return function(service)

        return self.do(work)

    def post(self, rows, **params):
        return self.client.post("/v1/readings", json=rows, params=params)


def readings(name, first, values, step=900):
    """Return readings of a sensor from a moment on, a step apart."""
    return [
        {"sensor": name, "time": stamp(first + i * step), "value": value}
        for i, value in enumerate(values)
    ]


def stamp(seconds):
    """Return a moment as text."""
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
    made["wrong"] = tokens.PREFIX + "A" * 43
    return made


class Process:
    """A service in a process of its own."""

    def __init__(self, database, *, patches=(), wait=True, **changes):
        given = {**SMALL, "database": str(database), **changes}
        command = [sys.executable, "-m", "tests.service.web.serving", json.dumps(given), *patches]
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

    def end(self, sig=signal.SIGTERM, timeout=20):
        """Send a signal; return the exit code and what was logged."""
        self.process.send_signal(sig)
        return self.left(timeout)

    def left(self, timeout=20):
        """Wait for the end; return the exit code and what was logged."""
        self.process.wait(timeout)
        self.ended = time.monotonic()
        _, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, errors

    def memory(self, name):
        """Return a figure of the process's memory, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])

    def forget_peak(self):
        """Let the peak of memory be counted anew."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


@contextmanager
def process(database, **changes):
    """Give a service in a process of its own, which ends with the block."""
    served = Process(database, **changes)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.end()
        served.process.stdout.close()
        served.process.stderr.close()


def raw(port, request, *, host="127.0.0.1", timeout=10):
    """Send bytes as they are; return the status, the headers and the body that come back."""
    with socket.create_connection((host, port), timeout=timeout) as connection:
        connection.sendall(request)
        return parsed(connection)


def parsed(connection):
    """Read an answer; return its status, headers and body."""
    file = connection.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while line := file.readline().strip():
        name, _, value = line.decode("latin-1").partition(": ")
        headers[name.lower()] = value
    size = headers.get("content-length")
    body = file.read(int(size)) if size else b""
    return status, headers, body
