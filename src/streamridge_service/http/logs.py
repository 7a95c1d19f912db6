"""Logs: one line of JSON per event, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from structlog.types import EventDict, Processor

from streamridge_service.http.tokens import PREFIX

# A token anywhere in a text.
TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{8,}}")
MASK = f"{PREFIX}***"


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
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    # Below this level the server logs single connections, which helps nobody.
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
