"""Entry point of the command: one file per subcommand, one shape of errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import cleandoc
from typing import Annotated, Any, ParamSpec

import typer

from streamridge import __version__
from streamridge.cli import exits, token
from streamridge.cli.backup import backup
from streamridge.cli.checks import BAD_INPUT, FAILED, INTERRUPTED
from streamridge.cli.compare import compare
from streamridge.cli.demo import demo
from streamridge.cli.doctor import doctor
from streamridge.cli.export import export
from streamridge.cli.feed import feed
from streamridge.cli.forecast import forecast
from streamridge.cli.inspect import inspect
from streamridge.cli.migrate import migrate
from streamridge.cli.prune import prune
from streamridge.cli.replay import replay
from streamridge.cli.reproduce import regret, synthetic, traffic
from streamridge.cli.restore import restore
from streamridge.cli.serve import serve
from streamridge.cli.simulate import simulate
from streamridge.cli.terminal import show_any_name
from streamridge.cli.verify import verify
from streamridge.errors import InvalidInputError, StateError, StreamRidgeError

Arguments = ParamSpec("Arguments")

# Without markup, help is wrapped to the width of the terminal, and nothing in it is cut.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def code_of(error: StreamRidgeError) -> int:
    """Return the code that a command exits with after an error."""
    return BAD_INPUT if isinstance(error, InvalidInputError | StateError) else FAILED


def with_plain_errors(
    command: Callable[Arguments, None], code: Callable[[StreamRidgeError], int] = code_of
) -> Callable[Arguments, None]:
    """Return the command with errors of this library as one line and an exit code."""

    @wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StreamRidgeError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(code(error)) from None
        except KeyboardInterrupt:
            typer.echo("Stopped early.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


def add(
    to: typer.Typer,
    command: Callable[..., None],
    brief: str,
    *,
    code: Callable[[StreamRidgeError], int] = code_of,
    **more: Any,
) -> None:
    """Add a command with its brief description; its help ends with an example on its own line."""
    words, _, example = cleandoc(command.__doc__ or "").partition("\n\nExample: ")
    to.command(short_help=brief, help=words, epilog=f"\b\nExample:\n  {example}", **more)(
        with_plain_errors(command, code)
    )


experiments = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(experiments, name="reproduce", help="Repeat the paper's experiments.")
add(app, demo, "Forecast simulated detectors, and write a report.")
add(app, replay, "Forecast a file step by step as if it were live.")
add(app, compare, "Forecast a file by several ways of tuning.")
add(app, forecast, "Forecast with a saved forecaster and new readings.")
add(app, inspect, "Show what a saved forecaster is and expects.")
add(app, simulate, "Write a file of simulated detectors.")
add_care = partial(add, code=exits.code_of, cls=exits.CareCommand)
# Its flags are made of the settings, once it is called: see `serving`.
passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
add_care(
    app,
    serve,
    "Serve forecasts over HTTP, learning from readings as they come.",
    context_settings=passed_on,
    add_help_option=False,
)
add(app, feed, "Send the readings of files to a service.")
add_care(app, backup, "Copy the storage of a service into one file.")
add_care(app, restore, "Make a storage of a backup.")
add_care(app, verify, "Say whether a storage holds what it should.")
add_care(app, export, "Write readings or forecasts of a service as a table.")
add_care(app, prune, "Drop old readings and forecasts for good.")
add_care(app, migrate, "Bring a storage to the format of this version.")
add_care(app, doctor, "Say whether this machine can serve, and how much.")
tokens = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(tokens, name="token", help="Say who may call a service.")
add_care(tokens, token.create, "Make a token.")
add_care(tokens, token.show, "List tokens.", name="list")
add_care(tokens, token.revoke, "Revoke a token.")
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
