"""Databases of every earlier format open, continue, and replay to the same forecasts."""

import gzip

import msgspec
import pytest

from streamridge import Forecaster
from streamridge.errors import StateError
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.plan_log import read_plans
from streamridge_service.ledger.schema import current_format
from streamridge_service.verification.comparison import forecast_fault, nearly_equal
from streamridge_service.verification.log_replay import SensorLog, replayed_refits
from streamridge_service.verification.verify import check_sensor
from streamridge_service.workers.snapshots import load_tracker
from tests.support.service.golden_storage import FOLDER, HOURS, NAMES, SETTINGS, fed, in_format_1
from tests.support.service.in_process import serving, settled


@pytest.fixture(params=range(1, current_format()))
def database(request, tmp_path):
    """Return a copy of the stored database of a format."""
    path = tmp_path / "a.db"
    path.write_bytes(gzip.decompress((FOLDER / f"format_{request.param}.db.gz").read_bytes()))
    return path


def test_an_earlier_log_replays_to_the_same_forecasts(database, record_property):
    record_property("row", "A7")
    record_property("cases", HOURS * len(NAMES))
    with open_ledger(str(database)) as ledger:
        for sensor in ledger.sensors():
            log, stored = SensorLog.of(ledger, sensor), list(ledger.forecasts(sensor.id))
            snapshots = list(replayed_refits(log))

            assert len(stored) == HOURS
            assert all(map(nearly_equal, (each.tuning for each in snapshots), log.tunings))
            # Another processor, or other libraries, may change the last digits.
            assert forecast_fault(log, stored, ledger.done_seq(), snapshots, exact=False) is None


def test_snapshots_of_an_earlier_version_are_rebuilt_once(database):
    async def nothing(service):
        for sensor in service.intake.sensors.values():
            await service.forecasts.ask(sensor.id)
        await settled(service)

    with open_ledger(str(database)) as ledger:
        states = [ledger.snapshot(sensor.id).state for sensor in ledger.sensors()]
    for state in states:
        with pytest.raises(StateError, match="has format 1"):
            Forecaster.from_bytes(state)

    for _ in range(2):
        serving(nothing, database, **SETTINGS)

    with open_ledger(str(database), read_only=True) as ledger:
        for sensor in ledger.sensors():
            kinds = [point.kind for point in ledger.refit_points(sensor.id)]
            assert kinds.count("rebuilt") == 1
            assert Forecaster.from_bytes(ledger.snapshot(sensor.id).state).tuning.has_model


def test_a_snapshot_of_format_1_is_rebuilt_from_the_readings_and_not_served(database):
    with open_ledger(str(database)) as ledger:
        sensor, plan, done = ledger.sensors()[0], read_plans(ledger).latest, ledger.done_seq()
        _, _, rebuilt = load_tracker(ledger, sensor, plan, done)
        earlier = msgspec.structs.replace(rebuilt, state=in_format_1(rebuilt.state))

        kept = load_tracker(ledger, sensor, plan, done, newer=rebuilt)[2]
        again = load_tracker(ledger, sensor, plan, done, newer=earlier)[2]

    assert kept is None
    assert again == rebuilt


def test_a_former_state_is_not_compared_and_its_forecasts_are(database):
    with open_ledger(str(database)) as ledger:
        for sensor in ledger.sensors():
            found = check_sensor(ledger, sensor)

            assert found.fault is None
            assert "former format" in found.remark
            assert found.forecasts == HOURS


@pytest.mark.parametrize("more", [30, pytest.param(96, marks=pytest.mark.slow)])
def test_an_earlier_database_continues(database, more, record_property):
    record_property("row", "A7")
    record_property("cases", more)
    with open_ledger(str(database)) as ledger:  # this migrates it to the current format
        before = list(ledger.forecasts())

    serving(lambda service: fed(service, HOURS, HOURS + more), database, **SETTINGS)

    with open_ledger(str(database), read_only=True) as ledger:
        after = list(ledger.forecasts())
        assert after[: len(before)] == before
        assert len(after) == len(before) + more * len(NAMES)
        for sensor in ledger.sensors():
            # Replayed forecasts equal the stored ones: bit for bit, or to 1e-9 elsewhere.
            found = check_sensor(ledger, sensor)
            assert found.fault is None
            assert found.forecasts == HOURS + more
