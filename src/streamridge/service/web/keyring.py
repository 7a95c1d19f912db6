"""The tokens that are let in, as the ledger has them now or had them less than a second ago."""

from __future__ import annotations

from asyncio import Task, create_task
from collections.abc import Awaitable, Callable, Iterable
from hmac import compare_digest
from time import monotonic

from streamridge.service.ledger.base import StorageError
from streamridge.service.ledger.records import Token
from streamridge.service.web.tokens import digest_of, is_valid

# Seconds after which tokens are looked up again, and for which no request waits for that.
RENEW, MOST_AGE = 0.4, 0.8


class Keyring:
    """The tokens of a service.

    Requests do not wait while it is renewed, but for the first one after a rest.

    Parameters
    ----------
    tokens
        Those that are known.
    renewed
        Function that looks them up.
    """

    def __init__(
        self, tokens: Iterable[Token], renewed: Callable[[], Awaitable[list[Token]]]
    ) -> None:
        self._renewed = renewed
        self._task: Task[None] | None = None
        self._take(tokens)

    @property
    def is_empty(self) -> bool:
        """Return whether there never was a token; revoking the last one opens nothing."""
        return not self._tokens

    async def fresh(self) -> None:
        """See to it that a token that was revoked a second ago is known to be."""
        age = monotonic() - self._looked
        if age < RENEW:
            return
        if self._task is None or self._task.done():
            self._task = create_task(self.renew())
        if age >= MOST_AGE:
            await self._task

    async def renew(self) -> None:
        """Look tokens up again; while the storage is away, those known stay in force."""
        try:
            self._take(await self._renewed())
        except StorageError:
            self._looked = monotonic()

    def holder(self, text: str, now: int) -> Token | None:
        """Return the token of a text, if it lets its holder in."""
        digest = digest_of(text)
        token = self._tokens.get(digest)
        if token is None or not compare_digest(token.digest, digest):
            return None
        return token if is_valid(token, now) else None

    def _take(self, tokens: Iterable[Token]) -> None:
        self._tokens = {token.digest: token for token in tokens}
        self._looked = monotonic()
