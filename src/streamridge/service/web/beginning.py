"""What must be so before a service begins: its storage, its tokens, its port."""

from __future__ import annotations

import socket

from streamridge.errors import StreamRidgeError
from streamridge.service.ledger.base import (
    FormatError,
    InUseError,
    LibraryError,
    StorageError,
)
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.settings import ServiceSettings

# Codes that a process exits with, as sysexits.h names them.
FINE, NEWER, STORAGE, IN_USE, CONFIGURATION = 0, 65, 74, 75, 78
# Milliseconds after which the system drops a connection whose other end takes nothing.
STALLED = 30_000


class CannotServeError(StreamRidgeError):
    """A reason not to begin to serve, with the code to exit with."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def require_storage(settings: ServiceSettings) -> None:
    """See whether the storage can be served at all, before anything is begun."""
    try:
        with open_ledger(settings.database) as ledger:
            require_tokens(settings, has_tokens=bool(ledger.tokens()))
    except CannotServeError:
        raise
    except StreamRidgeError as error:
        raise CannotServeError(code_of(error), error.reason) from error


def code_of(error: StreamRidgeError) -> int:
    """Return the code to exit with when the service cannot be opened."""
    codes = {
        FormatError: NEWER,
        InUseError: IN_USE,
        LibraryError: CONFIGURATION,
        StorageError: STORAGE,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), CONFIGURATION)


def require_tokens(settings: ServiceSettings, *, has_tokens: bool) -> None:
    """Refuse to be reached from other machines without any token."""
    if settings.is_local or settings.open or has_tokens:
        return
    # The address of a server may hold a password.
    database = "<its address>" if "://" in settings.database else settings.database
    raise CannotServeError(
        CONFIGURATION,
        f"host must be 127.0.0.1 while there are no tokens, got {settings.host}. Make one with: "
        f"streamridge token create --scope admin --database {database}, or pass --open to let "
        "everyone in.",
    )


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address, and does not listen yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _unbound(host, port, error) from None
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED)
        opened.bind(address)
    except OSError as error:
        opened.close()
        raise _unbound(host, port, error) from None
    return opened


def _unbound(host: str, port: int, error: OSError) -> CannotServeError:
    return CannotServeError(
        CONFIGURATION, f"cannot listen on {host}, port {port}: {error.strerror}. Pass another."
    )
