"""Logs: one line of JSON per event, without secrets; repeated events are counted instead.

Everything that a process would print on standard error goes through here: events of the service and
of libraries, warnings of Python, and errors that nothing has caught.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, TextIO

import structlog
from structlog.types import EventDict, Processor

# The first characters of a token, by which logs and scanners for leaked secrets recognize one.
TOKEN_PREFIX = "sr_"
# A token anywhere in a text.
TOKEN = re.compile(rf"{TOKEN_PREFIX}[A-Za-z0-9_-]{{8,}}")
MASK = f"{TOKEN_PREFIX}***"
# Similar lines that are written in this many seconds; further ones are only counted.
MOST_SIMILAR, INTERVAL = 20, 10.0
# Kinds of lines that are counted separately.
MOST_KINDS = 500

log = structlog.get_logger("streamridge_service")


def masked(value: Any) -> Any:
    """Return a value with all tokens masked.

    Examples
    --------
    >>> masked({"header": "Bearer sr_abcdefghijkl"})
    {'header': 'Bearer sr_***'}
    """
    if isinstance(value, str):
        return TOKEN.sub(MASK, value)
    if isinstance(value, dict):
        return {masked(key): masked(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [masked(each) for each in value]
    return value


def _mask(_: Any, __: str, event: MutableMapping[str, Any]) -> EventDict:
    return {key: masked(value) for key, value in event.items()}


class RepeatLimit:
    """Counts similar lines; only the first of an interval are written.

    Examples
    --------
    >>> limit = RepeatLimit(most=2, clock=lambda: 0.0)
    >>> [limit.admits("refused") for _ in range(5)]
    [True, True, False, False, False]
    >>> limit.left_out(now=INTERVAL)
    {'refused': 3}
    """

    def __init__(self, most: int = MOST_SIMILAR, clock: Callable[[], float] = monotonic) -> None:
        self._most, self._clock = most, clock
        self._lock = Lock()  # many threads log
        self._begun: dict[Hashable, float] = {}
        self._counts: dict[Hashable, int] = {}

    def admits(self, kind: Hashable) -> bool:
        """Count a line of a kind; return whether it is to be written."""
        with self._lock:
            if kind not in self._counts and len(self._counts) >= MOST_KINDS:
                kind = "other"
            self._begun.setdefault(kind, self._clock())
            self._counts[kind] = self._counts.get(kind, 0) + 1
            return self._counts[kind] <= self._most

    def left_out(self, now: float | None = None) -> dict[Hashable, int]:
        """End the intervals that are over; return how many lines of each kind they left out."""
        now = self._clock() if now is None else now
        with self._lock:
            over = [kind for kind, begun in self._begun.items() if now - begun >= INTERVAL]
            for kind in over:
                del self._begun[kind]
            counts = {kind: self._counts.pop(kind) - self._most for kind in over}
        return {kind: count for kind, count in counts.items() if count > 0}


_limit = RepeatLimit()


def _drop_repeated(_: Any, level: str, event: MutableMapping[str, Any]) -> EventDict:
    """Drop an event of which there were too many."""
    kind = event.get("event"), level, event.get("status")
    if level != "debug" and not _limit.admits(kind):
        raise structlog.DropEvent
    return event


def _is_admitted(record: logging.LogRecord) -> bool:
    """Return whether a line of a library is written; its text may end with details."""
    return _limit.admits((str(record.msg)[:40], record.levelname.lower(), None))


def report_left_out() -> None:
    """Log how many lines were left out in the intervals that are over."""
    for kind, count in _limit.left_out().items():
        event, level, status = kind if isinstance(kind, tuple) else (kind, "any", None)
        more = {} if status is None else {"status": status}
        log.warning("similar lines were left out", of=event, of_level=level, count=count, **more)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Write every log event of a level, or above it, as a line of JSON."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _mask,
    ]
    ending: list[Processor] = [structlog.processors.JSONRenderer(default=str)]
    stream = stream or sys.stderr
    structlog.configure(
        processors=[_drop_repeated, *shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    handler = logging.StreamHandler(stream)
    handler.addFilter(_is_admitted)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    # Below this level the server logs single connections, which helps nobody.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


@contextmanager
def everything_logged() -> Iterator[None]:
    """Log warnings of Python, and errors that nothing has caught, within this block.

    An error that ends the block exits the process, with code 1.
    """
    before = threading.excepthook, sys.unraisablehook
    logging.captureWarnings(True)
    threading.excepthook = lambda each: log.error(
        "a thread has failed",
        thread=each.thread.name if each.thread else None,
        exc_info=(each.exc_type, each.exc_value, each.exc_traceback),
    )
    sys.unraisablehook = lambda each: log.error(
        each.err_msg or "an error was ignored",
        object=repr(each.object),
        exc_info=(each.exc_type, each.exc_value, each.exc_traceback),
    )
    try:
        yield
    except Exception as error:
        log.error("the process has failed", exc_info=error)
        raise SystemExit(1) from None
    finally:
        threading.excepthook, sys.unraisablehook = before
        logging.captureWarnings(False)
