"""Jobs carried out in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from streamridge.runs.engines.base import Job, Outcome, Progress, attempt


class Here:
    """The process itself as the only worker."""

    width = 1
    room = 1

    def __init__(self) -> None:
        self._taken: tuple[int, Callable[[], Job]] | None = None
        self._working = False

    def take(self, number: int, job: Job) -> None:
        """Take a job."""
        self.take_later(number, lambda: job)

    def take_later(self, number: int, job: Callable[[], Job]) -> None:
        """Take a job that is unpacked once it is worked on."""
        self._taken = number, job

    def finished(self, tell: Progress) -> list[Outcome]:
        """Carry out the job that was taken, and return its outcome."""
        if self._taken is None:
            return []
        (number, job), self._taken = self._taken, None
        try:
            try:
                self._working = True
                outcome = attempt(number, job, tell)
            finally:
                self._working = False
        except KeyboardInterrupt:  # before or after its steps
            return [Outcome(number)]
        return [outcome]

    def stop(self) -> None:
        """Break off the job under way by raising KeyboardInterrupt: once, and only within it."""
        if self._working:
            self._working = False
            raise KeyboardInterrupt
