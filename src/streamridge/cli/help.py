"""The help of commands with many flags: groups, and a first view without the rare flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

# A command with more flags of these groups than this shows groups, and a first view.
MOST = 25
# The groups by name: the flags of the first view, and the flags that `--help-all` adds. A flag of
# no group is in the first view.
GROUPS = {
    "Reading": (
        "sensors sensor time value id from_ to step tz extras gap",
        "aggregate fold layout date_format decimal missing encoding largest arrival_order "
        "skip_lines start_time",
    ),
    "Model": (
        "method model horizon level bounds seasons holidays",
        "exclude budget train_size update_every tune_every hyperparameter lags start seed",
    ),
    "Running": ("warmup last_steps jobs", "steps engine scheduler keep dry_run"),
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
