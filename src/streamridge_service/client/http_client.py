"""A client of a service, with retries.

It needs only the standard library, so that any machine can send readings.
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

# Statuses after which the same request may succeed.
RETRY_STATUSES = (408, 429, 503, 507)
# Seconds that a response may take, and between attempts: at first, and at most.
TIMEOUT, FIRST_WAIT, LONGEST_WAIT = 60.0, 0.5, 60.0


class ServiceAwayError(StreamRidgeError):
    """The service could not be reached, or was overloaded, for too long."""


class RefusedError(StreamRidgeError):
    """The service refused a request; a retry does not help."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.message)
        self.response = response


@dataclass(frozen=True)
class Response:
    """A response of a service."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the decoded body; an empty object if it is not JSON."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError:
            return {}

    @property
    def message(self) -> str:
        """Return the text of a problem: the detail, the remedy and the code."""
        content = self.json if isinstance(self.json, dict) else {}
        parts = [content[key] for key in ("detail", "remedy") if isinstance(content.get(key), str)]
        return " ".join([*parts, f"({content.get('code', 'status')}, {self.status})"])

    @property
    def retry_after(self) -> float:
        """Return the seconds that the service asks to wait."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() else 0.0


@dataclass(frozen=True)
class RetryPolicy:
    """How long requests are repeated."""

    seconds: float = 600.0  # time without success after which the client gives up
    # Called before each wait with the reason and the seconds.
    on_wait: Callable[[str, float], None] = lambda reason, seconds: None
    # Replaced by tests.
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)

    def wait(self, attempts: int, least: float) -> float:
        """Return the seconds to wait after a number of attempts: doubled each time, with jitter.

        The jitter spreads clients that were refused at the same moment.
        """
        longest = min(FIRST_WAIT * 2.0**attempts, LONGEST_WAIT)
        return max(least, 0.0) + self.random.uniform(0.5, 1.0) * longest


class Client:
    """A connection to a service, opened when it is needed and reused."""

    def __init__(self, url: str, token: str | None = None, retries: RetryPolicy | None = None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(
                f"url must be an address such as http://127.0.0.1:8321, got {shown(url)}."
            )
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, _port(url)
        self._path = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {_valid(token)}"}
        self._retries = retries or RetryPolicy()
        self._connection: http.client.HTTPConnection | None = None
        self.url = url.rstrip("/")

    def get(self, path: str) -> Any:
        """Return the JSON of a successful GET request."""
        return self.request("GET", path).json

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Response:
        """Return a successful response, after retries if needed; raise if it is refused."""
        response = self.request_until_final(method, path, body, **headers)
        if response.status >= 400:
            raise RefusedError(response)
        return response

    def request_until_final(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Response:
        """Return the first response that a retry cannot improve, successful or not.

        A response that lists refused rows is final, whatever its status.
        """
        retries, attempts = self._retries, 0
        begun = retries.clock()
        while True:
            try:
                response = self.request_once(method, path, body, **headers)
                if response.status not in RETRY_STATUSES or "refusals" in response.json:
                    return response
                reason, least = response.message, response.retry_after
            except (OSError, http.client.HTTPException) as error:
                reason, least = f"{self.url} cannot be reached: {_error_text(error)}", 0.0
            if retries.clock() - begun > retries.seconds:
                raise ServiceAwayError(f"{reason.rstrip('.')}. Gave up.")
            seconds = retries.wait(attempts, least)
            retries.on_wait(reason, seconds)
            retries.sleep(seconds)
            attempts += 1

    def request_once(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Response:
        """Return the response to one request; a broken connection is not reused."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self._connection or self._connect()
        try:
            connection.request(
                method, f"{self._path}{path}", body, headers={**self._headers, **named}
            )
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            self.close()
            raise
        received = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, received, content)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        return self._connection


def _valid(token: str) -> str:
    """Return a token without a line break at its end; raise if a header cannot contain it."""
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable():
        raise InvalidInputError("token must consist of printable ASCII characters, got others.")
    return text


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        raise InvalidInputError(f"url must have a port up to 65535, got {shown(url)}.") from None


def _error_text(error: OSError | http.client.HTTPException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
