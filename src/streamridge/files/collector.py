"""The readings of many sensors, collected part by part, and checked for missing-value markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from streamridge.arrays import Vector
from streamridge.errors import InvalidInputError, counted, listed, option, shown
from streamridge.files.calendar_columns import reason_for_no_sensor
from streamridge.files.reading_options import ReadingOptions
from streamridge.series.series import Aggregate, Readings
from streamridge.series.time_format import Offsets, TimeFormat, Unit
from streamridge.series.times import INDEX_END, INDEX_ORIGIN, Times
from streamridge.series.zones import known_zone

T = TypeVar("T")

# Missing-value markers: numbers such as -9999 that programs write where a value is missing.
_NINES = [float("9" * digits) for digits in range(2, 8)]
_TENTHS = [99.9, 999.9, 9999.9, 99.99, 999.99, 9999.99]
_INTEGER_LIMITS = [32767.0, 32768.0, 65535.0, 2147483647.0, 2147483648.0, 4294967295.0]
_CLEAR = {*_NINES, *_TENTHS, *_INTEGER_LIMITS, 6999.0, 7777.0, 8888.0, 1e20, 1e30, 1e36}
LOW = frozenset(-number for number in (*_CLEAR, 1.0, 9.0))
HIGH = frozenset(_CLEAR - {99.0, 99.9, 99.99})
# -1 and -9 may be values. One of them alone is accepted.
SMALL = (-1.0, -9.0)


@dataclass
class _Parts:
    """The arrays of one sensor, one of each kind for each part of the sources."""

    aggregate: Aggregate | None
    times: list[Times] = field(default_factory=list)
    offsets: list[Offsets] = field(default_factory=list)
    values: list[Vector] = field(default_factory=list)
    extras: list[Sequence[Vector]] = field(default_factory=list)
    skipped: int = 0
    imputed: int = 0
    zones: set[str | None] = field(default_factory=set)
    units: set[Unit] = field(default_factory=set)
    guessed: bool = False  # whether the column of times was chosen for its place alone
    wide: bool = False  # whether the sensor is a column of a wide table


class Collector:
    """The readings of the sensors that are wanted, handed out one sensor at a time.

    The sensors of a wide table share the arrays of its times, so that a value takes 8 bytes.
    """

    def __init__(self, options: ReadingOptions) -> None:
        self.options = options
        self.wanted, self.extras = options.sensor_names, options.extras
        self._parts: dict[str, _Parts] = {}
        self._known: dict[str, None] = {}
        self._loose = 0
        self.notes: dict[str, None] = {}  # decisions that a user may want to check, in order
        self.left_out: dict[str, str] = {}  # columns that are no sensors, and why

    @property
    def every_name(self) -> tuple[str, ...]:
        """Return the sensors in the requested order, by default in the order of the sources."""
        return tuple(name for name in self.wanted or self._known if name in self._parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the sensors without the columns that are left out."""
        return tuple(name for name in self.every_name if name not in self.left_out)

    def note(self, text: str) -> None:
        """Add a decision that a user may want to check."""
        self.notes[text] = None

    def wants(self, sensor: str) -> bool:
        """Return whether to read this sensor."""
        return not self.wanted or sensor in self.wanted

    def add_names(self, names: Iterable[str], loose: int) -> None:
        """Add the names of all sensors of a table, and its rows that belong to none of them."""
        self._known.update(dict.fromkeys(names))
        self._loose += loose

    def add(
        self,
        sensor: str,
        times: Times,
        offsets: Offsets,
        values: Vector,
        extras: Sequence[Vector] = (),
        *,
        skipped: int = 0,
        imputed: int = 0,
        aggregate: Aggregate | None = None,
        zone: str | None = None,
        unit: Unit = "us",
        guessed: bool = False,
        wide: bool = False,
    ) -> None:
        """Add readings of a sensor; see `Readings`. The arrays are kept, not copied.

        The column of a frame has the zone and the unit. The extras are in the order of the options.
        """
        parts = self._parts.setdefault(sensor, _Parts(aggregate))
        parts.skipped += skipped
        parts.imputed += imputed
        parts.guessed, parts.wide = parts.guessed or guessed, wide
        if len(times):
            parts.times.append(times)
            parts.offsets.append(offsets)
            parts.values.append(values)
            parts.extras.append(extras)
            parts.zones.add(zone)
            parts.units.add(unit)

    def require_readings(self, source: str) -> None:
        """Raise unless every sensor that was asked for has readings with times of one kind."""
        unknown = [sensor for sensor in self.wanted if sensor not in self._known]
        if self._known and unknown:
            raise InvalidInputError(
                f"sensors must be among {listed(self._known)}, got {shown(unknown[0])}."
            )
        for name in self.names:
            unzoned = np.isnan(_joined(self._parts[name].offsets))
            if unzoned.any() and not unzoned.all():
                raise InvalidInputError(
                    f"times of sensor {name!r} must all have an offset such as Z or +01:00, "
                    "or all have none, got both."
                )
        if not any(parts.times for parts in self._parts.values()):
            raise InvalidInputError(
                f"{source} must have at least one reading, got none{self._skipped_text()}."
            )

    def _skipped_text(self) -> str:
        """Return how many cells were skipped and how to see one; empty if none was."""
        skipped = self._loose + sum(parts.skipped for parts in self._parts.values())
        if not skipped:
            return ""
        return (
            f" after {option('gap', 'skip')} dropped {counted(skipped, 'cell')} that could not be "
            "read. Leave it out to see the first of them"
        )

    def require_even_index(self, source: str) -> None:
        """Raise if a first column of numbers was taken for times and does not count evenly."""
        for name in self.every_name:
            parts = self._parts[name]
            apart = np.diff(_joined(parts.times, "datetime64[us]"))
            if parts.guessed and len(apart) and not ((apart == apart[0]) & (apart > 0)).all():
                raise no_times(source, "a first column that does not increase by a constant step")

    def leave_out_calendar(self) -> None:
        """Leave out columns that hold one value or a part of the time, if others remain."""
        if self.wanted or self.options.value is not None:
            return
        reasons = {name: self._reason(self._parts[name]) for name in self.every_name}
        found = {name: reason for name, reason in reasons.items() if reason}
        if len(found) < len(reasons):
            self.left_out = found

    def _reason(self, parts: _Parts) -> str:
        if not parts.wide:
            return ""
        times = _joined(parts.times, "datetime64[us]")
        offsets = np.nan_to_num(_joined(parts.offsets)).astype("m8[s]")
        return reason_for_no_sensor(times + offsets, _joined(parts.values))

    def require_no_markers(self) -> None:
        """Raise if a number looks like a missing-value marker."""
        for sensor, parts in self._parts.items():
            require_no_marker(f"sensor {sensor}", _joined(parts.values))
            for at, name in enumerate(self.extras):
                column = [extras[at] for extras in parts.extras]
                require_no_marker(f"column {name}", _joined(column))

    def take(self, sensor: str) -> Readings:
        """Return the readings of a sensor, in the order of the sources, and forget them."""
        parts = self._parts.pop(sensor)
        times = _joined(parts.times, "datetime64[us]")
        whole = times < INDEX_END  # as is the first midnight of the year 1
        if not whole.all() and (times[whole] > INDEX_ORIGIN).any():
            raise InvalidInputError(
                f"times of sensor {sensor!r} must all be dates or all be whole numbers, got both."
            )
        return Readings(
            sensor,
            times,
            _joined(parts.values),
            _time_format(parts, times),
            {
                name: _joined([extras[at] for extras in parts.extras])
                for at, name in enumerate(self.extras)
            },
            parts.skipped + self._loose,
            parts.imputed,
            parts.aggregate,
        )


