"""Every refusal of the service: one shape, one catalogue of codes.

A refusal says what was wrong, why, and what to do; its status says whether to try again. Codes are
stable, so that programs can rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamridge.errors import StreamRidgeError


@dataclass(frozen=True)
class Code:
    """An entry of the catalogue: its status, what it means, and what to do about it."""

    status: int
    title: str
    remedy: str


CATALOGUE: dict[str, Code] = {
    # One row.
    "sr-not-a-number": Code(
        422, "A value is not a finite number", "Send a JSON number, or null for no measurement."
    ),
    "sr-out-of-range": Code(
        422, "A value is larger than any sensor's", "Send values of at most 1e6 in size."
    ),
    "sr-bad-time": Code(
        422, "A time cannot be read", "Send ISO 8601 such as 2026-06-13T08:15:00+02:00."
    ),
    "sr-no-offset": Code(
        422, "A time has no offset from UTC", "Add Z or an offset such as +02:00 to every time."
    ),
    "sr-future": Code(
        422, "A time is more than two days ahead", "Check the clock of the sender, then send again."
    ),
    "sr-conflict": Code(
        422,
        "There is another value for this time",
        "Nothing, to keep the first; send it with ?on_conflict=replace to replace it.",
    ),
    "sr-off-grid": Code(
        422,
        "A time lies between two steps",
        "Round times to the step, or declare the sensor with a rule: sum, mean or last.",
    ),
    "sr-bad-name": Code(
        422,
        "A sensor's name has characters that are not allowed",
        "Use up to 64 letters, digits and . _ : - and begin with a letter or digit.",
    ),
    "sr-bad-row": Code(
        422, "A row does not have the fields of a reading", "Send sensor, time and value, only."
    ),
    "sr-archived": Code(
        410, "The sensor was archived", "Declare it again with PUT to take its readings."
    ),
    "sr-too-many-sensors": Code(
        429, "There would be too many sensors", "Raise --max-sensors, or archive those not needed."
    ),
    "sr-refused-rows": Code(
        422,
        "Some rows were refused",
        "Mend the rows that are listed. The others are stored, unless ?atomic=true.",
    ),
    # A whole request.
    "sr-unreadable": Code(400, "The body cannot be read", "Send what its Content-Type says."),
    "sr-unsupported-type": Code(
        415,
        "The Content-Type is not supported",
        "Send application/json, application/x-ndjson, text/csv or "
        "application/vnd.apache.parquet, plain or packed by gzip or zstd.",
    ),
    "sr-not-acceptable": Code(
        406, "The type asked for is not offered", "Accept one of the types that are listed."
    ),
    "sr-too-large": Code(413, "The body is too large", "Send at most 32 MB and 200,000 rows."),
    "sr-slow-body": Code(408, "The body stalled", "Send it again, faster, or in smaller parts."),
    "sr-bad-parameter": Code(422, "A parameter has no such value", "See the documentation."),
    "sr-bad-field": Code(
        422, "A field of the body is not what it must be", "See the documentation."
    ),
    "sr-no-token": Code(401, "There is no valid token", "Send 'Authorization: Bearer <token>'."),
    "sr-forbidden": Code(403, "The token lacks the scope", "Use a token with this scope."),
    "sr-bad-host": Code(
        421, "The host is not one of this service", "Add it by --allowed-host, or use another."
    ),
    "sr-rate-limited": Code(429, "There were too many requests", "Wait as Retry-After says."),
    "sr-too-many-streams": Code(
        503, "There are too many event streams", "Close some, or poll instead."
    ),
    "sr-not-found": Code(404, "There is no such page", "See /openapi.json for what there is."),
    "sr-unknown-sensor": Code(404, "There is no such sensor", "See /v1/sensors for those known."),
    "sr-unknown-token": Code(404, "There is no such token", "See /v1/tokens for those known."),
    "sr-method": Code(405, "The method is not allowed here", "See /openapi.json."),
    "sr-no-model": Code(
        409, "The sensor has no model yet", "Wait until it has readings of about three days."
    ),
    "sr-conflicting-declaration": Code(
        409, "The declaration contradicts another", "Change one of the two."
    ),
    "sr-unknown-hyperparameter": Code(
        422, "There is no such hyperparameter, or not this value", "See the sensor's tuning."
    ),
    # The service.
    "sr-starting": Code(503, "The service is starting", "Try again in a few seconds."),
    "sr-stopping": Code(503, "The service is stopping", "Try again when it is back."),
    "sr-busy": Code(503, "The queue is full", "Try again as Retry-After says."),
    "sr-storage-away": Code(
        503, "The database cannot be reached", "Send it again: what was stored is recognized."
    ),
    "sr-storage-failed": Code(503, "A write failed", "The service must be restarted."),
    "sr-disk-full": Code(
        507, "The disk is full; nothing was stored", "Free space; send it again afterwards."
    ),
    "sr-internal": Code(
        500, "There is an error in the service", "Report it with the request's id."
    ),
}

# What is worth another try, after so many seconds.
RETRY_AFTER = {408: 1, 429: 10, 503: 5, 507: 30}


class Problem(StreamRidgeError):  # noqa: N818, the word of RFC 9457
    """A refusal of a whole request, by its code in the catalogue.

    Parameters
    ----------
    code
        Code in the catalogue.
    detail
        What was wrong with this request, in a sentence.
    more
        Further members of the answer.
    """

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.more = code, detail, more

    @property
    def status(self) -> int:
        """Return the status of the answer."""
        return CATALOGUE[self.code].status

    def members(self) -> dict[str, Any]:
        """Return the members of the answer, as RFC 9457 names them."""
        entry = CATALOGUE[self.code]
        return {
            "type": f"/problems#{self.code}",
            "code": self.code,
            "title": entry.title,
            "status": entry.status,
            "detail": self.detail,
            "remedy": entry.remedy,
            "retry": entry.status in RETRY_AFTER,
            **self.more,
        }
