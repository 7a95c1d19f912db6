"""Jobs carried out on this machine: in this process, or in several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streamridge.arrays import require_count
from streamridge.runs.engines.base import Workers
from streamridge.runs.engines.processes import Processes
from streamridge.runs.engines.work import Here


@dataclass(frozen=True)
class LocalEngine:
    """The process itself, or several processes of its machine.

    Parameters
    ----------
    jobs
        How many processes; one works in this process itself.
    """

    jobs: int = 1

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)

    @contextmanager
    def started(self, jobs: int) -> Iterator[Workers]:
        """Give workers for some jobs; they are gone afterwards."""
        count = min(self.jobs, jobs)
        if count <= 1:
            yield Here()
            return
        workers = Processes(count)
        try:
            yield workers
        finally:
            workers.close()
