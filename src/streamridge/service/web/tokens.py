"""Tokens: made once, shown once, and stored as a digest only."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

import msgspec

from streamridge.errors import InvalidInputError
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Token
from streamridge.service.views import iso

SCOPES = ("read", "write", "admin")
# By its first letters a token is known for one, in logs and by scanners of leaked secrets.
PREFIX = "sr_"
BYTES = 32
LONGEST_NAME = 100


def digest_of(text: str) -> bytes:
    """Return what is stored of a token.

    A token has 256 random bits, so a fast digest is as hard to undo as a slow one.
    """
    return sha256(text.encode(errors="surrogatepass")).digest()


def create(
    ledger: Ledger, name: str, scopes: Sequence[str], *, now: int, expires: int | None = None
) -> tuple[Token, str]:
    """Store a new token; return it with the text that lets a client in.

    Nobody can find the text again.

    Parameters
    ----------
    ledger
        Where it is stored.
    name
        Whom it is for.
    scopes
        What it may be used for: "read", "write", or "admin", which is all.
    now, expires
        Times in microseconds; None never expires.
    """
    _require_sound(name, scopes, now, expires)
    text = PREFIX + token_urlsafe(BYTES)
    number = max((token.id for token in ledger.tokens()), default=0) + 1
    token = Token(number, name, digest_of(text), tuple(dict.fromkeys(scopes)), now, expires)
    ledger.put_tokens([token])
    return token, text


def revoke(ledger: Ledger, number: int, *, now: int) -> Token:
    """Let a token in no more, from now on; one that was revoked stays so."""
    token = next((each for each in ledger.tokens() if each.id == number), None)
    if token is None:
        raise InvalidInputError(f"token must be the number of one that is known, got {number}.")
    if token.revoked is None:
        token = msgspec.structs.replace(token, revoked=now)
        ledger.put_tokens([token])
    return token


def is_valid(token: Token, now: int) -> bool:
    """Return whether a token lets its holder in."""
    return token.revoked is None and (token.expires is None or now < token.expires)


def token_item(token: Token, now: int) -> dict[str, Any]:
    """Return what may be told of a token."""
    return {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "created": iso(token.created),
        "expires": iso(token.expires),
        "revoked": iso(token.revoked),
        "valid": is_valid(token, now),
    }


def _require_sound(name: str, scopes: Sequence[str], now: int, expires: int | None) -> None:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise InvalidInputError(
            f"name must be up to {LONGEST_NAME} printable characters, got {name[:200]!r}."
        )
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InvalidInputError(f"scopes must be some of {', '.join(SCOPES)}, got {scopes!r}.")
    if expires is not None and expires <= now:
        raise InvalidInputError("expires must be a moment to come, got one that has passed.")
