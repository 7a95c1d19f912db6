"""`streamridge feed`: send the readings of files to a service, at any speed."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from streamridge import parse_length, read, step_name
from streamridge.errors import InvalidInputError, counted
from streamridge_service.cli.console import Messages, Quiet, progress_bar
from streamridge_service.client.feed import Feed, FeedResult, KnownSensors, Pace, iso
from streamridge_service.client.http_client import Client, RetryPolicy
from streamridge_service.client.readings_table import ReadingsTable
from streamridge_service.limits import LARGEST

# Reading options that this command decides, or that it has its own flags for.
OWN_OPTIONS = ("sensors", "step", "extras", "arrival_order")
# Exit codes: some rows were refused, or skipped although the service lacks them; Ctrl-C.
INCOMPLETE, INTERRUPTED = 3, 130
# Shorter waits, in seconds, are not reported.
SHORT = 2.0

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, NDJSON, Parquet or Caltrans station files, compressed with gzip or not; - reads "
        "standard input.",
    ),
]
Url = Annotated[
    str, typer.Option(metavar="URL", envvar="STREAMRIDGE_URL", help="Address of the service.")
]
Speed = Annotated[
    str,
    typer.Option(
        metavar="SPEED",
        help="max; a multiple of real time, such as 60; or steps a second, such as 2/s.",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        envvar="STREAMRIDGE_TOKEN",
        help="Access token with the scope write, if the service requires one; better set in the "
        "environment. With the scope read as well, an interrupted feed continues where it stopped.",
    ),
]


def feed(
    files: Files,
    url: Url = "http://127.0.0.1:8321",
    speed: Speed = "max",
    sensor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Sensor to send; repeat the flag for several."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time between readings. By default the step of the service."
        ),
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option(
            "--backfill", help="Send all readings as history: the service makes no forecasts."
        ),
    ] = False,
    resend: Annotated[
        bool,
        typer.Option(
            "--resend", help="Also send readings older than the newest one in the service."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the files and print a summary; send nothing.")
    ] = False,
    patience: Annotated[
        str, typer.Option(metavar="TIME", help="How long to retry before giving up.")
    ] = "10min",
    token: Token = None,
    quiet: Quiet = False,
    **reading: Any,
) -> None:
    """Send the readings of files to a service in time order, as if they were live.

    A repeated command continues where it stopped: readings that are not newer than the newest
    reading of their sensor are skipped. Send older readings with --backfill or --resend. If the
    service is unreachable or overloaded, requests are retried. Exit codes: 0 success, 1 the service
    refused or was unreachable, 2 wrong input, 3 some rows were refused, or skipped and missing in
    the service, 130 interrupted.

    Example: streamridge feed roads.csv --tz UTC --dry-run
    """
    messages, pace = Messages(quiet=quiet), Pace.of(speed)

    def report_wait(reason: str, seconds: float) -> None:
        if seconds >= SHORT:
            messages.print(f"{reason} Waiting {seconds:.0f} s.")

    with Client(url, token, RetryPolicy(_seconds(patience), report_wait)) as client:
        sender = Feed(client, backfill=backfill, pace=pace)
        known = None if dry_run else sender.known_sensors()
        own = None if known is None else known.reading_step
        source = read(files, sensors=sensor, step=own if step is None else step, **reading)
        # A sensor may well show one value for as long as a file covers.
        constant = [each.series for each in source.left_out if each.series is not None]
        every = [*source.series.values(), *constant]
        left_out = [each for each in source.left_out if each.series is None]
        for text in (*every, *source.notes, *left_out):
            messages.print(str(text))
        tables = ReadingsTable.of(every)
        if dry_run:
            _print_summary(tables, messages)
            return
        newest = {} if backfill or resend or known is None else known.newest
        is_complete = _send(sender, tables, newest, messages)
        if known is not None and newest:
            is_complete &= _has_skipped(sender, tables, known, messages)
        if not is_complete:
            raise typer.Exit(INCOMPLETE)


def _send(
    sender: Feed, tables: list[ReadingsTable], newest: dict[str, int], messages: Messages
) -> bool:
    """Send new readings with a progress bar, print the result, and return whether all arrived."""
    total, result = sum(table.count(newest) for table in tables), FeedResult()
    interrupted = False
    try:
        with progress_bar(messages) as bars:
            bar = bars.add_task("readings", total=total, visible=total > 0)
            for count in sender.send(tables, newest, result):
                bars.advance(bar, count)
    except KeyboardInterrupt:
        interrupted = True
    _print_result(result, total, messages)
    if interrupted:
        messages.print("Stopped early. The same command continues from here.")
        raise typer.Exit(INTERRUPTED)
    return not result.counts["refused"]


def _has_skipped(
    sender: Feed, tables: list[ReadingsTable], known: KnownSensors, messages: Messages
) -> bool:
    """Report skipped readings; return whether the service seems to have all of them."""
    skipped = sum(len(times) for table in tables for times in table.skipped(known.newest).values())
    if not skipped:
        return True
    words = counted(skipped, "reading")
    messages.print(f"{words} skipped: they are not newer than the newest of their sensor.")
    missing = sender.count_missing(tables, known)
    if not missing:
        messages.print("The service has them, as far as their number was checked.")
        return True
    messages.print(
        f"At least {counted(missing, 'skipped reading')} cannot be found in the service. Pass "
        "--backfill to send all readings as history, or --resend to send them as late readings."
    )
    return False


def _print_summary(tables: list[ReadingsTable], messages: Messages) -> None:
    for table in tables:
        messages.print(
            f"Would send {counted(table.count({}), 'reading')} of "
            f"{counted(len(table.names), 'sensor')}, in steps of "
            f"{step_name(timedelta(microseconds=table.step))} from {iso(table.first)} to "
            f"{iso(table.last)}."
        )
    too_large = sum(table.too_large for table in tables)
    if too_large:
        messages.print(f"{counted(too_large, 'value')} above {LARGEST:g} would be refused.")


def _print_result(result: FeedResult, total: int, messages: Messages) -> None:
    parts = [f"{number} {name}" for name, number in result.counts.items() if number]
    messages.print(
        f"{counted(total, 'reading')} to send: {', '.join(parts) or 'nothing was sent'}."
    )
    for line in result.refusals:
        messages.print(line)
    more = result.counts["refused"] - len(result.refusals)
    if more > 0:
        codes = ", ".join(f"{code} {count}" for code, count in result.codes.most_common())
        messages.print(f"and {more} more. Described refusals by code: {codes}.")


def _seconds(text: str) -> float:
    length = parse_length("patience", text)
    if not isinstance(length, timedelta):
        raise InvalidInputError(f"patience must be a time such as 10min, got {text!r}.")
    return length.total_seconds()
