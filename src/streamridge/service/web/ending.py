"""The end of the process, if it cannot end in order."""

from __future__ import annotations

import os
from threading import Timer


class LastResort:
    """What ends the process if something keeps it from ending in order.

    That is harmless: what was acknowledged has been written to disk.
    """

    def __init__(self) -> None:
        self._timer: Timer | None = None

    def end_within(self, seconds: float, code: int) -> None:
        """End the process after so many seconds, unless it is gone by then."""
        self.give_up()
        self._timer = Timer(seconds, os._exit, (code,))
        self._timer.daemon = True
        self._timer.start()

    def give_up(self) -> None:
        """Let the process go on."""
        if self._timer is not None:
            self._timer.cancel()
