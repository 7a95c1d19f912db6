"""Tasks on the workers of a Dask cluster; needs the extra `dask`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, MissingExtraError
from streamridge.runs.engines import Call, Workers, terminal_signals_blocked

# How long to wait for a scheduler to answer.
TIMEOUT = "10s"
# Tasks submitted beyond the running tasks, so that no worker waits for its next task.
SPARE = 2


@dataclass(frozen=True)
class DaskEngine:
    """The workers of a Dask cluster.

    Parameters
    ----------
    address
        The address of a running scheduler, such as "tls://scheduler:8786". Dask sends pickles
        between its processes, and a pickle can run any code: an address beyond this machine must be
        encrypted. Without an address, a cluster of this machine is started and closed again.
    jobs
        The number of worker processes of a cluster of this machine, with one thread each.
    """

    address: str | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)
        if self.address is not None:
            require_encrypted(self.address)
        _distributed()

    @contextmanager
    def workers(self, tasks: int) -> Iterator[Workers]:
        """Give workers for some tasks; a cluster of this machine is closed afterwards."""
        with _silent_logs(), ExitStack() as stack:
            where = self.address or stack.enter_context(_local_cluster(min(self.jobs, tasks)))
            client = stack.enter_context(_connected(where))
            if self.address is not None:
                _require_workers(client, self.address)
            yield DaskWorkers(client)


class DaskWorkers(Workers):
    """Dask's own executor, with calls that end once their future is cancelled."""

    def __init__(self, client: Any) -> None:
        super().__init__(client.get_executor(pure=False), SPARE)
        self._client = client

    @property
    def room(self) -> int:
        """Return the number of threads and some more; a cluster may grow and shrink."""
        return SPARE + sum(self._client.nthreads().values())

    def submit(self, number: int, call: Call) -> Future[Any]:
        """Submit the call of a task to the cluster."""
        return self.executor.submit(_call_on_dask, call)


def _call_on_dask(call: Call) -> Any:
    """Return the result of a call on a worker; raise KeyboardInterrupt in it once it is cancelled.

    The limit of one BLAS thread stays: another task of the process may be running then.
    """
    worker = _distributed().get_worker()
    key = worker.get_current_task()
    threadpool_limits(1)

    def progress(done: int, total: int) -> None:
        task = worker.state.tasks.get(key)
        is_wanted = task is not None and task.state not in ("cancelled", "released", "forgotten")
        if done < total and not is_wanted:  # a complete run just returns
            raise KeyboardInterrupt

    return call(progress=progress)


def require_encrypted(address: str) -> None:
    """Raise for an address beyond this machine that is not encrypted.

    Examples
    --------
    >>> require_encrypted("tls://scheduler.example:8786")
    >>> require_encrypted("tcp://127.0.0.1:8786")
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "tls" or _is_loopback(parts.hostname or ""):
        return
    raise InvalidInputError(
        f"scheduler must be an address of this machine or begin with tls://, got {address!r}. "
        "A Dask cluster runs any code that reaches it: give it certificates through Dask's own "
        "configuration (distributed.comm.tls), and pass its tls:// address."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    distributed = _distributed()
    # The profiler would look at every worker a hundred times a second.
    unprofiled = import_module("dask").config.set({"distributed.worker.profile.enabled": False})
    with (
        terminal_signals_blocked(),
        unprofiled,
    ):  # workers end when the cluster is closed, not by Ctrl-C
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            silence_logs=logging.CRITICAL,
            # Only this machine sees the dashboard. Any free port: the usual one may be taken.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )
    with cluster:
        yield cluster


@contextmanager
def _connected(where: Any) -> Iterator[Any]:
    """Give a client of a cluster, or of the scheduler at an address."""
    try:
        client = _distributed().Client(where, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInputError(
            f"scheduler must be the address of a running Dask scheduler, got {where!r} ({error})."
        ) from None
    with client:
        yield client


def _require_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        raise InvalidInputError(
            f"the scheduler at {address} must have a worker, got none for {TIMEOUT}. "
            f"Start one with: dask worker {address}"
        ) from None


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep Dask from printing tracebacks: failed tasks are reported once, by the caller."""
    logs = logging.getLogger("distributed")
    before = logs.level
    logs.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logs.setLevel(before)


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtraError(
            "distributed must be installed for the engine dask. "
            "Install it with: pip install 'streamridge[dask]'"
        ) from None
