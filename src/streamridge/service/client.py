"""A client of a service, which tries again where that helps.

It needs nothing beyond Python's own library, so that readings can be sent from any machine.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlsplit

from streamridge.errors import InvalidInputError, StreamRidgeError, shown

# Answers after which the same request may succeed.
TRY_AGAIN = (408, 429, 503, 507)
# Seconds that an answer may take, and between tries: at first, and at most.
TIMEOUT, FIRST_WAIT, LONGEST_WAIT = 60.0, 0.5, 60.0

Failure = OSError | http.client.HTTPException


class ServiceAwayError(StreamRidgeError):
    """The service could not be reached, or would not take anything, for too long."""


class RefusedError(StreamRidgeError):
    """The service refused a request; to send it again does not help.

    Parameters
    ----------
    answer
        What it said.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.words)
        self.answer = answer


@dataclass(frozen=True)
class Answer:
    """What a service answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        """Return its JSON; an empty object if it is none."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError:
            return {}

    @property
    def words(self) -> str:
        """Return a refusal in words: what was wrong, and what to do."""
        said = self.said if isinstance(self.said, dict) else {}
        parts = [said[key] for key in ("detail", "remedy") if isinstance(said.get(key), str)]
        return " ".join([*parts, f"({said.get('code', 'status')}, {self.status})"])

    @property
    def retry_after(self) -> float:
        """Return for how many seconds the service asks to wait."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() else 0.0


@dataclass(frozen=True)
class Patience:
    """How long to try again, and what is told meanwhile.

    Parameters
    ----------
    seconds
        After so many without success it gives up.
    tell
        Called before each wait, with a reason and the seconds.
    sleep, clock, random
        For tests.
    """

    seconds: float = 600.0
    tell: Callable[[str, float], None] = lambda reason, seconds: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)

    def wait(self, tries: int, least: float) -> float:
        """Return the seconds to wait after so many tries: twice as many each time, and jittered.

        Clients that were refused at the same moment come back at different ones.
        """
        longest = min(FIRST_WAIT * 2.0**tries, LONGEST_WAIT)
        return max(least, 0.0) + self.random.uniform(0.5, 1.0) * longest


class Client:
    """A connection to a service, opened when it is needed and kept.

    Parameters
    ----------
    url
        Where the service is, such as http://127.0.0.1:8321.
    token
        What lets it in, if the service has tokens.
    patience
        How long to try again.
    """

    def __init__(
        self, url: str, token: str | None = None, patience: Patience | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(
                f"url must be an address such as http://127.0.0.1:8321, got {shown(url)}."
            )
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, _port(url)
        self._path = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {_sound(token)}"}
        self._patience = patience or Patience()
        self._connection: http.client.HTTPConnection | None = None
        self.url = url.rstrip("/")

    def get(self, path: str) -> Any:
        """Return what the service answers to a question."""
        return self.ask("GET", path).said

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Return a good answer; try again while that may help, and raise if it does not."""
        answer = self.insist(method, path, body, **headers)
        if answer.status >= 400:
            raise RefusedError(answer)
        return answer

    def insist(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Return the first answer that is final, good or not.

        An answer that tells what became of each row is final, whatever its status.
        """
        patience, tries = self._patience, 0
        begun = patience.clock()
        while True:
            try:
                answer = self.once(method, path, body, **headers)
                if answer.status not in TRY_AGAIN or "refusals" in answer.said:
                    return answer
                reason, least = answer.words, answer.retry_after
            except (OSError, http.client.HTTPException) as error:
                reason, least = f"{self.url} cannot be reached: {_told(error)}", 0.0
            if patience.clock() - begun > patience.seconds:
                raise ServiceAwayError(f"{reason.rstrip('.')}. Gave up.")
            seconds = patience.wait(tries, least)
            patience.tell(reason, seconds)
            patience.sleep(seconds)
            tries += 1

    def once(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Return the answer to one request; a connection that broke is not used again."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self._connection or self._connected()
        try:
            connection.request(
                method, f"{self._path}{path}", body, headers={**self._headers, **named}
            )
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        plain = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, plain, content)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connected(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        return self._connection


def _sound(token: str) -> str:
    """Return a token that a header can hold, without the line break that a file may end in."""
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable():
        raise InvalidInputError("token must be letters and signs of ASCII, got something else.")
    return text


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        raise InvalidInputError(f"url must have a port up to 65535, got {shown(url)}.") from None


def _told(error: Failure) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
