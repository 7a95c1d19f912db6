"""The problems of the service: one format, one catalogue of codes.

A problem states what is wrong and how to fix it; its status tells whether a retry may help. Codes
are stable, so that programs can rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamridge.errors import StreamRidgeError
from streamridge_service.limits import LARGEST, MOST_BYTES, MOST_ROWS


@dataclass(frozen=True)
class Code:
    """An entry of the catalogue: status, title and remedy."""

    status: int
    title: str
    remedy: str


CATALOGUE: dict[str, Code] = {
    # One row.
    "sr-not-a-number": Code(
        422,
        "A value is not a finite number",
        "Send a JSON number, or null for a missing measurement.",
    ),
    "sr-out-of-range": Code(
        422,
        "A value is too large",
        f"Use a larger unit: values must be between -{LARGEST:g} and {LARGEST:g}.",
    ),
    "sr-bad-time": Code(
        422, "A time cannot be read", "Send ISO 8601 such as 2026-06-13T08:15:00+02:00."
    ),
    "sr-no-offset": Code(
        422, "A time has no offset from UTC", "Add Z or an offset such as +02:00 to every time."
    ),
    "sr-future": Code(
        422, "A time is more than two days ahead", "Check the clock of the sender, and send again."
    ),
    "sr-conflict": Code(
        422,
        "There is another value for this time",
        "The first value stays. Send the new value with ?on_conflict=replace to replace it.",
    ),
    "sr-off-grid": Code(
        422,
        "A time lies between two steps",
        "Round times to the step, or declare the sensor with a rule: sum, mean or last.",
    ),
    "sr-bad-name": Code(
        422,
        "A sensor's name is not allowed",
        "Use up to 64 letters, digits and . _ : - and begin with a letter or digit.",
    ),
    "sr-bad-row": Code(
        422, "A row does not have the fields of a reading", "Send only sensor, time and value."
    ),
    "sr-archived": Code(
        410, "The sensor was archived", "Declare it again with PUT to send readings."
    ),
    "sr-too-many-sensors": Code(
        429, "There are too many sensors", "Raise --max-sensors, or archive unused sensors."
    ),
    "sr-refused-rows": Code(
        422,
        "Some rows were refused",
        "Correct the listed rows. The other rows are stored, unless ?atomic=true.",
    ),
    "sr-partial-write": Code(
        400, "Some points were not written", "Correct the line in the detail. The rest is stored."
    ),
    # A whole request.
    "sr-unreadable": Code(
        400, "The body cannot be parsed", "Send the format that the Content-Type names."
    ),
    "sr-unsupported-type": Code(
        415,
        "The Content-Type is not supported",
        "Send application/json, application/x-ndjson or text/csv, plain or compressed with gzip or "
        "zstd. Send other files with `streamridge feed`.",
    ),
    "sr-not-acceptable": Code(
        406, "The requested type is not available", "Accept one of the listed types."
    ),
    "sr-too-large": Code(
        413,
        "The body is too large",
        f"Send at most {MOST_BYTES // 1_000_000} MB and {MOST_ROWS:,} rows.",
    ),
    "sr-slow-body": Code(408, "The body was too slow", "Send it faster, or in smaller parts."),
    "sr-large-head": Code(
        431, "The headers are too large", "Send a shorter address, and fewer or shorter headers."
    ),
    "sr-slow-head": Code(408, "The headers were too slow", "Send them at once."),
    "sr-unsupported-query": Code(
        400, "The query is not supported", "Read data by the routes under /v1."
    ),
    "sr-bad-parameter": Code(422, "A parameter is wrong", "See the parameters in /docs."),
    "sr-bad-field": Code(422, "A field of the body is wrong", "See the fields in /docs."),
    "sr-no-token": Code(
        401, "The token is missing or invalid", "Send 'Authorization: Bearer <token>'."
    ),
    "sr-forbidden": Code(
        403, "The token lacks a scope", "Use a token with the scope that the detail names."
    ),
    "sr-cross-site": Code(
        403, "Another site's page must not change anything", "Send the request from its own page."
    ),
    "sr-bad-host": Code(
        421, "The host name is not allowed", "Add it with --allowed-host, or use another."
    ),
    "sr-rate-limited": Code(
        429, "There were too many requests", "Wait as long as Retry-After says."
    ),
    "sr-too-many-connections": Code(
        503, "There are too many connections", "Close some, or raise --max-connections."
    ),
    "sr-too-many-streams": Code(
        503, "There are too many event streams", "Close some, or poll instead."
    ),
    "sr-not-found": Code(404, "The page does not exist", "See /openapi.json for all routes."),
    "sr-unknown-sensor": Code(404, "The sensor does not exist", "See /v1/sensors for all sensors."),
    "sr-unknown-token": Code(404, "The token does not exist", "See /v1/tokens for all tokens."),
    "sr-method": Code(405, "The method is not allowed here", "See /openapi.json."),
    "sr-no-model": Code(
        409, "The sensor has no model yet", "Wait until it has readings of about three days."
    ),
    "sr-conflicting-declaration": Code(
        409, "The declaration contradicts another", "Change one of them."
    ),
    "sr-unknown-hyperparameter": Code(
        422,
        "The hyperparameter or its value is wrong",
        "See /v1/sensors/{sensor}/tuning for names and limits.",
    ),
    "sr-sensor-failed": Code(
        503,
        "The sensor's data cannot be processed",
        "The request is stored, and takes effect once the sensor is processed again.",
    ),
    # The service.
    "sr-starting": Code(503, "The service is starting", "Try again in a few seconds."),
    "sr-stopping": Code(503, "The service is stopping", "Try again when it runs again."),
    "sr-busy": Code(503, "The queue is full", "Try again after Retry-After seconds."),
    "sr-storage-away": Code(
        503, "The database cannot be reached", "Send it again: duplicates are recognized."
    ),
    "sr-storage-failed": Code(503, "A write failed", "The service must be restarted."),
    "sr-storage-gone": Code(
        503,
        "A file of the database was deleted or replaced",
        "Put it back, or restore a backup. Then start the service again.",
    ),
    "sr-disk-full": Code(
        507, "The disk is full; nothing was stored", "Free disk space, then send it again."
    ),
    "sr-internal": Code(500, "The service has a bug", "Report it with the id of the request."),
}

# Statuses after which a retry may help, with the seconds to wait.
RETRY_AFTER = {408: 1, 429: 10, 503: 5, 507: 30}


class Problem(StreamRidgeError):  # noqa: N818, the word of RFC 9457
    """The refusal of a whole request, with its code in the catalogue.

    `more` are further members of the answer.
    """

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.more = code, detail, more

    @property
    def status(self) -> int:
        """Return the status of the answer."""
        return CATALOGUE[self.code].status
