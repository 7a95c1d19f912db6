import pytest

from streamridge_service.service.machine_clock import MachineClock
from tests.support.ledger.postgres_server import PostgresServer
from tests.support.service.machine_times import MachineTimes


@pytest.fixture(scope="session")
def postgres():
    """Give the one server of this test process."""
    try:
        server = PostgresServer()
    except OSError as error:
        pytest.skip(f"NO POSTGRESQL: its ledger is NOT tested here, since {error}")
    yield server
    server.stop()


@pytest.fixture
def counted(record_property):
    """Give the function that notes the row of the specification a test proves, and its cases."""

    def note(row, cases):
        record_property("row", row)
        record_property("cases", cases)

    return note


@pytest.fixture
def times():
    """Give the clocks of a machine, which the test moves by hand."""
    return MachineTimes()


@pytest.fixture
def clock(times):
    """Give the service's view of these clocks."""
    return MachineClock(wall=lambda: times.wall, steady=lambda: times.steady)
