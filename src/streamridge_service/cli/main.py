"""The commands of the service, which an entry point adds to `streamridge`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from streamridge.errors import InvalidInputError
from streamridge_service.cli import tokens
from streamridge_service.cli.checks import doctor, verify
from streamridge_service.cli.database import CONFIGURATION, USAGE, require_service
from streamridge_service.cli.export import export
from streamridge_service.cli.feed import OWN_OPTIONS, feed
from streamridge_service.cli.storage import accept_loss, backup, migrate, prune, restore


def register(commands: Any) -> None:
    """Add the commands of the service.

    `commands` are the `Commands` of `streamridge`.
    """
    admin = commands.with_exit_codes(
        {InvalidInputError: USAGE}, otherwise=CONFIGURATION, usage=USAGE
    )
    _add_serve(admin)
    commands.add_reader(feed, "Send the readings of files to a service.", without=OWN_OPTIONS)
    admin.add(backup, "Copy a service's database into one file.")
    admin.add(restore, "Create a database from a backup.")
    admin.add(verify, "Check a database, and replay the logs of sensors.")
    admin.add(export, "Write readings, forecasts or sensors as a table.")
    admin.add(
        accept_loss, "Go on without lost readings that were acknowledged.", name="accept-loss"
    )
    admin.add(prune, "Delete old readings and forecasts.")
    admin.add(migrate, "Bring a database to the format of this version.")
    admin.add(doctor, "Check whether this machine can serve.")
    group = admin.add_group("token", "Manage access tokens.")
    group.add(tokens.create, "Create a token.")
    group.add(tokens.show, "List tokens.", name="list")
    group.add(tokens.revoke, "Revoke a token.")


def _add_serve(admin: Any) -> None:
    """Add `serve`, whose flags are generated from the settings when it is called.

    The settings need packages of the extra `service`, which other commands do without.
    """

    def serve(context: typer.Context) -> None:
        """Serve forecasts over HTTP.

        Example: streamridge serve --port 8321
        """
        require_service()
        from streamridge_service.cli.serving import serve_command

        app = typer.Typer(
            rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False
        )
        replace(admin, app=app).add(serve_command(), "Serve forecasts over HTTP.")
        command = typer.main.get_command(app)
        code = command.main(context.args, prog_name="streamridge serve", standalone_mode=False)
        raise typer.Exit(code or 0)

    admin.add(
        serve,
        "Serve forecasts over HTTP, and learn from readings as they come.",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        add_help_option=False,
    )
