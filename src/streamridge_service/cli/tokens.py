"""`streamridge token`: access tokens of a service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from streamridge_service.cli.console import Json, Messages, print_table
from streamridge_service.cli.database import DEFAULT, Database, now, open_database, parse_moment


class Scope(StrEnum):
    """The rights of a token."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the running service. STREAMRIDGE_TOKEN must then be a token with the "
        "scope admin, unless there is no token yet.",
    ),
]
AdminToken = Annotated[str | None, typer.Option(envvar="STREAMRIDGE_TOKEN", hidden=True)]


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of its user.")] = "operator",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="Its rights: to read, to write readings, or to do everything. Repeat the flag for "
            "several. By default read."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="When it expires: 90d, or a time in UTC. Never by default."
        ),
    ] = None,
    database: Database = DEFAULT,
    url: Url = None,
    token: AdminToken = None,
    as_json: Json = False,
) -> None:
    """Create a token. It is shown once, and only its digest is stored.

    Once there is a token, every request needs one. While the service runs, pass its --url.

    Example: streamridge token create telegraf --scope write --expires 90d
    """
    end = None if expires is None else parse_moment("expires", expires, ahead=True)
    scopes = [each.value for each in scope or [Scope.READ]]
    created = _created(database, url, token, name, scopes, end)
    if as_json:
        typer.echo(json.dumps(created))
        return
    typer.echo(created["token"])
    until = "never expires" if created["expires"] is None else f"expires {created['expires']}"
    Messages().print(
        f"Token {created['id']} of {created['name']} ({', '.join(created['scopes'])}), {until}. "
        "Store it now: it is not shown again. Send it as: Authorization: Bearer <token>"
    )


def show(
    database: Database = DEFAULT, url: Url = None, token: AdminToken = None, as_json: Json = False
) -> None:
    """List tokens, without their secret texts.

    Example: streamridge token list --database roads.db
    """
    if url is not None:
        items: list[dict[str, Any]] = _request(url, token, "GET", "/v1/tokens")["items"]
    else:
        with open_database(database) as ledger:
            from streamridge_service.http.tokens import token_dict

            items = [token_dict(each, now()) for each in ledger.tokens()]
    if as_json:
        for item in items:
            typer.echo(json.dumps(item))
    elif items:
        _print(items)
    else:
        typer.echo("There are no tokens.")


def revoke(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Its number in `token list`.")],
    database: Database = DEFAULT,
    url: Url = None,
    token: AdminToken = None,
) -> None:
    """Revoke a token; the service refuses it within a second.

    Example: streamridge token revoke 1 --database roads.db
    """
    if url is not None:
        _request(url, token, "DELETE", f"/v1/tokens/{number}")
    else:
        with open_database(database, read_only=False) as ledger:
            from streamridge_service.http import tokens

            tokens.revoke(ledger, number, now=now())
    Messages().print(f"Token {number} is revoked.")


def _created(
    database: str,
    url: str | None,
    token: str | None,
    name: str,
    scopes: Sequence[str],
    expires: int | None,
) -> dict[str, Any]:
    """Create a token through the running service, or in its database."""
    if url is not None:
        from streamridge_service.client.feed import iso

        body = {"name": name, "scopes": scopes}
        body |= {} if expires is None else {"expires": iso(expires)}
        created: dict[str, Any] = _request(url, token, "POST", "/v1/tokens", body)
        return created
    with open_database(database, read_only=False, create=True) as ledger:
        from streamridge_service.http import tokens

        stored, text = tokens.create(ledger, name, scopes, now=now(), expires=expires)
        return {**tokens.token_dict(stored, now()), "token": text}


def _request(url: str, token: str | None, method: str, path: str, body: Any = None) -> Any:
    """Return the answer of the service to one request, without retries."""
    from streamridge_service.client.http_client import Client, RetryPolicy

    content = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content_Type": "application/json"}
    with Client(url, token, RetryPolicy(0.0)) as client:
        return client.request(method, path, content, **headers).json


def _print(items: Sequence[dict[str, Any]]) -> None:
    print_table(
        {
            "number": [str(item["id"]) for item in items],
            "name": [item["name"] for item in items],
            "scopes": [", ".join(item["scopes"]) for item in items],
            "state": [_state(item) for item in items],
            "expires": [item["expires"] or "never" for item in items],
            "created": [item["created"] for item in items],
        }
    )


def _state(item: dict[str, Any]) -> str:
    if item["revoked"] is not None:
        return "revoked"
    return "valid" if item["valid"] else "expired"
