"""Rows as clients send them, before they are compared with stored readings."""

from __future__ import annotations

import msgspec


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A received reading: its line counted from one, sensor, time in microseconds, and value."""

    line: int
    sensor: str
    time: int
    value: float | None


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A refused row: its line, the code of the problem, the reason, and the wrong column."""

    line: int
    code: str
    detail: str
    column: str | None = None


class Batch(msgspec.Struct, frozen=True):
    """The rows of one request: valid rows, refused rows, and the number of skipped fields.

    Strings and booleans of the line protocol are not readings; they are skipped.
    """

    rows: list[Row]
    refused: list[Refusal]
    skipped: int = 0
