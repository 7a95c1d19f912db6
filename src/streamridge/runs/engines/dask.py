"""Jobs carried out by the workers of a Dask cluster; needs the extra `dask`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.runs.engines.base import Workers
from streamridge.runs.engines.dask_workers import DaskWorkers
from streamridge.runs.interrupts import deaf_to_interrupts

# How long to wait for a scheduler to answer.
PATIENCE = "10s"
# A cluster of one's own does not look a hundred times a second at what its workers are doing.
UNWATCHED = {"distributed.worker.profile.enabled": False}


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a Dask cluster.

    Parameters
    ----------
    address
        Of a scheduler that is running, such as "tls://scheduler:8786". Dask moves pickles between
        its processes, which run what is in them: an address beyond this machine must be encrypted.
        Without one, a cluster of this machine is started, and closed again.
    jobs
        How many worker processes a cluster of this machine has, with one thread each.
    """

    address: str | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)
        if self.address is not None:
            require_guarded(self.address)
        _require_distributed()

    @contextmanager
    def started(self, jobs: int) -> Iterator[Workers]:
        """Give workers for some jobs; a cluster of one's own is gone afterwards."""
        if self.address is not None:
            with _silent_logs(), _connected(self.address) as client:
                _require_workers(client, self.address)
                yield DaskWorkers(client)
            return
        count = min(self.jobs, max(jobs, 1))
        with _silent_logs(), _own_cluster(count) as cluster, _connected(cluster) as client:
            yield DaskWorkers(client)


def require_guarded(address: str) -> None:
    """Raise for an address beyond this machine that is not encrypted.

    Examples
    --------
    >>> require_guarded("tls://scheduler.example:8786"), require_guarded("tcp://127.0.0.1:8786")
    (None, None)
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "tls" or _is_loopback(parts.hostname or ""):
        return
    raise InvalidInputError(
        f"scheduler must be an address of this machine or begin with tls://, got {address!r}. "
        "Dask runs whatever reaches it: give the cluster certificates through Dask's own "
        "configuration (distributed.comm.tls), and pass its tls:// address."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _own_cluster(workers: int) -> Iterator[Any]:
    distributed = _require_distributed()
    with ExitStack() as closing:
        # Ctrl-C reaches every process of a terminal; workers end when the cluster is closed.
        with deaf_to_interrupts(), import_module("dask").config.set(UNWATCHED):
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                # Its page can be seen from this machine alone, at any port: others may have the
                # usual one.
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
            )
            closing.enter_context(cluster)
        yield cluster


@contextmanager
def _connected(where: Any) -> Iterator[Any]:
    """Give a client of a cluster, or of the scheduler at an address."""
    distributed = _require_distributed()
    try:
        client = distributed.Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInputError(
            f"scheduler must be the address of a Dask scheduler that is running, got {where!r} "
            f"({error})."
        ) from None
    with client:
        yield client


def _require_workers(client: Any, address: str) -> None:
    """Raise if no worker comes to a scheduler within a while."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InvalidInputError(
            f"the scheduler at {address} must have a worker, got none for {PATIENCE}. "
            f"Start one with: dask worker {address}"
        ) from None


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep Dask from printing tracebacks of its own: what went wrong is said by us, once."""
    logs = logging.getLogger("distributed")
    before = logs.level
    logs.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logs.setLevel(before)


def _require_distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtraError(
            "distributed must be installed for the engine dask. "
            "Install it with: pip install 'streamridge[dask]'"
        ) from None
