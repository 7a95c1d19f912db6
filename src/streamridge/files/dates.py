"""Dates out of a text file: one a line."""

from __future__ import annotations

from pathlib import Path

from streamridge.errors import InvalidInputError
from streamridge.series.holidays import parse_date
from streamridge.texts import option


def read_dates(path: Path) -> tuple[str, ...]:
    """Return the dates of a file, at least one; each line holds one, and may end in # and words."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"holidays must be a country's code such as DE, or a text file of dates, "
            f"got {str(path)!r} ({error})."
        ) from None
    written = {number: line.partition("#")[0].strip() for number, line in enumerate(lines, 1)}
    dates = tuple(_date(path, number, text) for number, text in written.items() if text)
    if not dates:
        raise InvalidInputError(
            f"{path} must hold at least one date such as 2024-12-25, got none. "
            f"Leave {option('holidays')} out if there are none."
        )
    return dates


def _date(path: Path, number: int, text: str) -> str:
    try:
        return parse_date(text)
    except InvalidInputError:
        raise InvalidInputError(
            f"{path} line {number}: a holiday must be a date such as 2024-12-25, got {text!r}."
        ) from None
