"""The health of a service: its state, and whether it can store readings."""

from types import SimpleNamespace

import pytest

from streamridge_service.plan import HOUR, MINUTE, NEVER
from streamridge_service.problems import Problem
from streamridge_service.service.health import Health
from tests.support.service.machine_times import START

FRESH = START + 75 * MINUTE


@pytest.fixture
def writer():
    return SimpleNamespace(error_code=None)


@pytest.fixture
def health(clock, writer):
    health = Health(clock, writer, min_free=500)
    health.set_disk({"data": 100, "free": 1000})
    health.check(START, FRESH)
    return health


class TestState:
    def test_a_service_without_problems_is_live_and_ready(self, health):
        assert (health.state, health.reasons, health.is_ready) == ("live", [], True)

    def test_a_service_that_starts_is_not_ready(self, clock, writer):
        health = Health(clock, writer, min_free=0)

        assert not health.is_ready
        assert health.reasons_now() == ["the service is starting"]

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (lambda health, writer: setattr(writer, "error_code", "sr-storage-away"), "writes"),
            (lambda health, writer: health.set_disk({"data": 100, "free": 499}), "the disk"),
        ],
    )
    def test_a_fault_of_the_storage_degrades_the_service_until_it_ends(
        self, health, writer, fault, reason
    ):
        fault(health, writer)
        health.check(START, FRESH)

        assert (health.state, health.is_ready) == ("degraded", False)
        assert health.reasons[0].startswith(reason)
        writer.error_code = None
        health.set_disk({"data": 100, "free": 500})
        health.check(START, FRESH)
        assert (health.state, health.is_ready) == ("live", True)

    def test_old_readings_make_a_service_stale_but_keep_it_ready(self, health):
        health.check(FRESH + 1, FRESH)

        assert (health.state, health.is_ready) == ("stale", True)
        assert health.reasons == ["all sensors are stale"]

    def test_a_service_without_readings_is_not_stale(self, health):
        health.check(START, NEVER)

        assert health.state == "live"

    def test_a_jump_of_the_clock_degrades_the_service(self, times, clock, health):
        times.wall += 12 * HOUR
        clock.check()

        health.check(START, FRESH)

        assert (health.state, health.reasons) == ("degraded", ["the machine's clock has jumped"])

    def test_a_stopping_service_stays_stopping(self, health):
        health.state = "stopping"

        health.check(START, FRESH)

        assert (health.state, health.is_ready) == ("stopping", False)


class TestStoring:
    def test_readings_are_refused_while_the_service_stops(self, health):
        health.require_writable()
        health.state = "stopping"

        with pytest.raises(Problem, match="The service is stopping; nothing was stored"):
            health.require_writable()

    def test_readings_are_refused_while_the_disk_is_nearly_full(self, health):
        health.set_disk({"data": 100, "free": 499})

        with pytest.raises(Problem, match="too little free space; nothing was stored"):
            health.require_writable()

    def test_an_unknown_amount_of_free_space_is_enough(self, health):
        health.set_disk({"data": 100})

        health.require_writable()
        assert health.days_left is None
