"""What an engine is: a way to workers, which take jobs and hand in outcomes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from streamridge.runs.engines.work import Job, Outcome, Progress

# Seconds between two looks at what workers have to tell.
LOOK_EVERY = 0.2


class Workers(Protocol):
    """Workers that are ready to take jobs."""

    @property
    def width(self) -> int:
        """Return how many jobs are worked on at a time."""

    @property
    def room(self) -> int:
        """Return how many jobs they take before one has to be finished."""

    def take(self, number: int, load: Callable[[], Job]) -> None:
        """Take a job; it is loaded now, or when work on it begins."""

    def finished(self, tell: Progress) -> list[Outcome]:
        """Wait a little, tell what is going on, and return what has finished meanwhile."""

    def stop(self) -> None:
        """Break off all jobs soon; those under way are finished with what they have, or nothing."""


class Engine(Protocol):
    """A way of carrying out jobs."""

    def started(self, jobs: int) -> AbstractContextManager[Workers]:
        """Give workers for some jobs; they are gone afterwards."""
