"""`streamridge serve`: flags generated from the settings, and the messages at its start."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from inspect import Parameter, Signature
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from rich.text import Text

from streamridge.errors import InvalidInputError
from streamridge_service.cli.console import Messages
from streamridge_service.cli.database import CONFIGURATION, without_password
from streamridge_service.plan import SECOND
from streamridge_service.settings import ServiceSettings, settings_of
from streamridge_service.workers.processes import prepare_start

# A flag that may be repeated is named in the singular.
REPEATED = {"allowed_hosts": "--allowed-host"}
# Placeholders of values in the help, where the type is not clear enough.
METAVARS = {
    "database": "FILE|URL",
    "host": "ADDRESS",
    "backup_folder": "FOLDER",
    "allowed_hosts": "NAME",
    "trusted_proxies": "ADDRESS,...",
    "max_connections": "N",
    "max_connections_per_address": "N",
    "alert_url": "URL",
    "alert_command": "COMMAND",
}


def _serve(*, demo: bool = False, **given: Any) -> None:
    """Receive readings over HTTP, learn from them, and serve the next forecasts.

    It needs no configuration, and by default only this machine can reach it. Every setting can
    also come from the environment, such as STREAMRIDGE_PORT. All errors of the configuration are
    reported before the port opens. Exit codes: 0 success, 64 usage, 65 database of a newer
    version, 74 storage failed, 75 already served, 78 configuration.

    Example: streamridge serve --port 8321 --database roads.db
    """
    settings = _settings({name: value for name, value in given.items() if value is not None})
    if demo:
        from streamridge_service.admin.demo import run_demo

        raise typer.Exit(run_demo(settings, Messages().print))
    prepare_start()
    from streamridge_service.http.server import run

    gc.freeze()  # modules stay: neither collections nor the end of the process look at them
    console = Messages()
    raise typer.Exit(run(settings, print_line=lambda line: _announce(line, settings, console)))


def _settings(given: dict[str, Any]) -> ServiceSettings:
    """Return the settings; print all of their errors and exit if there are any."""
    try:
        return settings_of(**given)
    except InvalidInputError as error:
        for line in str(error.args[0]).splitlines():
            Messages().print(f"error: {line}")
        raise typer.Exit(CONFIGURATION) from None


def _announce(line: str, settings: ServiceSettings, console: Messages) -> None:
    """Print the address, the database, and a command that sends a first reading.

    Standard error has nothing but the log unless it is a terminal. The address then goes to
    standard output.
    """
    if not console.is_terminal:
        typer.echo(line)
        return
    address = line.rpartition(" ")[2]
    console.print(Text.assemble(("streamridge", "bold"), " serves ", (address, "bold cyan")))
    database = settings.database
    where = without_password(database) if "://" in database else str(Path(database).absolute())
    console.print(f"Database: {where}. Ctrl-C stops it.")
    console.print("Send a reading:")
    console.print(f"  {first_reading(address, settings.plan.step)}")


def first_reading(address: str, step: int) -> str:
    """Return the command that sends a reading of the current step."""
    seconds = step // SECOND
    moment = int(datetime.now(UTC).timestamp()) // seconds * seconds
    time = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f'{{"sensor": "ramp-7", "time": "{time}", "value": 42}}'
    return f"curl {address}/v1/readings --json {quote(body)}"


def serve_command() -> Any:
    """Return the command function, whose signature has a flag for every setting."""
    demo = Annotated[
        bool,
        typer.Option("--demo", help="Serve simulated detectors from a temporary database."),
    ]
    flags: dict[str, tuple[Any, bool | None]] = {"demo": (demo, False)}
    for name, field in ServiceSettings.model_fields.items():
        flags[name] = _flag(name, field), None
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in flags.items()
    ]

    def serve(**given: Any) -> None:
        _serve(**given)

    serve.__doc__ = _serve.__doc__
    serve.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    serve.__annotations__ = {name: kind for name, (kind, _) in flags.items()}
    return serve


def _flag(name: str, field: FieldInfo) -> Any:
    """Return the flag of a setting. Its value stays text, which the settings validate."""
    flag, words = REPEATED.get(name, f"--{name.replace('_', '-')}"), _help(name, field)
    if field.annotation is bool:
        both = flag if field.default is False else f"{flag}/--no-{flag.removeprefix('--')}"
        return Annotated[bool | None, typer.Option(both, help=words, show_default=False)]
    metavar = _metavar(name, field)
    if name in REPEATED:
        words = f"{words} Repeat the flag for several names."
        return Annotated[list[str] | None, typer.Option(flag, metavar=metavar, help=words)]
    return Annotated[str | None, typer.Option(flag, metavar=metavar, help=words)]


def _help(name: str, field: FieldInfo) -> str:
    words = field.description or name.replace("_", " ")
    default = field.get_default(call_default_factory=True)
    hidden = default is None or isinstance(default, bool | tuple)
    sentence = f"{words[0].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
    return sentence if hidden else f"{sentence}  [default: {default}]"


def _metavar(name: str, field: FieldInfo) -> str:
    """Return the placeholder of a value in the help."""
    if name in METAVARS:
        return METAVARS[name]
    choices = _choices(field.annotation)
    if choices:
        return "|".join(choices)
    if field.annotation in (int, int | None, float):
        return "NUMBER" if field.annotation is float else "N"
    return "SIZE" if any(hasattr(each, "pattern") for each in field.metadata) else "TIME"


def _choices(annotation: Any) -> list[str]:
    """Return the possible values of a setting, if there is a list of them."""
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]
