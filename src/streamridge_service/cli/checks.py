"""`streamridge verify` and `streamridge doctor`: checks of a database and of a machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from secrets import randbelow
from typing import TYPE_CHECKING, Annotated

import typer

from streamridge.errors import counted, visible
from streamridge_service.cli.console import Json, Messages, Quiet, progress_bar
from streamridge_service.cli.database import (
    CONFIGURATION,
    DATA,
    DEFAULT,
    Database,
    open_database,
    require_service,
    without_password,
)

if TYPE_CHECKING:
    from streamridge_service.ledger.ledger import Ledger
    from streamridge_service.ledger.records import SensorRow
    from streamridge_service.verification.groups import GroupCheck
    from streamridge_service.verification.verify import SensorCheck


def verify(
    database: Database = DEFAULT,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of sensors to replay, drawn at random.")
    ] = 20,
    every: Annotated[bool, typer.Option("--all", help="Replay all sensors.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw the sensors of an earlier call.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a service's database completely, and replay the logs of some sensors.

    All pages, checksums and arrival numbers are checked. Then some sensors are replayed from their
    first reading on, refit by refit. Their states and forecasts must equal the stored ones bit for
    bit. So must the corrections of all groups. Nothing is changed, and the service may run
    meanwhile. The exit code is 65 if there is a fault.

    Example: streamridge verify --all --database roads.db
    """
    messages = Messages(quiet=quiet)
    name = without_password(database)
    drawn = randbelow(1_000_000) if seed is None else seed
    with open_database(database) as ledger:
        messages.print(f"{name}: reading all of it")
        faults = list(ledger.check())
        with _sensor_checks(ledger, None if every else sample, drawn, messages) as checks:
            found = list(checks)
        groups = _group_checks(ledger)
    faults += [f"group {each.group}: {each.fault}" for each in groups if each.fault is not None]
    faults += [f"{each.sensor}: {each.fault}" for each in found if each.fault is not None]
    if as_json:
        sensors = [asdict(each) for each in found]
        record = {
            "database": name,
            "seed": drawn,
            "faults": faults,
            "sensors": sensors,
            "groups": [asdict(each) for each in groups],
        }
        typer.echo(json.dumps(record))
    else:
        _print_result(faults, found, groups, drawn)
    if faults:
        raise typer.Exit(DATA)


@contextmanager
def _sensor_checks(
    ledger: Ledger, count: int | None, seed: int, messages: Messages
) -> Iterator[Iterator[SensorCheck]]:
    """Give the checks of some sensors, with a progress bar."""
    from streamridge_service.verification.verify import check_sensors, sampled

    sensors = sampled(ledger.sensors(), count, seed)
    with progress_bar(messages) as bars:
        bar = bars.add_task("sensors", total=len(sensors), visible=bool(sensors))

        def shown(sensors: list[SensorRow]) -> Iterator[SensorRow]:
            for sensor in sensors:
                bars.update(bar, description=visible(sensor.name))
                yield sensor
                bars.advance(bar)

        yield check_sensors(ledger, shown(sensors))


def _group_checks(ledger: Ledger) -> list[GroupCheck]:
    from streamridge_service.verification.groups import check_groups

    return list(check_groups(ledger))


def _print_result(
    faults: list[str], found: list[SensorCheck], groups: list[GroupCheck], seed: int
) -> None:
    remarks = [(each.sensor, each.remark) for each in found if each.fault is None]
    remarks += [(f"group {each.group}", each.remark) for each in groups if each.fault is None]
    for name, remark in remarks:
        if remark is not None:
            typer.echo(visible(f"{name}: {remark}."))
    for fault in faults:
        typer.echo(f"wrong: {visible(fault)}")
    exact = [each for each in found if each.fault is None and each.is_exact]
    forecasts = sum(each.forecasts for each in exact)
    typer.echo(
        f"{counted(len(exact), 'sensor')} and {counted(forecasts, 'forecast')} replayed from the "
        f"log, equal bit for bit (seed {seed})."
    )
    if groups:
        same = [each for each in groups if each.fault is None and each.is_exact]
        corrections = sum(each.corrections for each in same)
        typer.echo(
            f"{counted(len(same), 'group')} and {counted(corrections, 'correction')} replayed, "
            "equal bit for bit."
        )
    typer.echo(f"{counted(len(faults), 'fault')} found." if faults else "No faults found.")


def doctor(
    database: Database = DEFAULT,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not measure how many sensors the machine can serve.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check whether this machine can serve: versions, disk, permissions, clock, port, database.

    A measurement of a few seconds estimates how many sensors it can serve. All other settings of
    `serve` come from the environment, such as STREAMRIDGE_TRAIN_SIZE. The exit code is 78 if there
    is a fault.

    Example: streamridge doctor --quick
    """
    require_service()
    from streamridge_service.admin.doctor import findings
    from streamridge_service.settings import settings_of

    wrong = False
    for finding in findings(settings_of(database=database), measure=not quick):
        wrong = wrong or finding.level == "wrong"
        if as_json:
            typer.echo(json.dumps(asdict(finding)))
        else:
            typer.echo(f"{finding.level:<6} {finding.about:<15} {visible(finding.words)}")
    if wrong:
        raise typer.Exit(CONFIGURATION)
