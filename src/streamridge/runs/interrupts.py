"""Ctrl-C as a wish to stop: noted at once, and heeded where it does no harm.

So is the signal to terminate, which systems send when they shut down.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from time import monotonic

# Seconds after which another Ctrl-C is meant as one: some programs send it twice.
SECOND_PRESS = 1.0


class Interrupts:
    """What is known of Ctrl-C while tasks are carried out.

    Parameters
    ----------
    stop
        Called at each press, before anything else goes on.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.pressed = False
        self._stop = stop
        self._since = 0.0

    def press(self) -> None:
        """Note that all is to stop; at a second press, raise KeyboardInterrupt."""
        if self.pressed and monotonic() > self._since + SECOND_PRESS:
            raise KeyboardInterrupt
        if not self.pressed:
            self.pressed, self._since = True, monotonic()
        self._stop()


@contextmanager
def noted_interrupts(stop: Callable[[], None]) -> Iterator[Interrupts]:
    """Let Ctrl-C call `stop` meanwhile instead of breaking off whatever goes on."""
    interrupts = Interrupts(stop)

    def press(*_: object) -> None:
        interrupts.press()

    with _handling(signal.SIGINT, press), _handling(signal.SIGTERM, press):
        yield interrupts


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Put off Ctrl-C until afterwards; processes that are started within never hear it."""
    pressed: list[int] = []
    with (
        _handling(signal.SIGINT, lambda number, _: pressed.append(number)),
        _blocked_for_children(),
    ):
        yield
    if pressed:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _blocked_for_children() -> Iterator[None]:
    """Block SIGINT in this thread, and so in the processes and threads that it starts."""
    # It blocks and frees the signal itself: started within, it would free it for all after it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handling(number: signal.Signals, handler: Callable[..., None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)
