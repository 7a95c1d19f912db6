"""Last bits depend on the number of BLAS threads, of which a worker therefore has one (A8)."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from streamridge_service.workers import processes
from tests.support.service.in_process import digest_of, fed, serving
from tests.support.workers.logs import DAY, World, daily, entries

# Read by every Python that starts with its folder in PYTHONPATH: a worker that is told to have one
# thread has two.
TWO_THREADS = """
import threadpoolctl

limits = threadpoolctl.threadpool_limits
threadpoolctl.threadpool_limits = lambda number: limits(2)
"""


def followed(threads):
    """Return the digest of a sensor that was processed with a number of BLAS threads."""
    with threadpool_limits(threads):
        threads_now = {each["num_threads"] for each in threadpool_info()}
        return World().follow(entries(daily(4 * DAY))).digest, threads_now


def test_a_second_thread_is_noticed(record_property):
    (one, _), (again, _), (two, threads) = (followed(number) for number in (1, 1, 2))
    if threads != {2}:
        pytest.skip("NO SECOND THREAD: BLAS has one here, so that two cannot be tried")

    assert one == again
    assert one != two
    record_property("row", "A8 broken")
    record_property("cases", 1)


@pytest.mark.slow
def test_workers_with_a_second_thread_are_noticed(tmp_path, monkeypatch, record_property):
    steps = 4 * DAY

    serving(lambda service: fed(service, 0, steps), tmp_path / "one.db", train_size=200)
    serving(lambda service: fed(service, 0, steps), tmp_path / "again.db", train_size=200)
    (tmp_path / "sitecustomize.py").write_text(TWO_THREADS)
    monkeypatch.setattr(processes, "METHOD", "spawn")  # forked ones do not read it
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    serving(lambda service: fed(service, 0, steps), tmp_path / "two.db", train_size=200)

    one, again, two = (digest_of(tmp_path / f"{name}.db") for name in ("one", "again", "two"))
    assert one == again
    assert one != two
    record_property("row", "A8 broken")
    record_property("cases", 1)
