"""Exit codes of `serve` and of the commands around its database, as sysexits.h names them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from streamridge.cli.checks import require_extra
from streamridge.errors import InvalidInputError, MissingExtraError, StreamRidgeError

USAGE, DATA, STORAGE, IN_USE, CONFIGURATION = 64, 65, 74, 75, 78
# What `click` exits with where a flag is wrong.
WRONG_FLAG = 2


class CareCommand(TyperCommand):
    """A command that exits with `USAGE` where a flag is wrong."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Return the context of a call; raise if its flags are wrong."""
        try:
            return super().make_context(*args, **options)
        except Exception as error:
            if getattr(error, "exit_code", None) == WRONG_FLAG:
                error.exit_code = USAGE  # type: ignore[attr-defined]
            raise


def require_service() -> None:
    """Raise unless all that a service needs is installed."""
    for module in ("litestar", "msgspec", "apsw", "pydantic_settings", "structlog", "uvicorn"):
        require_extra(module, "service")


def code_of(error: StreamRidgeError) -> int:
    """Return the code that a command exits with after an error."""
    if isinstance(error, MissingExtraError):  # without it, the errors below cannot be imported
        return CONFIGURATION
    from streamridge.service.ledger import base

    codes: dict[type[StreamRidgeError], int] = {
        InvalidInputError: USAGE,
        base.FormatError: DATA,
        base.DamagedError: DATA,
        base.InUseError: IN_USE,
        base.StorageFailedError: STORAGE,
        base.StorageAwayError: STORAGE,
        base.DiskFullError: STORAGE,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), CONFIGURATION)
