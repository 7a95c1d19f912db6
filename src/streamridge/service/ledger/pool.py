"""Connections that are lent out, so that any number of threads can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

# More threads than this may read at once; their connections are not kept afterwards.
MOST_IDLE = 8


class Closable(Protocol):
    """Something that can be closed."""

    def close(self) -> object:
        """Close it."""


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """Connections, each used by one thread at a time; a new one is made when all are in use.

    Parameters
    ----------
    make
        Returns a new connection.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._idle: list[C] = []  # append and pop are safe between threads
        self._closed = False

    @contextmanager
    def lent(self) -> Iterator[C]:
        """Lend a connection; one that was in use when an error came is not used again."""
        connection = self._taken() or self._make()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def empty(self) -> None:
        """Close the connections that are not in use."""
        while (connection := self._taken()) is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections, those in use as soon as they come back."""
        self._closed = True
        self.empty()

    def _taken(self) -> C | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None
