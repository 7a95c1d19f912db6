"""`streamridge serve`: its flags are made of the settings, once they are needed."""

from __future__ import annotations

import typer

from streamridge.cli.exits import CONFIGURATION, require_service
from streamridge.errors import MissingExtraError


def serve(context: typer.Context) -> None:
    """Take readings over HTTP, learn from them, and always have the next forecasts.

    Example: streamridge serve --port 8321
    """
    try:
        require_service()
    except MissingExtraError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(CONFIGURATION) from None
    from streamridge.cli.serving import command

    code = command().main(context.args, prog_name="streamridge serve", standalone_mode=False)
    raise typer.Exit(code or 0)
