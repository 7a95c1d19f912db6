"""States that were changed: refused by one kind of error, and in little memory."""

import random
import tracemalloc

import pytest

from streamridge import Forecaster, StateError
from tests.support.workers.logs import DAY, World, daily, entries
from tests.support.workers.mutations import altered, resealed


@pytest.fixture(scope="module")
def content():
    """Return the state of a sensor with a model."""
    tracker = World().follow(entries(daily(4 * DAY))).tracker
    assert tracker.summary.fitted
    return tracker.to_bytes()


def peak(content):
    """Return the most memory that loading a state takes, and the error that it ends in."""
    tracemalloc.reset_peak()
    before, error = tracemalloc.get_traced_memory()[0], None
    try:
        Forecaster.from_bytes(content)
    except StateError as caught:
        error = str(caught)
    return tracemalloc.get_traced_memory()[1] - before, error


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("cases", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_changed_state_raises_a_state_error(content, cases, record_property):
    record_property("row", "E5")
    record_property("cases", cases)
    peak(content)  # memory that is allocated once does not count
    allowed, error = peak(content)
    assert error is None
    rng, noticed = random.Random(5), 0

    for _ in range(cases):
        changed = altered(rng, content)
        taken, error = peak(changed)

        assert (error is None) == (changed == content)
        assert taken <= 2 * allowed
        noticed += error is not None

    assert noticed > 0.95 * cases


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_a_changed_state_with_a_valid_digest_raises_a_state_error(content, record_property):
    # Whoever can write to the database can do so; a state is no way to more than that. It may ask
    # for much memory, and is then refused.
    record_property("row", "E5")
    record_property("cases", 10_000)
    rng = random.Random(6)

    for _ in range(10_000):
        peak(resealed(rng, content))
