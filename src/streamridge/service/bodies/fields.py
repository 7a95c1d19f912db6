"""The fields of a reading, each judged by itself: sensor, value, and that there is nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from streamridge.errors import LONGEST, listed, shown
from streamridge.service.rows import LARGEST, NAME

FIELDS = ("sensor", "time", "value")
# `$` alone would let a line break pass at the end of a name; the whole text must match.
is_name = re.compile(NAME).fullmatch


class FieldError(Exception):
    """A reason to refuse one row: its code in the catalogue, the detail, and the field at fault."""

    def __init__(self, code: str, detail: str, column: str | None = None) -> None:
        super().__init__(detail)
        self.code, self.detail, self.column = code, detail, column


def brief(value: object) -> str:
    """Return a value as messages show it, at once even if it is a text of megabytes."""
    return shown(value[: LONGEST + 1] if isinstance(value, str) else value)


def name_of(sensor: object) -> str:
    """Return the name of a sensor if it is one.

    Examples
    --------
    >>> name_of("A2:ramp-7")
    'A2:ramp-7'
    """
    if isinstance(sensor, str) and is_name(sensor):
        return sensor
    raise FieldError(
        "sr-bad-name",
        "sensor must be up to 64 letters, digits and . _ : - that begin with a letter or digit, "
        f"got {brief(sensor)}.",
        "sensor",
    )


def number_of(value: object) -> float | None:
    """Return a value as a number if it is finite and not too large; None stays None.

    Examples
    --------
    >>> number_of(-0.0), number_of(None)
    (0.0, None)
    """
    if value is None:
        return None
    # A truth value is an int to Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise FieldError(
            "sr-not-a-number",
            f"value must be a finite number or null, got {brief(value)}.",
            "value",
        )
    if abs(value) > LARGEST:
        raise FieldError(
            "sr-out-of-range", f"value must be within {LARGEST:g} of zero, got {value!r}.", "value"
        )
    return value + 0.0  # -0.0 becomes 0.0


def require_fields(names: Sequence[str]) -> None:
    """Refuse a row that does not have just the fields of a reading, each once."""
    if sorted(names) != sorted(FIELDS):
        raise FieldError(
            "sr-bad-row",
            f"a row must have sensor, time and value, each once and nothing else, "
            f"got {listed(names)}.",
        )
