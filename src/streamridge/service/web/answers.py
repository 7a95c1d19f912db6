"""Answers: JSON where all is well, and one shape for every refusal."""

from __future__ import annotations

import msgspec
import structlog
from litestar import Response
from litestar.exceptions import HTTPException

from streamridge.service.ledger.base import (
    DiskFullError,
    StorageAwayError,
    StorageError,
    StorageFailedError,
)
from streamridge.service.problems import RETRY_AFTER, Problem
from streamridge.service.web.context import Asked

PROBLEM = "application/problem+json"
# What a refusal of the framework is called; whatever else it refuses cannot be read.
FRAMEWORK = {404: "sr-not-found", 405: "sr-method", 413: "sr-too-large"}
STORAGE = {
    DiskFullError: "sr-disk-full",
    StorageAwayError: "sr-storage-away",
    StorageFailedError: "sr-storage-failed",
}

log = structlog.get_logger("streamridge.service.web")


def json_answer(
    value: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response[bytes]:
    """Return a value as JSON."""
    return Response(
        msgspec.json.encode(value),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )


def empty_answer() -> Response[None]:
    """Return the answer that there is nothing to tell."""
    return Response(None, status_code=204)


def problem_headers(problem: Problem) -> dict[str, str]:
    """Return the headers that a refusal needs."""
    headers = {}
    if problem.status in RETRY_AFTER:
        headers["Retry-After"] = str(RETRY_AFTER[problem.status])
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status == 408:
        headers["Connection"] = "close"  # whoever stalls does not get another try on this one
    return headers


def problem_answer(problem: Problem, headers: dict[str, str] | None = None) -> Response[bytes]:
    """Return a refusal, as RFC 9457 shapes it."""
    return Response(
        msgspec.json.encode(problem.members()),
        status_code=problem.status,
        media_type=PROBLEM,
        headers=problem_headers(problem) | (headers or {}),
    )


def answer_to_error(request: Asked, error: Exception) -> Response[bytes]:
    """Return the refusal that an error of a handler, or of the framework, stands for."""
    if isinstance(error, Problem):
        return problem_answer(error)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _answer_of_framework(error)
    if isinstance(error, StorageError):
        return problem_answer(_problem_of_storage(error))
    return problem_answer(internal(request.scope["state"].get("request_id", ""), error))


def internal(request_id: str, error: Exception) -> Problem:
    """Log an error that nobody expected, and return what is told of it: where to find it."""
    log.error("a request failed", request_id=request_id, exc_info=error)
    detail = "Something went wrong that should not; the log of the service tells what."
    return Problem("sr-internal", detail, request=request_id)


def _answer_of_framework(error: HTTPException) -> Response[bytes]:
    code = FRAMEWORK.get(error.status_code, "sr-unreadable")
    words = {"sr-not-found": "There is nothing at this path.", "sr-method": "Use another method."}
    problem = Problem(code, words.get(code, "The request cannot be read."))
    methods = [each for each in (error.headers or {}).get("allow", "").split(", ") if each]
    allowed = ", ".join(each for each in methods if each != "OPTIONS")
    return problem_answer(problem, {"Allow": allowed} if methods else None)


def _problem_of_storage(error: StorageError) -> Problem:
    code = next((code for kind, code in STORAGE.items() if isinstance(error, kind)), None)
    log.error("the storage refuses to be read", code=code, reason=str(error))
    return Problem(code or "sr-storage-away", "The storage cannot be read now.")
