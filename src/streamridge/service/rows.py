"""Rows as clients send them, before anything is known of their sensors."""

from __future__ import annotations

from typing import Any

import msgspec

# The names that sensors may have, and the largest size of a value.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
LARGEST = 1e6
# The most rows of one request, and the most bytes, as sent and unpacked.
MOST_ROWS, MOST_BYTES = 200_000, 32_000_000
# So many refusals are told at most; all are counted.
MOST_REFUSALS = 100


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A reading as it was sent: its line, counted from one, sensor, time in us, and value."""

    line: int
    sensor: str
    time: int
    value: float | None


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that was not taken: where it is, the code in the catalogue, and why."""

    line: int
    code: str
    detail: str
    column: str | None = None

    def members(self) -> dict[str, Any]:
        """Return it as plain values."""
        return msgspec.to_builtins(self)


class Batch(msgspec.Struct, frozen=True):
    """The rows of one request that could be read, and those that could not.

    Texts and truth values of line protocol are no readings: they are counted as skipped.
    """

    rows: list[Row]
    refused: list[Refusal]
    skipped: int = 0
