"""Parameters that several routes take."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from streamridge.service.problems import Problem
from streamridge.service.rows import NAME
from streamridge.service.web.contracts import Query
from streamridge.service.web.listing import CURSOR
from streamridge.service.web.queries import moment_of
from streamridge.service.web.shapes import State, Time

MOST_ITEMS = 10_000
MOST_NAMED = 100

ONE_NAME = NAME.removeprefix("^").removesuffix("$")
Limit = Annotated[int, Meta(ge=1, le=MOST_ITEMS, description="The most items of one answer.")]
Cursor = Annotated[
    str, Meta(pattern=CURSOR, description="Where the page before ended, as its answer told.")
]
Search = Annotated[
    str, Meta(max_length=100, description="A part of the name or label, in any case.")
]
StateFilter = Annotated[
    State | Literal["archived"], Meta(description="Only sensors in this state.")
]
Names = Annotated[
    str,
    Meta(
        pattern=f"^{ONE_NAME}(,{ONE_NAME}){{0,{MOST_NAMED - 1}}}$",
        description="Names of sensors, with commas between them.",
    ),
]
From = Annotated[Time, Meta(description="The first moment, with its offset from UTC.")]
To = Annotated[Time, Meta(description="The last moment, with its offset from UTC.")]


class Span(Query, frozen=True):
    """A stretch of time."""

    from_: From | UnsetType = field(name="from", default=UNSET)
    to: To | UnsetType = UNSET


def span_of(query: Span, now: int, usual: int) -> tuple[int, int]:
    """Return the first and the last moment of a stretch of time.

    Without an end it goes to `now`; without a beginning it is as long as usual.
    """
    end = now if query.to is UNSET else moment_of(query.to, "to")
    start = end - usual if query.from_ is UNSET else moment_of(query.from_, "from")
    if start > end:
        raise Problem("sr-bad-parameter", "from must not be later than to.")
    return start, end


def require_few(count: int, most: int, what: str) -> None:
    """Refuse a stretch of time that is too long for one answer."""
    if count > most:
        raise Problem(
            "sr-bad-parameter",
            f"from and to must be at most {most:,} {what} apart, got {count:,}. Ask in parts.",
        )


def given(value: str | UnsetType) -> str | None:
    """Return a parameter, or None if it was not given."""
    return None if value is UNSET else str(value)


def parts(value: str | UnsetType) -> frozenset[str]:
    """Return the parts of a parameter that is a list with commas; none if it was not given."""
    return frozenset((given(value) or "").split(",")) - {""}
