"""The server: opens the service, then the port; and ends both in order."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import current_thread, main_thread
from types import FrameType

import structlog
import uvicorn

from streamridge.errors import StreamRidgeError
from streamridge.service.service import Service
from streamridge.service.settings import ServiceSettings
from streamridge.service.web import logs
from streamridge.service.web.app import create_app
from streamridge.service.web.beginning import (
    FINE,
    STORAGE,
    CannotServeError,
    bound,
    code_of,
    require_storage,
)
from streamridge.service.web.door import Door
from streamridge.service.web.ending import LastResort

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds that requests under way have to end, and workers; and that all of it may take.
REQUESTS_END, WORKERS_END, ALL_ENDS = 3.0, 4.0, 9.0
# Seconds until the process ends once it was told to twice.
AT_ONCE = 0.5
BACKLOG = 2048

Say = Callable[[str], None]

log = structlog.get_logger("streamridge.service.web")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _complain(line: str) -> None:
    sys.stderr.write(f"error: {line}\n")
    sys.stderr.flush()


def run(settings: ServiceSettings, *, say: Say = _say, complain: Say = _complain) -> int:
    """Serve until the process is told to stop; return the code to exit with.

    Parameters
    ----------
    settings
        What the service was told.
    say, complain
        What lines for people are given to: the address, or why there is none.
    """
    logs.configure(settings.log_level)
    resort = LastResort()
    try:
        return asyncio.run(serve(settings, say, resort))
    except CannotServeError as error:
        complain(error.reason)
        return error.code
    finally:
        resort.give_up()


async def serve(settings: ServiceSettings, say: Say, resort: LastResort) -> int:
    """Open the service and the port, and serve; return the code to exit with."""
    require_storage(settings)
    listening = bound(settings.host, settings.port)
    service = Service(settings)
    try:
        service.open()
    except StreamRidgeError as error:
        listening.close()
        raise CannotServeError(code_of(error), error.reason) from error
    server = Server(create_app(service), service, say, resort)
    service.on_failure = server.fail
    with server.told():
        try:
            if service.failure is not None:  # before anybody could be told
                server.fail()
            await server.serve([listening])
        finally:
            await service.close(WORKERS_END)
    return server.code


class Server(uvicorn.Server):
    """The server of one service.

    Parameters
    ----------
    app
        The application.
    service
        The service behind it.
    say
        What the address is told to.
    resort
        What ends the process if it takes too long.
    """

    def __init__(self, app: Door, service: Service, say: Say, resort: LastResort) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=REQUESTS_END,  # type: ignore[arg-type]
            )
        )
        self._service, self._say, self._resort = service, say, resort
        self._loop = asyncio.get_running_loop()
        self.address = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port, and say where it is."""
        await super().startup(sockets)
        for each in sockets or []:
            host, port = each.getsockname()[:2]
            self.address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            self._say(f"streamridge serves {self.address}")
            log.info("serving", address=self.address)

    def capture_signals(self) -> nullcontext[None]:  # type: ignore[override]
        """Leave signals to `told`, since the service ends after the server."""
        return nullcontext()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let signals stop the server, as long as this lasts."""
        if current_thread() is not main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order when told to for the first time, at once when told to again."""
        if self.should_exit:
            self.force_exit = True
            self._resort.end_within(AT_ONCE, self.code)
        else:
            self._resort.end_within(ALL_ENDS, self.code)
            self._loop.call_soon_threadsafe(self.stop)
        self.should_exit = True

    def stop(self) -> None:
        """Be ready no more, let event streams end, and then all else."""
        log.info("stopping")
        self._service.state = "stopping"
        self._service.hub.close()
        self.should_exit = True

    def fail(self) -> None:
        """Stop since the storage cannot be trusted any more."""
        log.error("the storage failed", reason=self._service.failure)
        self._resort.end_within(ALL_ENDS, self.code)
        self.stop()

    @property
    def code(self) -> int:
        """Return the code to exit with."""
        return FINE if self._service.failure is None else STORAGE
