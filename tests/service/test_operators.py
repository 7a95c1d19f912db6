"""Changes of a sensor at the same time: none is lost, and all parts of a service agree."""

import asyncio

import msgspec

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.plan import Declaration
from streamridge_service.rows import Batch
from streamridge_service.verification.log_replay import SensorLog
from tests.support.service.in_process import rows_of, serving, settled

RACES = 25
DECLARATIONS = [
    Declaration(rule="sum", label="summed"),
    Declaration(label="plain"),
    Declaration(bounds=(0.0, 500.0)),
]


def test_declarations_of_one_sensor_at_once_are_one_after_the_other(tmp_path):
    async def raced(service):
        new = []
        for race in range(RACES):
            name = f"s{race}"
            tasks = [service.operators.declare(name, each) for each in DECLARATIONS]
            new += await asyncio.gather(*tasks)
        await settled(service)
        shown = {name: service.statuses.find(name).declared for name in service.intake.sensors}
        return new, shown

    new, shown = serving(raced, tmp_path / "a.db")

    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        sensors = ledger.sensors()
        stored = {
            each.name: msgspec.json.decode(each.declared, type=Declaration) for each in sensors
        }
        assert all(SensorLog.of(ledger, each).declaration_matches for each in sensors)
    assert new.count(True) == RACES
    assert stored == shown == {f"s{race}": DECLARATIONS[-1] for race in range(RACES)}


def test_a_declaration_and_an_archive_at_once_are_one_after_the_other(tmp_path):
    async def raced(service):
        for _ in range(RACES):
            await service.operators.declare("a", Declaration())
            await asyncio.gather(
                service.operators.declare("a", Declaration(label="new")),
                service.operators.archive("a"),
            )
            row = service.intake.sensors["a"]
            assert (row.archived is not None, row.declared) == (True, b'{"label":"new"}')
            assert service.statuses.find("a").sensor == row

    serving(raced, tmp_path / "a.db")


def test_a_declaration_and_a_first_reading_at_once_make_one_sensor(tmp_path):
    async def raced(service):
        await asyncio.gather(
            service.operators.declare("north", Declaration(label="North")),
            service.ingest.store(Batch(rows_of(0), []), IngestOptions()),
            service.operators.declare("west", Declaration(label="West")),
        )
        await settled(service)
        return service.statuses.find("north").declared.label

    assert serving(raced, tmp_path / "a.db") == "North"
    with open_ledger(str(tmp_path / "a.db"), read_only=True) as ledger:
        names = [each.name for each in ledger.sensors()]
    assert sorted(names) == ["east", "north", "south", "west"]
