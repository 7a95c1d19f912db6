"""Entry point of the command: one file per subcommand, one shape of errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from typing import Annotated, ParamSpec

import typer

from streamridge import __version__
from streamridge.cli.checks import BAD_INPUT, FAILED, INTERRUPTED
from streamridge.cli.compare import compare
from streamridge.cli.demo import demo
from streamridge.cli.forecast import forecast
from streamridge.cli.inspect import inspect
from streamridge.cli.replay import replay
from streamridge.cli.reproduce import regret, synthetic, traffic
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import show_any_name
from streamridge.errors import InvalidInputError, StateError, StreamRidgeError

Arguments = ParamSpec("Arguments")

# Without markup, help is wrapped to the width of the terminal, and nothing in it is cut.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def with_plain_errors(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Return the command with errors of this library as one line and an exit code."""

    @wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StreamRidgeError as error:
            typer.echo(f"error: {error}", err=True)
            bad_input = isinstance(error, InvalidInputError | StateError)
            raise typer.Exit(BAD_INPUT if bad_input else FAILED) from None
        except KeyboardInterrupt:
            typer.echo("Stopped early.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


def add(to: typer.Typer, command: Callable[..., None], brief: str) -> None:
    """Add a command with its brief description; its help ends with an example on its own line."""
    words, _, example = cleandoc(command.__doc__ or "").partition("\n\nExample: ")
    to.command(short_help=brief, help=words, epilog=f"\b\nExample:\n  {example}")(
        with_plain_errors(command)
    )


experiments = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(experiments, name="reproduce", help="Repeat the paper's experiments.")
add(app, demo, "Forecast simulated detectors, and write a report.")
add(app, replay, "Forecast a file step by step as if it were live.")
add(app, compare, "Forecast a file by several ways of tuning.")
add(app, forecast, "Forecast with a saved forecaster and new readings.")
add(app, inspect, "Show what a saved forecaster is and expects.")
add(app, simulate, "Write a file of simulated detectors.")
add(experiments, synthetic, "The synthetic figure: fixed and learned, both kernels.")
add(experiments, traffic, "The study of 13 detectors, with times.")
add(experiments, regret, "Local regret, and the assumptions behind it.")


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"streamridge {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Say the version and exit."
        ),
    ] = False,
) -> None:
    """Forecast sensor streams with kernel ridge regression that tunes itself."""
    show_any_name()
