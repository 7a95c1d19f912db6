"""Tokens: created once, shown once, and stored only as a digest."""

from __future__ import annotations

from asyncio import Task, create_task
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streamridge.errors import InvalidInputError
from streamridge_service.ledger.errors import StorageError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import Token
from streamridge_service.logs import TOKEN_PREFIX
from streamridge_service.service.answers import Answer, AnyTime, Time, iso, iso_or_none

SCOPES = ("read", "write", "admin")
BYTES = 32
MAX_NAME = 100
# Seconds after which the cache is refreshed, and after which a request waits for the refresh.
REFRESH_AFTER, MAX_AGE = 0.4, 0.8


class TokenItem(Answer, frozen=True):
    """A token without its secret text."""

    id: Annotated[int, Meta(examples=[3])]
    name: Annotated[str, Meta(examples=["telegraf"])]
    scopes: Annotated[list[str], Meta(examples=[["write"]])]
    created: Time
    expires: AnyTime | None
    revoked: AnyTime | None
    valid: bool


def digest_of(text: str) -> bytes:
    """Return the digest of a token, which is all that is stored of its text.

    A token has 256 random bits, so a fast digest is as hard to invert as a slow one.
    """
    return sha256(text.encode(errors="surrogatepass")).digest()


def create(
    ledger: Ledger, name: str, scopes: Sequence[str], *, now: int, expires: int | None = None
) -> tuple[Token, str]:
    """Store a new token; return it with its text, which cannot be recovered later.

    The scope "admin" allows everything. Times are in microseconds.
    """
    _validate(name, scopes, now, expires)
    text = TOKEN_PREFIX + token_urlsafe(BYTES)
    number = max((token.id for token in ledger.tokens()), default=0) + 1
    token = Token(number, name, digest_of(text), tuple(dict.fromkeys(scopes)), now, expires)
    ledger.put_tokens([token])
    return token, text


def revoke(ledger: Ledger, number: int, *, now: int) -> Token:
    """Revoke a token from now on; a token that was revoked before does not change."""
    token = next((each for each in ledger.tokens() if each.id == number), None)
    if token is None:
        raise InvalidInputError(f"token must be the number of a known token, got {number}.")
    if token.revoked is None:
        token = msgspec.structs.replace(token, revoked=now)
        ledger.put_tokens([token])
    return token


def is_valid(token: Token, now: int) -> bool:
    """Return whether a token is neither revoked nor expired."""
    return token.revoked is None and (token.expires is None or now < token.expires)


def token_item(token: Token, now: int) -> TokenItem:
    """Return the public part of a token."""
    return TokenItem(
        token.id,
        token.name,
        list(token.scopes),
        iso(token.created),
        iso_or_none(token.expires),
        iso_or_none(token.revoked),
        is_valid(token, now),
    )


def token_dict(token: Token, now: int) -> dict[str, Any]:
    """Return the public part of a token as plain values."""
    return msgspec.structs.asdict(token_item(token, now))


def _validate(name: str, scopes: Sequence[str], now: int, expires: int | None) -> None:
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidInputError(
            f"name must be up to {MAX_NAME} printable characters, got {name[:200]!r}."
        )
    if not scopes or not set(scopes) <= set(SCOPES):
        raise InvalidInputError(f"scopes must be some of {', '.join(SCOPES)}, got {scopes!r}.")
    if expires is not None and expires <= now:
        raise InvalidInputError("expires must be in the future, got a time in the past.")


class TokenCache:
    """The tokens of a service, less than a second old.

    Requests do not wait for a refresh, except for the first one after a pause.
    """

    def __init__(self, tokens: Iterable[Token], load: Callable[[], Awaitable[list[Token]]]) -> None:
        self._load = load
        self._task: Task[None] | None = None
        self._set(tokens)

    @property
    def is_empty(self) -> bool:
        """Return whether no token was ever created; revoked tokens count as well."""
        return not self._tokens

    async def ensure_fresh(self) -> None:
        """Refresh the cache if it is old: a token revoked a second ago must be refused."""
        age = monotonic() - self._loaded_at
        if age < REFRESH_AFTER:
            return
        if self._task is None or self._task.done():
            self._task = create_task(self.refresh())
        if age >= MAX_AGE:
            await self._task

    async def refresh(self) -> None:
        """Read the tokens again; while the storage is unreachable, known tokens stay valid."""
        try:
            self._set(await self._load())
        except StorageError:
            self._loaded_at = monotonic()

    def find(self, text: str, now: int) -> Token | None:
        """Return the token with this text if it is valid."""
        digest = digest_of(text)
        token = self._tokens.get(digest)
        if token is None or not compare_digest(token.digest, digest):
            return None
        return token if is_valid(token, now) else None

    def _set(self, tokens: Iterable[Token]) -> None:
        self._tokens = {token.digest: token for token in tokens}
        self._loaded_at = monotonic()
