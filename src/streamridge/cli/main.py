"""Entry point of the command: one file per subcommand, one shape of errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from streamridge.cli.checks import BAD_INPUT, FAILED, INTERRUPTED
from streamridge.cli.compare import compare
from streamridge.cli.demo import demo
from streamridge.cli.inspect import inspect
from streamridge.cli.replay import replay
from streamridge.cli.reproduce import regret, synthetic, traffic
from streamridge.cli.simulate import simulate
from streamridge.errors import InvalidInputError, StateError, StreamRidgeError

Arguments = ParamSpec("Arguments")

app = typer.Typer(
    help="Forecast sensor streams with kernel ridge regression that tunes itself.",
    no_args_is_help=True,
    add_completion=False,
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


for command in (demo, replay, compare, simulate, inspect):
    app.command()(with_plain_errors(command))

experiments = typer.Typer(help="Repeat the paper's experiments.", no_args_is_help=True)
for experiment in (synthetic, traffic, regret):
    experiments.command()(with_plain_errors(experiment))
app.add_typer(experiments, name="reproduce")


@app.callback()
def main() -> None:
    """Forecast sensor streams with kernel ridge regression that tunes itself."""
