import io
from contextlib import ExitStack

import pytest
import structlog

from streamridge_service import logs
from streamridge_service.service import service
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, STEPS, Live, daily, make_tokens, readings
from tests.support.waiting import wait_until


@pytest.fixture(scope="session")
def logged():
    """Return the log of the services in this process."""
    lines = io.StringIO()
    logs.configure("debug", lines)
    yield lines
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def live(tmp_path_factory, logged):
    """Return a service without tokens, with three sensors that have models."""
    with Live(tmp_path_factory.mktemp("live") / "a.db") as served:
        for seed, name in enumerate(("north", "south", "east")):
            past = readings(name, START, daily(STEPS, seed))
            assert served.post(past[:-3], mode="backfill").status_code == 200
            for row in past[-3:]:
                assert served.post([row]).status_code == 200
        served.do(settled)
        yield served


@pytest.fixture(scope="session")
def unchecked(tmp_path_factory, logged):
    """Return a service whose periodic checks run once, and undo no fault that a test makes."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # the service reads the pauses when it starts
            patch.setattr(service, "CHECK_EVERY", 1e6)
            patch.setattr(service, "MEASURE_EVERY", 1e6)
            served = stack.enter_context(Live(tmp_path_factory.mktemp("unchecked") / "a.db"))
        parts = served.service
        wait_until(lambda: parts._checks and parts.health.disk, "the first periodic checks")
        yield served


@pytest.fixture(scope="session")
def secrets(tmp_path_factory):
    """Return the text of a token of each kind."""
    return make_tokens(tmp_path_factory.mktemp("guarded") / "a.db")


@pytest.fixture(scope="session")
def guarded(tmp_path_factory, secrets, logged):
    """Return a service that needs tokens and follows the machine's clock."""
    base = tmp_path_factory.getbasetemp()
    database = next(base.glob("guarded*/a.db"))
    with Live(database, clock="machine") as served:
        served.client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        yield served
