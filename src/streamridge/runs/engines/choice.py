"""Engines by name, as commands and functions take them."""

from __future__ import annotations

from streamridge.errors import InvalidInputError, shown
from streamridge.runs.engines.base import Engine
from streamridge.runs.engines.dask import DaskEngine
from streamridge.runs.engines.local import LocalEngine

ENGINES = ("local", "dask")


def parse_engine(engine: str | Engine, *, jobs: int = 1, scheduler: str | None = None) -> Engine:
    """Return an engine that was named, or given.

    Parameters
    ----------
    engine
        "local", "dask", or an engine, which has its own number of workers.
    jobs
        How many processes.
    scheduler
        The address of a Dask scheduler that is running already; it makes the engine "dask".
    """
    if scheduler is not None:
        return DaskEngine(scheduler)
    if engine == "local":
        return LocalEngine(jobs)
    if engine == "dask":
        return DaskEngine(jobs=jobs)
    if isinstance(engine, str) or not hasattr(engine, "started"):
        raise InvalidInputError(
            f"engine must be 'local', 'dask' or an engine such as DaskEngine, got {shown(engine)}."
        )
    return engine
