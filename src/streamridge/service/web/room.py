"""Room for large bodies: so many at a time, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from streamridge.service.problems import Problem

# Bodies beyond this size are large; so many of them may be at hand at once.
LARGE, MOST_LARGE = 262_144, 16


class Room:
    """How many large bodies are being received and read."""

    def __init__(self) -> None:
        self.taken = 0

    @contextmanager
    def guest(self) -> Iterator[Guest]:
        """Give a request its place, which it only takes once its body is large."""
        guest = Guest(self)
        try:
            yield guest
        finally:
            self.taken -= guest.is_large


class Guest:
    """One request that brings a body."""

    def __init__(self, room: Room) -> None:
        self._room, self.is_large = room, False

    def grow(self, size: int, *, packed: bool) -> None:
        """Note how large the body is by now; what is packed can become large at once."""
        if self.is_large or (size <= LARGE and not packed):
            return
        if self._room.taken >= MOST_LARGE:
            raise Problem("sr-busy", f"There are {MOST_LARGE} large bodies at hand already.")
        self._room.taken += 1
        self.is_large = True
