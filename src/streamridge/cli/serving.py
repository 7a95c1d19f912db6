"""The flags of `streamridge serve`, made of the settings; and what it says when it begins."""

from __future__ import annotations

from datetime import UTC, datetime
from inspect import Parameter, Signature
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from rich.text import Text

from streamridge.cli.exits import CONFIGURATION, CareCommand
from streamridge.cli.storage import named
from streamridge.cli.terminal import Messages
from streamridge.errors import InvalidInputError
from streamridge.service.plan import SECOND
from streamridge.service.settings import ServiceSettings, settings_of

EXAMPLE = "streamridge serve --port 8321 --database roads.db"
# Flags that are repeated for several values are called by what one value is.
REPEATED = {"allowed_hosts": "--allowed-host"}
# What stands for a value in the help, where its type does not tell.
METAVARS = {"database": "FILE|URL", "host": "ADDRESS", "allowed_hosts": "NAME"}


def command() -> Any:
    """Return the command, with a flag for every setting."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(cls=CareCommand, epilog=f"\b\nExample:\n  {EXAMPLE}")(_with_flags(serve))
    return typer.main.get_command(app)


def serve(*, demo: bool = False, **given: Any) -> None:
    """Take readings over HTTP, learn from them, and always have the next forecasts.

    It needs no configuration, and listens to this machine alone unless told otherwise. Every
    setting can also be made in the environment, as STREAMRIDGE_PORT. All that is wrong is told
    before the port opens. Exit codes: 0 fine, 64 usage, 65 written by a newer version, 74 storage
    failed, 75 already served, 78 configuration.
    """
    settings = _settings({name: value for name, value in given.items() if value is not None})
    if demo:
        from streamridge.service.demo import run_demo

        raise typer.Exit(run_demo(settings, Messages().print))
    from streamridge.service.web.server import run

    console = Messages()
    raise typer.Exit(run(settings, say=lambda line: _announce(line, settings, console)))


def _settings(given: dict[str, Any]) -> ServiceSettings:
    """Return the settings; say all that is wrong with them, and exit."""
    try:
        return settings_of(**given)
    except InvalidInputError as error:
        for line in str(error.args[0]).splitlines():
            Messages().print(f"error: {line}")
        raise typer.Exit(CONFIGURATION) from None


def _announce(line: str, settings: ServiceSettings, console: Messages) -> None:
    """Say where the service is, where its data are, and how to send a first reading."""
    address = line.rpartition(" ")[2]
    console.print(Text.assemble(("streamridge", "bold"), " serves ", (address, "bold cyan")))
    database = settings.database
    where = named(database) if "://" in database else str(Path(database).absolute())
    console.print(f"Its data are in {where}. Ctrl-C ends it.")
    console.print("Send a reading:")
    console.print(f"  {first_reading(address, settings.plan.step)}")


def first_reading(address: str, step: int) -> str:
    """Return the command that sends a reading of the present step."""
    seconds = step // SECOND
    moment = int(datetime.now(UTC).timestamp()) // seconds * seconds
    time = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f'{{"sensor": "ramp-7", "time": "{time}", "value": 42}}'
    return f"curl {address}/v1/readings --json {quote(body)}"


def _with_flags(function: Any) -> Any:
    """Return a function whose signature has a flag for every setting."""
    demo = Annotated[
        bool,
        typer.Option(
            "--demo", help="Serve simulated detectors from a temporary storage, to look at."
        ),
    ]
    flags: dict[str, tuple[Any, bool | None]] = {"demo": (demo, False)}
    for name, field in ServiceSettings.model_fields.items():
        flags[name] = _flag(name, field), None
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in flags.items()
    ]
    function.__signature__ = Signature(parameters)
    function.__annotations__ = {name: kind for name, (kind, _) in flags.items()}
    return function


def _flag(name: str, field: FieldInfo) -> Any:
    """Return the flag of a setting. Values are checked with all others, so they come as text."""
    flag, words = REPEATED.get(name, f"--{name.replace('_', '-')}"), _help(name, field)
    if field.annotation is bool:
        both = flag if field.default is False else f"{flag}/--no-{flag.removeprefix('--')}"
        return Annotated[bool | None, typer.Option(both, help=words, show_default=False)]
    metavar = _metavar(name, field)
    if name in REPEATED:
        words = f"{words} Repeat the flag for several."
        return Annotated[list[str] | None, typer.Option(flag, metavar=metavar, help=words)]
    return Annotated[str | None, typer.Option(flag, metavar=metavar, help=words)]


def _help(name: str, field: FieldInfo) -> str:
    words = field.description or name.replace("_", " ")
    default = field.get_default(call_default_factory=True)
    untold = default is None or isinstance(default, bool | tuple)
    sentence = f"{words[0].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
    return sentence if untold else f"{sentence} By default {default}."


def _metavar(name: str, field: FieldInfo) -> str:
    """Return what stands for a value in the help."""
    if name in METAVARS:
        return METAVARS[name]
    choices = _choices(field.annotation)
    if choices:
        return "|".join(choices)
    if field.annotation in (int, float):
        return "N" if field.annotation is int else "NUMBER"
    return "SIZE" if any(hasattr(each, "pattern") for each in field.metadata) else "TIME"


def _choices(annotation: Any) -> list[str]:
    """Return the values that a setting can have, if they are listed."""
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]
