"""`streamridge feed`: the readings of a file sent to a service, at any speed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import typer

from streamridge.cli import options
from streamridge.cli.checks import INCOMPLETE, INTERRUPTED
from streamridge.cli.reading_flags import selection_of_flags, with_reading_flags
from streamridge.cli.replay import say_left_out, say_what_was_read
from streamridge.cli.terminal import Messages
from streamridge.cli.watching import progress_bar
from streamridge.errors import InvalidInputError
from streamridge.runs.sources import Sources, opened_sources
from streamridge.series.clock import parse_length, step_name
from streamridge.service.client import Client, Patience
from streamridge.service.feeding import Feed, Outcome, Pace, iso
from streamridge.service.stock import Stock, stocked
from streamridge.texts import counted

# What this command decides, or names in its own way.
OWN = ("sensors", "step", "extras", "arrival_order")
# Waits that are shorter, in seconds, are not told.
SHORT = 2.0

Url = Annotated[
    str, typer.Option(metavar="URL", envvar="STREAMRIDGE_URL", help="Address of the service.")
]
Speed = Annotated[
    str,
    typer.Option(
        metavar="SPEED",
        help="How fast: max; a number of times real time, such as 60; or of steps a second, such "
        "as 2/s.",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        envvar="STREAMRIDGE_TOKEN",
        help="What lets it in, if the service has tokens; better set in the environment. Its scope "
        "must be write; with read as well, it goes on where it stopped.",
    ),
]


def feed(
    files: options.Files,
    url: Url = "http://127.0.0.1:8321",
    speed: Speed = "max",
    sensor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Sensor to send; repeat the flag for several."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time between readings. That of the service by default."),
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option(
            "--backfill", help="Send all as readings of the past: no forecasts are made of them."
        ),
    ] = False,
    resend: Annotated[
        bool,
        typer.Option("--resend", help="Send also what is older than the newest reading there."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read all and say what would be sent; send nothing.")
    ] = False,
    patience: Annotated[
        str, typer.Option(metavar="TIME", help="How long to try again before giving up.")
    ] = "10min",
    token: Token = None,
    quiet: options.Quiet = False,
    **reading: Any,
) -> None:
    """Send the readings of files to a service in time order, as if they came now.

    Begun again, it goes on where it stopped: what is not newer than the newest reading of a sensor
    is left out. Where the service is away, busy or full, it waits and tries again. Exit codes: 0
    all is there, 1 the service refused or was away, 2 something given is wrong, 3 some rows were
    refused, 130 interrupted.

    Example: streamridge feed roads.csv --tz UTC --dry-run
    """
    console, pace = Messages(quiet=quiet), Pace.of(speed)
    with Client(url, token, Patience(_seconds(patience), partial(_tell, console))) as client:
        way = Feed(client, backfill=backfill, pace=pace)
        if step is None and not dry_run:
            seconds = way.step_seconds()
            step = None if seconds is None else f"{seconds}s"
        selection = selection_of_flags(reading, sensors=sensor, step=step)
        with (
            opened_sources(files, selection, partial(say_what_was_read, console)) as sources,
            stocked(sources.found) as stock,
        ):
            _say_notes(sources, console)
            if dry_run:
                _say_what_would_be_sent(stock, console)
                return
            newest = {} if backfill or resend else way.newest()
            _send(way, stock, newest, console)


def _send(way: Feed, stock: Stock, newest: dict[str, int], console: Messages) -> None:
    """Send what is new with a bar that shows how far it is, and say what became of it."""
    total, outcome = stock.count(newest), Outcome()
    interrupted = False
    try:
        with progress_bar(console) as bars:
            bar = bars.add_task("readings", total=total, visible=total > 0)
            for count in way.send(stock, newest, outcome):
                bars.advance(bar, count)
    except KeyboardInterrupt:
        interrupted = True
    _say_outcome(outcome, total, console)
    if interrupted:
        console.print("Stopped early. The same command goes on from here.")
        raise typer.Exit(INTERRUPTED)
    if outcome.counts["refused"]:
        raise typer.Exit(INCOMPLETE)


def _say_notes(sources: Sources, console: Messages) -> None:
    for note in sources.notes:
        console.print(note)
    say_left_out(sources.left_out, console)


def _say_what_would_be_sent(stock: Stock, console: Messages) -> None:
    console.print(
        f"Would send {counted(stock.count({}), 'reading')} of "
        f"{counted(len(stock.names), 'sensor')}, in steps of "
        f"{step_name(timedelta(microseconds=stock.step))} from {iso(stock.first)} to "
        f"{iso(stock.last)}."
    )
    if stock.too_large:
        console.print(
            f"{counted(stock.too_large, 'value')} would be refused: larger than 1e6 in size."
        )


def _say_outcome(outcome: Outcome, total: int, console: Messages) -> None:
    parts = [f"{number} {name}" for name, number in outcome.counts.items() if number]
    console.print(f"{counted(total, 'reading')} to send: {', '.join(parts) or 'nothing was sent'}.")
    for line in outcome.told:
        console.print(line)
    more = outcome.counts["refused"] - len(outcome.told)
    if more > 0:
        codes = ", ".join(f"{code} {count}" for code, count in outcome.codes.most_common())
        console.print(f"and {more} more. By code, as far as told: {codes}.")


def _tell(console: Messages, reason: str, seconds: float) -> None:
    if seconds >= SHORT:
        console.print(f"{reason} Waiting {seconds:.0f} s.")


def _seconds(text: str) -> float:
    length = parse_length("patience", text)
    if not isinstance(length, timedelta):
        raise InvalidInputError(f"patience must be a time such as 10min, got {text!r}.")
    return length.total_seconds()


with_reading_flags(feed, besides=OWN)
