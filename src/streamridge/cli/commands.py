"""Adding commands: their help texts, their error messages and their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from inspect import cleandoc
from typing import Any

import typer

from streamridge.cli.help import GroupedCommand, add_first_view
from streamridge.cli.options import with_reading_flags
from streamridge.errors import InvalidInputError, MissingExtraError, StateError, StreamRidgeError

# Exit codes: nothing could be done; the input is wrong; some results are missing; Ctrl-C.
FAILED, BAD_INPUT, INCOMPLETE, INTERRUPTED = 1, 2, 3, 130


# The modules that the extra `plot` installs: figures of reports, and their interactive versions.
PLOTS = ("matplotlib", "plotly")


@dataclass(frozen=True)
class ExitCodes:
    """The exit codes of a group of commands.

    An error class with an `exit_code` of its own needs no entry.
    """

    by_error: Mapping[type[StreamRidgeError], int]  # the first class that matches decides
    otherwise: int = FAILED  # all other errors
    usage: int = BAD_INPUT  # an unknown flag or a malformed value

    def of(self, error: StreamRidgeError) -> int:
        """Return the exit code after an error."""
        if error.exit_code is not None:
            return error.exit_code
        matching = (code for kind, code in self.by_error.items() if isinstance(error, kind))
        return next(matching, self.otherwise)


EXIT_CODES = ExitCodes({InvalidInputError: BAD_INPUT, StateError: BAD_INPUT})


@dataclass(frozen=True)
class Commands:
    """The place where commands are added, here and by other packages.

    Each entry point of the group `streamridge.commands` is called with the commands of the app.
    """

    app: typer.Typer  # the application, or a group of its commands
    exit_codes: ExitCodes = EXIT_CODES

    def with_exit_codes(
        self, by_error: Mapping[type[StreamRidgeError], int], *, otherwise: int, usage: int
    ) -> Commands:
        """Return the same place with other exit codes for the commands that are added to it."""
        return Commands(self.app, ExitCodes(by_error, otherwise, usage))

    def add(self, command: Callable[..., None], summary: str, **options: Any) -> None:
        """Add a command, with one line for the list of commands.

        The last paragraph of its docstring is "Example: ", and a command line. `options` go to
        `typer.Typer.command`, such as `name`.
        """
        text, _, example = cleandoc(command.__doc__ or "").partition("\n\nExample: ")
        run = _with_exit_codes(command, self.exit_codes)
        add_first_view(run)
        self.app.command(
            cls=_command_class(self.exit_codes.usage),
            short_help=summary,
            help=text,
            epilog=f"\b\nExample:\n  {example}",
            **options,
        )(run)

    def add_reader(
        self, command: Callable[..., None], summary: str, *, without: Collection[str] = ()
    ) -> None:
        """Add a command that reads files, with a flag for each option of `streamridge.read`.

        The function gets the values of the flags as `**reading`. There is no flag for the options
        `without`, which the command decides, or has flags of its own for.
        """
        self.add(with_reading_flags(command, besides=without), summary)

    def add_group(self, name: str, summary: str) -> Commands:
        """Add a group of commands and return the place where its commands are added."""
        group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
        self.app.add_typer(group, name=name, help=summary)
        return Commands(group, self.exit_codes)


def require_extra(module: str, extra: str) -> None:
    """Raise unless an optional dependency is installed; the error names the extra."""
    if not has_extra(module):
        raise MissingExtraError(missing_extra([module], extra))


def has_extra(*modules: str) -> bool:
    """Return whether optional dependencies are installed."""
    return all(find_spec(module) is not None for module in modules)


def missing_extra(modules: Sequence[str], extra: str) -> str:
    """Return which optional dependencies are needed, and how to install them."""
    what = "it" if len(modules) == 1 else "them"
    return (
        f"{' and '.join(modules)} must be installed for this. Install {what} with: "
        f"pip install 'streamridge[{extra}]' (in a checkout: pip install '.[{extra}]')"
    )


def _with_exit_codes(command: Callable[..., None], exit_codes: ExitCodes) -> Callable[..., None]:
    """Return a command that prints an error as one line and exits with its code.

    The flag `--help-all`, which many commands have, ends a command before it runs.
    """

    @wraps(command)
    def run(*, help_all: bool = False, **flags: Any) -> None:
        try:
            command(**flags)
        except StreamRidgeError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(exit_codes.of(error)) from None
        except KeyboardInterrupt:
            typer.echo("Stopped early.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


def _command_class(usage: int) -> type[GroupedCommand]:
    """Return a class of commands with a given exit code for wrong flags."""

    class Command(GroupedCommand):
        def make_context(self, *args: Any, **options: Any) -> Any:
            try:
                return super().make_context(*args, **options)
            except Exception as error:
                if getattr(error, "exit_code", None) == BAD_INPUT:
                    error.exit_code = usage  # type: ignore[attr-defined]
                raise

    return Command
