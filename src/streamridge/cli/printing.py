"""Standard output, whose reader may stop reading, or whose disk may be full."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation


class Printed:
    """Standard output as far as it can be written to; what cannot be printed is dropped.

    Files are worth more than what is printed of them: a reader that stops reading, as `head` does,
    ends nothing but the printing.
    """

    def __init__(self) -> None:
        self.is_open = True
        self.error: str | None = None

    def print(self, text: str) -> None:
        """Print a text with what ends its last line, at once."""
        self.attempt(lambda: sys.stdout.write(text))

    def attempt(self, write: Callable[[], object]) -> None:
        """Let something be written, as long as there is a reader."""
        if not self.is_open:
            return
        try:
            write()
            sys.stdout.flush()
        except BrokenPipeError:
            self._close()
        except OSError as error:
            reason = error.strerror or error
            self.error = f"standard output must be writable, got: {reason}."
            self._close()

    def _close(self) -> None:
        """Print nothing more; what waits to be written would fail again when the process ends."""
        self.is_open = False
        with suppress(OSError, UnsupportedOperation, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
