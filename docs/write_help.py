"""Writes the help of every command into build/help, for the page docs/reference/commands.md."""

import os
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

from streamridge.cli.main import app

FOLDER = Path(__file__).parents[1] / "build" / "help"
COLUMNS = 80


def main() -> None:
    """Write a file for each command, named by its words."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["COLUMNS"] = str(COLUMNS)
    for words in commands(typer.main.get_command(app)):
        (FOLDER / f"{'-'.join(words)}.txt").write_text(help_of(words))


def commands(
    group: typer.core.TyperGroup, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name)


def help_of(words: tuple[str, ...]) -> str:
    """Return the help of a command with all its flags."""
    for flag in ("--help-all", "--help"):  # short commands have only the second
        done = CliRunner().invoke(app, [*words, flag], prog_name="streamridge")
        if done.exit_code == 0:
            return done.output
    raise RuntimeError(done.output)


if __name__ == "__main__":
    main()
