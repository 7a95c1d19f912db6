"""Storages of every format that there was: they open, go on, and hold what they held."""

import gzip

import pytest

from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.schema import current_format
from streamridge.service.verify import verdict
from tests.service.golden.storage import FOLDER, HOURS, NAMES, SETTINGS, fed
from tests.service.living import serving

MORE = 96


@pytest.mark.parametrize("number", range(1, current_format() + 1))
def test_a_storage_of_any_format_goes_on(number, tmp_path, record_property):
    record_property("row", "A7")
    record_property("cases", MORE)
    database = tmp_path / "a.db"
    database.write_bytes(gzip.decompress((FOLDER / f"format_{number}.db.gz").read_bytes()))
    with open_ledger(str(database)) as ledger:  # which brings it to the present format
        before = list(ledger.forecasts())

    serving(lambda service: fed(service, HOURS, HOURS + MORE), database, **SETTINGS)

    with open_ledger(str(database), read_only=True) as ledger:
        after = list(ledger.forecasts())
        assert after[: len(before)] == before
        assert len(after) == len(before) + MORE * len(NAMES)
        for sensor in ledger.sensors():
            # Forecasts made again are the stored ones: to the last bit, or to 1e-9 elsewhere.
            found = verdict(ledger, sensor)
            assert found.fault is None
            assert found.forecasts == HOURS + MORE
