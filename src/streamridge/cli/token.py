"""`streamridge token`: who may call a service, and for what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from streamridge.cli.options import Json
from streamridge.cli.storage import DEFAULT, Database, moment, now, opened
from streamridge.cli.tables import Column, fitted
from streamridge.cli.terminal import Messages, columns, is_plain


class Scope(StrEnum):
    """What a token may be used for."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the service, if it runs; then STREAMRIDGE_TOKEN must be a token with the "
        "scope admin, unless there is none yet.",
    ),
]
Key = Annotated[str | None, typer.Option(envvar="STREAMRIDGE_TOKEN", hidden=True)]


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom it is for.")] = "operator",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="What it may be used for: to read, to write readings, or all. Repeat the flag for "
            "several. By default read."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it ends: 90d, or a time in UTC. Never by default."),
    ] = None,
    database: Database = DEFAULT,
    url: Url = None,
    token: Key = None,
    as_json: Json = False,
) -> None:
    """Make a token, which is shown this once and stored as a digest only.

    With the first one, everybody needs one. While the service runs, pass its --url.

    Example: streamridge token create telegraf --scope write --expires 90d
    """
    ends = None if expires is None else moment("expires", expires, ahead=True)
    made = _created(
        database, url, token, name, [each.value for each in scope or [Scope.READ]], ends
    )
    if as_json:
        typer.echo(json.dumps(made))
        return
    typer.echo(made["token"])
    until = "never expires" if made["expires"] is None else f"expires {made['expires']}"
    Messages().print(
        f"Token {made['id']} of {made['name']} ({', '.join(made['scopes'])}), {until}. Keep it: it "
        "is not shown again. Send it as: Authorization: Bearer <token>"
    )


def show(
    database: Database = DEFAULT, url: Url = None, token: Key = None, as_json: Json = False
) -> None:
    """List tokens; what lets their holders in is not known here either.

    Example: streamridge token list --database roads.db
    """
    if url is not None:
        items: list[dict[str, Any]] = _asked(url, token, "GET", "/v1/tokens")["items"]
    else:
        with opened(database) as ledger:
            from streamridge.service.web.tokens import token_item

            items = [token_item(each, now()) for each in ledger.tokens()]
    if as_json:
        for item in items:
            typer.echo(json.dumps(item))
    else:
        typer.echo(_table(items) if items else "There are no tokens.")


def revoke(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="As `token list` tells it.")],
    database: Database = DEFAULT,
    url: Url = None,
    token: Key = None,
) -> None:
    """Revoke a token: within a second it lets nobody in.

    Example: streamridge token revoke 1 --database roads.db
    """
    if url is not None:
        _asked(url, token, "DELETE", f"/v1/tokens/{number}")
    else:
        with opened(database, read_only=False) as ledger:
            from streamridge.service.web import tokens

            tokens.revoke(ledger, number, now=now())
    Messages().print(f"Token {number} lets nobody in any more.")


def _created(
    database: str,
    url: str | None,
    token: str | None,
    name: str,
    scopes: Sequence[str],
    expires: int | None,
) -> dict[str, Any]:
    """Make a token, by the service if it runs, else in its storage."""
    if url is not None:
        from streamridge.service.feeding import iso

        wish = {"name": name, "scopes": scopes}
        wish |= {} if expires is None else {"expires": iso(expires)}
        made: dict[str, Any] = _asked(url, token, "POST", "/v1/tokens", wish)
        return made
    with opened(database, read_only=False, make=True) as ledger:
        from streamridge.service.web import tokens

        stored, text = tokens.create(ledger, name, scopes, now=now(), expires=expires)
        return {**tokens.token_item(stored, now()), "token": text}


def _asked(url: str, token: str | None, method: str, path: str, wish: Any = None) -> Any:
    """Return what the service answers; it is asked once."""
    from streamridge.service.client import Client, Patience

    body = None if wish is None else json.dumps(wish).encode()
    headers = {} if wish is None else {"Content_Type": "application/json"}
    with Client(url, token, Patience(0.0)) as client:
        return client.ask(method, path, body, **headers).said


def _table(items: Sequence[dict[str, Any]]) -> str:
    parts = [
        Column("number", [str(item["id"]) for item in items]),
        Column("name", [item["name"] for item in items], is_name=True),
        Column("scopes", [", ".join(item["scopes"]) for item in items]),
        Column("state", [_state(item) for item in items]),
        Column("expires", [item["expires"] or "never" for item in items]),
        Column("created", [item["created"] for item in items]),
    ]
    mark, rule = ("~", "-") if is_plain() else ("\u2026", "\u2500")
    return fitted(parts, columns(), mark).text(rule)


def _state(item: dict[str, Any]) -> str:
    if item["revoked"] is not None:
        return "revoked"
    return "valid" if item["valid"] else "expired"
