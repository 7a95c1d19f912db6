"""`streamridge prune`: old readings and forecasts dropped, when asked to and never by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from streamridge.cli.exits import USAGE
from streamridge.cli.storage import DEFAULT, Database, day_text, moment, named, now, opened
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.texts import counted


def prune(
    before: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="What is older is dropped: a date or a time in UTC, or an age such as 400d.",
        ),
    ],
    database: Database = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Drop old readings and forecasts for good; what forecasters still need stays.

    Whole stretches of 131,072 arrivals are dropped, so that somewhat more than asked for stays.
    `export` them first. The room is used again by what comes; the file does not shrink. The
    service must not run meanwhile.

    Example: streamridge prune --before 2020-01-01 --yes --database roads.db
    """
    moment_before = moment("before", before)
    if moment_before > now():
        raise InvalidInputError(f"before must be a time that has passed, got {before!r}.")
    question = f"Drop what is older than {day_text(moment_before)} from {named(database)} for good?"
    if not yes and not typer.confirm(question, err=True):
        raise typer.Exit(USAGE)
    with opened(database, read_only=False) as ledger:
        dropped = ledger.prune(moment_before)
    console = Messages()
    console.print(
        f"Dropped {counted(dropped['readings'], 'reading')} and "
        f"{counted(dropped['forecasts'], 'forecast')}."
    )
    if dropped.get("needed"):
        console.print("Some that are as old were kept, since forecasters still need them.")
