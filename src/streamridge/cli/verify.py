"""`streamridge verify`: whether a storage holds what it should, to the last bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from secrets import randbelow
from typing import TYPE_CHECKING, Annotated

import typer

from streamridge.cli.exits import DATA
from streamridge.cli.options import Json, Quiet
from streamridge.cli.storage import DEFAULT, Database, named, opened
from streamridge.cli.terminal import Messages
from streamridge.cli.watching import progress_bar
from streamridge.texts import counted, visible

if TYPE_CHECKING:
    from streamridge.service.ledger.base import Ledger
    from streamridge.service.ledger.records import SensorRow
    from streamridge.service.verify import Verdict


def verify(
    database: Database = DEFAULT,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Sensors to make again, drawn at random.")
    ] = 20,
    every: Annotated[bool, typer.Option("--all", help="Make all sensors again.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw the sensors of an earlier call.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say whether the storage of a service holds what it should.

    All of it is read: pages, checksums, and arrival numbers, which have no holes. Then some sensors
    are made again from their logs, refit by refit from the first reading on, and their states and
    forecasts are compared with those stored, to the last bit. Nothing is changed, and the service
    may run meanwhile. It exits with 65 if anything is wrong.

    Example: streamridge verify --all --database roads.db
    """
    console = Messages(quiet=quiet)
    drawn = randbelow(1_000_000) if seed is None else seed
    with opened(database) as ledger:
        console.print(f"{named(database)}: reading all of it")
        faults = list(ledger.check())
        with _verdicts(ledger, None if every else sample, drawn, console) as verdicts:
            found = list(verdicts)
    faults += [f"{each.sensor}: {each.fault}" for each in found if each.fault is not None]
    if as_json:
        sensors = [asdict(each) for each in found]
        record = {"database": named(database), "seed": drawn, "faults": faults, "sensors": sensors}
        typer.echo(json.dumps(record))
    else:
        _show(faults, found, drawn)
    if faults:
        raise typer.Exit(DATA)


@contextmanager
def _verdicts(
    ledger: Ledger, count: int | None, seed: int, console: Messages
) -> Iterator[Iterator[Verdict]]:
    """Give what becomes of some sensors, with a bar that shows how far it is."""
    from streamridge.service.verify import sampled, verdicts

    sensors = sampled(ledger.sensors(), count, seed)
    with progress_bar(console) as bars:
        bar = bars.add_task("sensors", total=len(sensors), visible=bool(sensors))

        def told(sensors: list[SensorRow]) -> Iterator[SensorRow]:
            for sensor in sensors:
                bars.update(bar, description=visible(sensor.name))
                yield sensor
                bars.advance(bar)

        yield verdicts(ledger, told(sensors))


def _show(faults: list[str], found: list[Verdict], seed: int) -> None:
    for each in found:
        if each.fault is None and each.remark is not None:
            typer.echo(visible(f"{each.sensor}: {each.remark}."))
    for fault in faults:
        typer.echo(f"wrong: {visible(fault)}")
    compared = [each for each in found if each.fault is None and each.remark is None]
    forecasts = sum(each.forecasts for each in compared)
    typer.echo(
        f"{counted(len(compared), 'sensor')} and {counted(forecasts, 'forecast')} made again from "
        f"the log, the same to the last bit (seed {seed})."
    )
    typer.echo(f"{counted(len(faults), 'fault')} found." if faults else "Nothing is wrong.")
