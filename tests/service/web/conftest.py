import io
import math

import pytest
import structlog

from streamridge.service.web import logs
from tests.service.living import settled
from tests.service.web.live import Live, make_tokens, readings

# The first moment of the readings of the service whose time is that of its readings.
START = 1_767_225_600
STEPS = 5 * 96


def daily(count, seed=0):
    """Return values with a daily course."""
    return [
        100 + 50 * math.sin(i / 96 * 2 * math.pi + seed) + i * (7 + seed) % 5 for i in range(count)
    ]


@pytest.fixture(scope="session")
def logged():
    """Give what the services of this process log."""
    lines = io.StringIO()
    logs.configure("debug", lines)
    yield lines
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def live(tmp_path_factory, logged):
    """Give a service that is open to all, with three sensors that have models."""
    with Live(tmp_path_factory.mktemp("live") / "a.db") as served:
        for seed, name in enumerate(("north", "south", "east")):
            past = readings(name, START, daily(STEPS, seed))
            assert served.post(past[:-3], mode="backfill").status_code == 200
            for row in past[-3:]:
                assert served.post([row]).status_code == 200
        served.do(settled)
        yield served


@pytest.fixture(scope="session")
def secrets(tmp_path_factory):
    """Give the texts of tokens of each kind, by kind."""
    return make_tokens(tmp_path_factory.mktemp("guarded") / "a.db")


@pytest.fixture(scope="session")
def guarded(tmp_path_factory, secrets, logged):
    """Give a service that asks for tokens, and whose time is the machine's."""
    base = tmp_path_factory.getbasetemp()
    database = next(base.glob("guarded*/a.db"))
    with Live(database, clock="machine") as served:
        served.client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        yield served


@pytest.fixture
def counted(record_property):
    """Give the function that notes the row of the specification a test proves, and its cases."""

    def note(row, cases):
        record_property("row", row)
        record_property("cases", cases)

    return note
