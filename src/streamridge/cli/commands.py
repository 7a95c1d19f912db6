"""Adding commands: their help texts, their error messages and their exit codes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


# A command with more flags of these groups than this shows groups, and a first view.
MOST = 25
# The groups by name: the flags of the first view, and the flags that `--help-all` adds. A flag of
# no group is in the first view.
GROUPS = {
    "Reading": (
        "sensors sensor time value id from_ to step tz extras",
        "gap aggregate fold layout date_format decimal missing encoding largest arrival_order "
        "skip_lines start_time",
    ),
    "Model": (
        "method model horizon level bounds neighbours holidays",
        "seasons exclude budget train_size update_every tune_every hyperparameter lags start seed",
    ),
    "Running": ("last_steps jobs", "warmup steps engine scheduler keep dry_run"),
    "Output": ("predictions report save out plot as_json", "unit event force quiet"),
}
RARE = {name for _, rare in GROUPS.values() for name in rare.split()}
GROUP_OF = {name: group for group, views in GROUPS.items() for name in " ".join(views).split()}
ARGUMENTS, OTHERS = "Arguments", "Options"
# The key under which a context notes that all flags are requested.
ALL = "streamridge.help_all"


def has_groups(names: Iterable[str | None]) -> bool:
    """Return whether the help of a command with flags of these names has groups."""
    return sum(name in GROUP_OF for name in names) > MOST


def print_all_flags(ctx: typer.Context, requested: bool) -> None:
    """Print the help with the rare flags, and exit."""
    if requested:
        ctx.meta[ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        callback=print_all_flags,
        help="Show all flags, also the rare ones, and exit.",
    ),
]


def add_first_view(command: Callable[..., None]) -> None:
    """Declare the flag `--help-all` of a command, if it has many flags."""
    own = signature(command, eval_str=True)
    if has_groups(own.parameters):
        more = Parameter("help_all", Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll)
        parameters = [*own.parameters.values(), more]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}


class GroupedCommand(TyperCommand):
    """A command whose help shows the flags in groups, if there are many."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the flags."""
        if not has_groups(param.name for param in self.params):
            super().format_options(ctx, formatter)
            return
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (ARGUMENTS, *GROUPS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            is_flag = param.param_type_name == "option"
            group = GROUP_OF.get(str(param.name), OTHERS) if is_flag else ARGUMENTS
            if record is not None and (ctx.meta.get(ALL) or param.name not in RARE):
                sections.setdefault(group, []).append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
