"""The server: checks storage, tokens and port, opens the service, and stops in order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from threading import Timer, current_thread, main_thread
from types import FrameType

import structlog
import uvicorn

from streamridge.errors import StreamRidgeError
from streamridge_service import logs
from streamridge_service.http.app import create_app
from streamridge_service.http.connections import protocol_of
from streamridge_service.http.middleware import Middleware
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.service.service import Service
from streamridge_service.settings import ServiceSettings

# Exit codes, as sysexits.h defines them.
FINE, STORAGE, CONFIGURATION = 0, 74, 78
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds that open requests have to end, that workers have to end, and that a stop may take.
REQUEST_TIMEOUT, WORKER_TIMEOUT, STOP_TIMEOUT = 3.0, 4.0, 9.0
# Seconds until the process exits after a second signal.
FORCED_TIMEOUT = 0.5
# Milliseconds after which the system closes a connection whose client reads nothing.
SEND_TIMEOUT = 30_000
# Connections that may wait to be accepted, and that are accepted at once.
BACKLOG, ACCEPTED_AT_ONCE = 2048, 64
# Seconds after which a busy thread lets another one run. The event loop and the writer wait this
# long each time they return from the operating system while another thread computes.
SWITCH_INTERVAL = 0.0005

Print = Callable[[str], None]

log = structlog.get_logger("streamridge_service.http")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_error(line: str) -> None:
    sys.stderr.write(f"error: {line}\n")
    sys.stderr.flush()


def _do_nothing() -> None:
    """Do nothing, where a function is required."""


class CannotServeError(StreamRidgeError):
    """The service cannot start with these settings."""


class ForcedExit:
    """A timer that ends the process if it does not stop in order; all readings are on disk.

    It calls `clean_up` first, since the process runs nothing after it.
    """

    def __init__(self, clean_up: Callable[[], None] = _do_nothing) -> None:
        self._clean_up = clean_up
        self._timer: Timer | None = None

    def start(self, seconds: float, code: int) -> None:
        """Exit with a code after some seconds, unless the process has ended by then."""
        self.cancel()
        self._timer = Timer(seconds, self._exit, (code,))
        self._timer.daemon = True
        self._timer.start()

    def _exit(self, code: int) -> None:
        try:
            self._clean_up()
        finally:
            os._exit(code)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


def run(
    settings: ServiceSettings,
    *,
    print_line: Print = _print,
    print_error: Print = _print_error,
    clean_up: Callable[[], None] = _do_nothing,
) -> int:
    """Serve until the process gets a signal to stop; return the exit code.

    `clean_up` is called only if the service does not stop in time, and the process ends.
    """
    logs.configure(settings.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL)
    forced_exit = ForcedExit(clean_up)
    with logs.everything_logged():
        try:
            return asyncio.run(serve(settings, print_line, forced_exit))
        except StreamRidgeError as error:
            print_error(error.reason)
            return error.exit_code or CONFIGURATION
        finally:
            forced_exit.cancel()


async def serve(settings: ServiceSettings, print_line: Print, forced_exit: ForcedExit) -> int:
    """Open the service and the port, and serve; return the exit code."""
    with open_ledger(settings.database) as ledger:
        require_tokens(settings, has_tokens=bool(ledger.tokens()))
    listening = bind(settings.host, settings.port)
    service = Service(settings)
    try:
        service.open()
    except StreamRidgeError:
        listening.close()
        raise
    server = Server(create_app(service), service, print_line, forced_exit)
    service.on_failure = server.fail
    with server.signals():
        try:
            if service.failure is not None:  # before `on_failure` was set
                server.fail()
            await server.serve([listening])
        finally:
            await service.close(WORKER_TIMEOUT)
    return server.exit_code


class Server(uvicorn.Server):
    """The server of one service."""

    def __init__(
        self, app: Middleware, service: Service, print_line: Print, forced_exit: ForcedExit
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol_of(app.connections),  # type: ignore[arg-type]
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(service.settings.trusted_proxies),
                forwarded_allow_ips=list(service.settings.trusted_proxies),
                backlog=ACCEPTED_AT_ONCE,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=REQUEST_TIMEOUT,  # type: ignore[arg-type]
            )
        )
        self._service, self._print, self._forced_exit = service, print_line, forced_exit
        self._loop = asyncio.get_running_loop()
        self.address = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port, and print the address."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(BACKLOG)
            host, port = each.getsockname()[:2]
            self.address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            self._print(f"streamridge serves {self.address}")
            log.info("serving", address=self.address)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; once a second, report log lines that were left out."""
        if counter % 10 == 0:
            logs.report_left_out()
        return await super().on_tick(counter)

    def capture_signals(self) -> nullcontext[None]:  # type: ignore[override]
        """Leave signals to `signals`, since the service stops after the server."""
        return nullcontext()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Let signals stop the server within this block."""
        if current_thread() is not main_thread():
            yield
            return
        before = {each: signal.getsignal(each) for each in SIGNALS}
        for each in SIGNALS:
            # Python runs handlers in the main thread, and a signal does not always wake it. asyncio
            # lets every signal wake the loop; the handler is replaced, so that it also runs
            # while the loop is busy.
            self._loop.add_signal_handler(each, _do_nothing)
            signal.signal(each, self.handle_exit)
        try:
            yield
        finally:
            for each, handler in before.items():
                self._loop.remove_signal_handler(each)
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order after the first signal, at once after the second."""
        if self.should_exit:
            self.force_exit = True
            self._forced_exit.start(FORCED_TIMEOUT, self.exit_code)
        else:
            self._forced_exit.start(STOP_TIMEOUT, self.exit_code)
            self._loop.call_soon_threadsafe(self.stop)
        self.should_exit = True

    def stop(self) -> None:
        """Refuse new readings, end event streams, then stop the server."""
        log.info("stopping")
        self._service.begin_stop()
        self.should_exit = True

    def fail(self) -> None:
        """Stop because the storage cannot be trusted any more."""
        log.error("the storage failed", reason=self._service.failure)
        self._forced_exit.start(STOP_TIMEOUT, self.exit_code)
        self.stop()

    @property
    def exit_code(self) -> int:
        """Return the exit code."""
        return FINE if self._service.failure is None else STORAGE


def require_tokens(settings: ServiceSettings, *, has_tokens: bool) -> None:
    """Raise if other machines could reach a service that has no tokens."""
    if settings.is_local or settings.open or has_tokens:
        return
    # The address of a database server may contain a password.
    database = "<its address>" if "://" in settings.database else settings.database
    raise CannotServeError(
        f"host must be 127.0.0.1 while there are no tokens, got {settings.host}. Create one with: "
        f"streamridge token create --scope admin --database {database}, or pass --open to serve "
        "without tokens."
    )


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address and does not listen yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as failed:
            opened = failed.enter_context(socket.socket(family, kind, protocol))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SEND_TIMEOUT)
            opened.bind(address)
            failed.pop_all()  # the socket stays open
    except OSError as error:
        raise CannotServeError(
            f"cannot listen on {host}, port {port}: {error.strerror}. Pass another host or port."
        ) from None
    return opened