def _joined(arrays: Sequence[Vector], dtype: str = "float64") -> Vector:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype)


def _time_format(parts: _Parts, times: Times) -> TimeFormat:
    """Return how the times of all parts are written; zones or units that differ are dropped."""
    unit = _only(parts.units) or "us"
    offsets = _joined(parts.offsets)
    if np.isnan(offsets).all():
        return TimeFormat(unit=unit)
    return TimeFormat.of(times, offsets, known_zone(_only(parts.zones)), unit)


def no_times(source: str, got: str) -> InvalidInputError:
    """Return an error about a source in which no column holds times."""
    return InvalidInputError(
        f"{source} must have a column of times, got {got}. Pass {option('time')} with the name of "
        f"that column, or {option('start_time')} and {option('step')} if rows have no times."
    )


def _only(given: set[T]) -> T | None:
    """Return the only element; None if there are several or none."""
    return next(iter(given)) if len(given) == 1 else None


def require_no_marker(column: str, values: Vector) -> None:
    """Raise if a number in a column looks like a missing-value marker.

    A low marker is suspicious if all other values are zero or more, or if it is farther from the
    others than they are from each other. A high marker must be that far, and occur more than once.
    """
    lowest, highest = (
        float(reduce(values, initial=np.nan)) for reduce in (np.fmin.reduce, np.fmax.reduce)
    )
    for marker, known, is_marker in ((lowest, LOW, _is_low), (highest, HIGH, _is_high)):
        if marker not in known:
            continue
        others = values[~np.isnan(values) & (values != marker)]
        times = int((values == marker).sum())
        if is_marker(marker, times, others):
            raise _refusal(column, marker, times, others)


def _refusal(column: str, marker: float, times: int, others: Vector) -> InvalidInputError:
    text = f"{marker:.15g}"
    beside = (
        f"all others go from {others.min():g} to {others.max():g}"
        if others.size
        else "there is no other value"
    )
    return InvalidInputError(
        f"{column}: {text} appears {counted(times, 'time')} and looks like a missing-value marker: "
        f"{beside}. Pass {option('missing', text)} if it is one, or {option('missing', 'none')} if "
        "every number is a value."
    )


def _is_low(marker: float, times: int, others: Vector) -> bool:
    if marker in SMALL:
        are_counts = bool(others.size) and bool((others == np.floor(others)).all())
        return are_counts and times > 1 and bool(others.min() >= 0)
    return times > 1 if not others.size else bool(others.min() >= 0) or _is_far(marker, others)


def _is_high(marker: float, times: int, others: Vector) -> bool:
    return times > 1 and (not others.size or _is_far(marker, others))


def _is_far(marker: float, others: Vector) -> bool:
    """Return whether a number is farther from all others than they are from each other."""
    return bool(np.abs(others - marker).min() > np.ptp(others))
