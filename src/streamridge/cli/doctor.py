"""`streamridge doctor`: whether this machine can serve, and how many sensors it carries."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from streamridge.cli.exits import CONFIGURATION, require_service
from streamridge.cli.options import Json
from streamridge.cli.storage import DEFAULT, Database
from streamridge.texts import visible


def doctor(
    database: Database = DEFAULT,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not measure how many sensors it carries.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say whether this machine can serve: versions, room, permissions, clock, port, storage.

    How many sensors it carries is measured in a few seconds. All other settings of `serve` are
    taken from the environment, as STREAMRIDGE_TRAIN_SIZE. It exits with 78 if something is wrong.

    Example: streamridge doctor --quick
    """
    require_service()
    from streamridge.service.doctor import findings
    from streamridge.service.settings import settings_of

    wrong = False
    for finding in findings(settings_of(database=database), measure=not quick):
        wrong = wrong or finding.level == "wrong"
        if as_json:
            typer.echo(json.dumps(asdict(finding)))
        else:
            typer.echo(f"{finding.level:<6} {finding.about:<15} {visible(finding.words)}")
    if wrong:
        raise typer.Exit(CONFIGURATION)
