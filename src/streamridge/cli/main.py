"""Entry point of the command: one file per subcommand, one shape of errors."""

from __future__ import annotations

import typer

from streamridge.cli.demo import demo

app = typer.Typer(
    help="Forecast sensor streams with kernel ridge regression that tunes itself.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(demo)


@app.callback()
def main() -> None:
    """Forecast sensor streams with kernel ridge regression that tunes itself."""
