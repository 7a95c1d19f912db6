"""A jump of the machine's clock over HTTP: reported, without effect on sensors, and confirmed."""

import time

import pytest

from streamridge_service.plan import HOUR
from tests.support.service.in_process import settled
from tests.support.service.live_server import Live, readings, stamp

QUARTER = 900


@pytest.fixture
def jumped(tmp_path, logged):
    """Return a service with a reading, whose machine's clock has jumped by twelve hours."""
    with Live(tmp_path / "a.db", clock="machine") as served:
        now = time.time() // QUARTER * QUARTER
        assert served.post(readings("a", now - QUARTER, [1.0])).json()["accepted"] == 1
        served.do(settled)
        wall = served.service.clock._wall
        served.service.clock._wall = lambda: wall() + 12 * HOUR
        served.call(lambda service: service.clock.check())
        yield served


def summary_of(served):
    return served.client.get("/v1/summary").json()


def test_a_jump_changes_nothing_until_an_operator_confirms_it(jumped):
    now = time.time() // QUARTER * QUARTER
    true, new = (readings("a", each, [2.0]) for each in (now, now + 12 * 3600))

    warned = summary_of(jumped)
    receipts = [jumped.post(rows).json() for rows in (true, new)]
    jumped.do(settled)
    state = jumped.client.get("/v1/sensors/a").json()["state"]
    trusted = jumped.client.post("/v1/clock/trust").json()

    assert "clock jumped by 43200 seconds" in warned["clock_warning"]
    assert warned["now"] < stamp(now + 6 * 3600)
    assert (receipts[0]["accepted"], receipts[1]["held"]) == (1, 1)
    assert state == "new"
    assert trusted["jump_seconds"] == pytest.approx(43_200, abs=60)
    assert summary_of(jumped)["clock_warning"] is None
    assert summary_of(jumped)["now"] > stamp(now + 6 * 3600)
