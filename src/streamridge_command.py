"""The command `streamridge`, which Ctrl-C ends with one line from its first moment on.

It is outside of the packages because they take half a second to import.
"""

from __future__ import annotations

import os
import signal

# The exit code of a shell command that Ctrl-C ended.
INTERRUPTED = 130


def main() -> None:
    """Import the command, and run it."""
    usual = signal.getsignal(signal.SIGINT)
    # A shell lets its background jobs ignore Ctrl-C.
    early = stop if usual is signal.default_int_handler else usual
    signal.signal(signal.SIGINT, early)
    from streamridge.cli.main import run

    try:
        signal.signal(signal.SIGINT, usual)
        run()
    except KeyboardInterrupt:  # before a command has begun, which handles it
        stop()
    finally:
        signal.signal(signal.SIGINT, early)  # Python itself takes a moment to end


def stop(*_: object) -> None:
    """End the process. An exception could be lost in an import, or appear as a traceback."""
    os.write(2, b"Stopped early.\n")
    os._exit(INTERRUPTED)
