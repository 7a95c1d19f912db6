"""The command `streamridge`: its subcommands, and the commands of other packages."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from streamridge import __version__
from streamridge.cli.commands import FAILED, INCOMPLETE, Commands
from streamridge.cli.compare import compare
from streamridge.cli.demo import demo
from streamridge.cli.forecast import forecast
from streamridge.cli.inspect import inspect
from streamridge.cli.replay import replay
from streamridge.cli.reproduce import regret, synthetic, traffic
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import UNLIMITED, OutputError, guard_standard_streams

# Without markup, help is wrapped to the width of the terminal and never truncated.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": UNLIMITED},
)
commands = Commands(app)
commands.add(demo, "Forecast simulated detectors and write a report.")
commands.add(replay, "Forecast a file step by step as if it were live.")
commands.add(compare, "Forecast a file with several tuning methods.")
commands.add(forecast, "Forecast the next steps of a file, or of saved forecasters.")
commands.add(inspect, "Show the settings and the state of a saved forecaster.")
commands.add(simulate, "Write a file of simulated detectors.")
studies = commands.add_group("reproduce", "Repeat the experiments of the paper.")
studies.add(synthetic, "Synthetic series: fixed and learned hyperparameters, two kernels.")
studies.add(traffic, "Traffic study: 13 detectors, with running times.")
studies.add(regret, "Local regret and the assumptions of its bounds.")
# Other packages add their commands through entry points, as streamridge_service does.
for entry_point in entry_points(group="streamridge.commands"):
    entry_point.load()(commands)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"streamridge {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Forecast sensor streams with kernel ridge regression that tunes itself."""


def run() -> None:
    """Run the command in a process of its own."""
    guard_standard_streams()
    try:
        try:
            app(prog_name="streamridge")
        finally:
            sys.stdout.flush()
    except OutputError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(INCOMPLETE)
    except BrokenPipeError:  # the reader has left, as `head` does
        sys.exit(FAILED)
