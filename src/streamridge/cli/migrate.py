"""`streamridge migrate`: a storage brought to the format of this version, with a copy kept."""

from __future__ import annotations

from pathlib import Path

from streamridge.cli.storage import DEFAULT, Database, named, opened
from streamridge.cli.terminal import Messages


def migrate(database: Database = DEFAULT) -> None:
    """Bring the storage of a service to the format of this version.

    `serve` does the same when it starts. A copy of a file is kept beside it first. One that a
    newer version wrote is not touched.

    Example: streamridge migrate --database roads.db
    """
    with opened(database, read_only=False) as ledger:
        facts = ledger.facts()
    console = Messages()
    console.print(
        f"{named(database)}: format {facts['format']}, which is that of streamridge "
        f"{facts['version']}."
    )
    for copy in sorted(Path(database).parent.glob(f"{Path(database).name}.format-*")):
        console.print(f"As it was before: {copy}")
