"""The types of the reading options as keyword arguments, for editors and type checkers.

A test compares them with the fields of `ReadingOptions`. None stands for the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from streamridge.files.reading_options import DecimalMark, Gap, Layout, Missing
from streamridge.series.lengths import Length
from streamridge.series.series import Aggregate
from streamridge.series.zones import Fold


class HistoryArguments(TypedDict, total=False):
    """The reading options that are no settings of a forecaster."""

    from_: object
    to: object
    aggregate: Aggregate | None
    fold: Fold | None
    time: str | None
    value: str | None
    id: str | None
    start_time: object
    skip_lines: int | None
    layout: Layout | None
    gap: Gap | None
    date_format: str | None
    decimal: DecimalMark | None
    missing: Missing
    encoding: str | None
    largest: int | str | None


class ReadingArguments(HistoryArguments, total=False):
    """All reading options, and `sensor` for a single one; see `ReadingOptions`."""

    sensor: str | None
    sensors: Sequence[str] | str | None
    step: str | Length | Mapping[str, str | Length] | None
    tz: str | None
    extras: tuple[str, ...] | None
    arrival_order: bool | None
