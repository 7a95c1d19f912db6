"""The reading options: which readings to read, and how. Each option is declared here, once.

The flags of commands, and the keyword arguments of `replay`, `compare`, `read` and
`Forecaster.start`, are generated from the fields of `ReadingOptions`. A test compares them with the
table in docs/reference/reading-options.md.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from inspect import Parameter, signature
from math import isfinite, isnan
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from streamridge.arrays import require_one_of
from streamridge.errors import InvalidInputError, option, shown
from streamridge.series.grid import to_series
from streamridge.series.lengths import Length, parse_step
from streamridge.series.series import Aggregate, Readings, Series
from streamridge.series.spans import parse_range
from streamridge.series.times import parse_time
from streamridge.series.zones import Fold, parse_zone

Layout: TypeAlias = Literal["wide", "long", "pems"]
Gap: TypeAlias = Literal["error", "skip"]
DecimalMark: TypeAlias = Literal[".", ","]
Missing: TypeAlias = float | str | Iterable[float | str] | None
Function = TypeVar("Function", bound=Callable[..., Any])

# The units of times that are counted since 1970, in microseconds.
EPOCHS = {
    "epoch-s": Decimal(1_000_000),
    "epoch-ms": Decimal(1_000),
    "epoch-us": Decimal(1),
    "epoch-ns": Decimal("0.001"),
}
DAY_FIRST, MONTH_FIRST, INDEX = "dayfirst", "monthfirst", "index"
DATE_WORDS = (DAY_FIRST, MONTH_FIRST, *EPOCHS, INDEX)
NO_MARKER = "none"
# The name of the keyword arguments that stand for all reading options.
READING = "reading"
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgt]?)i?b?", re.ASCII | re.IGNORECASE)
# Encodings of Python for host names and source text: no file is written in them.
_INTERNAL_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined")


@dataclass(frozen=True)
class Flag:
    """The appearance of an option on the command line."""

    help: str  # for `--help` and for the page
    names: tuple[str, ...] = ()  # by default the name of the field, with dashes
    metavar: str | None = None  # the placeholder of a value in `--help`
    repeated: bool = False  # whether it may be repeated for several values


@dataclass(frozen=True)
class ReadingOptions:
    """The sensors and times to read, the format of the source, and the step of the series."""

    sensors: Annotated[
        Sequence[str] | str | None,
        Flag(
            "Sensor to read; repeat the flag for several. All by default.",
            ("--sensor",),
            "NAME",
            True,
        ),
    ] = None
    from_: Annotated[
        object,
        Flag("First time to use, such as 2021-06-13 or 2021-06-13T08:00.", ("--from",), "TIME"),
    ] = None
    to: Annotated[
        object,
        Flag("Last time to use, in the same form. A date means its whole day.", metavar="TIME"),
    ] = None
    step: Annotated[
        str | Length | Mapping[str, str | Length] | None,
        Flag(
            "Time between readings, such as 15min, 7d or 1mo; a whole number for an index. "
            "Detected by default.",
            metavar="TIME",
        ),
    ] = None
    aggregate: Annotated[
        Aggregate | None,
        Flag("How to combine several readings of a step. PeMS counts are summed by default."),
    ] = None
    tz: Annotated[
        str | None,
        Flag("Time zone of local times, such as Europe/London.", ("--tz", "--timezone"), "ZONE"),
    ] = None
    fold: Annotated[
        Fold,
        Flag(
            "Meaning of a local time that occurs twice when clocks are set back: the first time, "
            "the second, or inferred from its neighbours."
        ),
    ] = "infer"
    time: Annotated[
        str | None,
        Flag("Column with the times. Detected by default.", metavar="COLUMN"),
    ] = None
    value: Annotated[
        str | None,
        Flag("Column with the values. Detected by default.", metavar="COLUMN"),
    ] = None
    id: Annotated[
        str | None,
        Flag(
            "Column with the names of sensors, if there is a row per reading. Detected by default.",
            metavar="COLUMN",
        ),
    ] = None
    start_time: Annotated[
        object,
        Flag(
            "Time of the first row, if rows have no times. The step must be given as well.",
            metavar="TIME",
        ),
    ] = None
    skip_lines: Annotated[
        int, Flag("Number of lines to skip at the start of a text file.", metavar="N")
    ] = 0
    extras: Annotated[
        tuple[str, ...],
        Flag(
            "Column whose values are known in advance; repeat the flag for several.",
            ("--extras", "--extra"),
            "NAME",
            True,
        ),
    ] = ()
    layout: Annotated[
        Layout | None,
        Flag(
            "A column per sensor (wide), a row per reading (long), or a Caltrans station file "
            "(pems). Detected by default."
        ),
    ] = None
    gap: Annotated[
        Gap, Flag("Stop with an error at a cell that cannot be read, or skip and count it.")
    ] = "error"
    date_format: Annotated[
        str | None,
        Flag(
            "Format of times, such as '%d/%m/%Y %H:%M', or one of the words "
            f"{', '.join(DATE_WORDS)}. Detected from the whole column by default.",
            metavar="PATTERN|WORD",
        ),
    ] = None
    decimal: Annotated[
        DecimalMark | None,
        Flag("Decimal mark of numbers. Detected from the whole column by default."),
    ] = None
    missing: Annotated[
        Missing,
        Flag(
            "Number or text that marks a missing value, such as -9999; repeat the flag for "
            "several. Pass none if every number is a value.",
            metavar="VALUE",
            repeated=True,
        ),
    ] = ()
    encoding: Annotated[
        str | None,
        Flag(
            "Encoding of text, such as latin-1. By default as in the byte order mark, or UTF-8.",
            metavar="NAME",
        ),
    ] = None
    largest: Annotated[
        int | str | None,
        Flag(
            "Maximum size of an unpacked gzip file, such as 20GB. The default is 250 times the "
            "size of the file.",
            metavar="SIZE",
        ),
    ] = None
    arrival_order: Annotated[
        bool,
        Flag(
            "Use readings in the order of the file, as in a live stream. A row below newer rows is "
            "then a late reading, and the first three days determine the step. By default rows are "
            "sorted, and all of them determine the step."
        ),
    ] = False

    def __post_init__(self) -> None:
        require_one_of("gap", self.gap, get_args(Gap))
        require_one_of("layout", self.layout, (None, *get_args(Layout)))
        if self.decimal not in (None, *get_args(DecimalMark)):
            raise InvalidInputError(f"decimal must be . or , got {shown(self.decimal)}.")
        if self.date_format not in (None, *DATE_WORDS):
            _require_pattern(str(self.date_format))
        if self.encoding is not None:
            _require_encoding(self.encoding)
        object.__setattr__(self, "skip_lines", _whole("skip_lines", self.skip_lines))
        if self.start_time is not None:
            self._require_counted()
        given = self.missing
        every = (given,) if isinstance(given, str | int | float) else tuple(given or ())
        # An iterator could be used up by the first source.
        object.__setattr__(self, "missing", every)
        object.__setattr__(self, "extras", _names(self.extras))
        _ = self.most_bytes

    @classmethod
    def of(cls, given: Mapping[str, Any], **fixed: Any) -> ReadingOptions:
        """Return the options that a user gave, with the `fixed` options of the caller.

        None stands for the default. One sensor may be named as `sensor`.
        """
        known = {name: value for name, value in given.items() if value is not None}
        sensor = known.pop("sensor", None)
        if sensor is not None:
            if known.get("sensors"):
                raise InvalidInputError(
                    f"sensor must be left out with sensors, got {shown(sensor)}."
                )
            known["sensors"] = [str(sensor)]
        return cls(**{**known, **fixed})

    @cached_property
    def sensor_names(self) -> tuple[str, ...]:
        """Return the sensors to read, in this order; none stands for all."""
        return _names(self.sensors or ())

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Return the numbers that mark a missing value."""
        found = (_finite(each) for each in self._missing)
        return tuple(number for number in found if number is not None)

    @cached_property
    def missing_texts(self) -> frozenset[str]:
        """Return the texts that mark a missing value."""
        return frozenset(str(each).strip() for each in self._missing if _finite(each) is None)

    @cached_property
    def every_number_is_a_value(self) -> bool:
        """Return whether no number is refused because it looks like a missing-value marker."""
        return any(str(each).strip().lower() == NO_MARKER for each in self._missing)

    @cached_property
    def most_bytes(self) -> int | None:
        """Return the most bytes that a packed file may unpack to, None for the default."""
        if self.largest is None:
            return None
        found = _SIZE.fullmatch(str(self.largest).strip())
        if found is None:
            raise InvalidInputError(
                f"largest must be a size such as 500MB or 20GB, got {shown(self.largest)}."
            )
        return int(float(found[1]) * _BYTES[found[2].lower()])

    def to_series(self, readings: Readings) -> Series:
        """Return the readings of a sensor on a regular grid."""
        zone = parse_zone(self.tz)
        first, last = parse_range(self.from_, self.to, zone, readings.time_format)
        return to_series(
            readings,
            step=self.step_of(readings.sensor),
            zone=zone,
            fold=self.fold,
            aggregate=self.aggregate,
            skip=self.gap == "skip",
            first=first,
            last=last,
            arrival_order=self.arrival_order,
        )

    def step_of(self, sensor: str) -> Length | None:
        """Return the step of a sensor, None if it is to be detected.

        Examples
        --------
        >>> ReadingOptions(step={"pump": "1h"}).step_of("pump")
        datetime.timedelta(seconds=3600)
        """
        step = self.step
        if isinstance(step, Mapping):
            try:
                step = step[sensor]  # a mapping may have a default
            except KeyError:
                return None
        return None if step is None else parse_step(step)

    def _require_counted(self) -> None:
        """Raise unless times can be counted from `start_time` in steps."""
        if isinstance(self.step, Mapping) or not isinstance(self.step_of(""), timedelta):
            raise InvalidInputError(
                f"{option('start_time')} must come with a step such as {option('step', '15min')}, "
                f"got {shown(self.step)}."
            )
        if self.time is not None or self.id is not None or self.layout not in (None, "wide"):
            raise InvalidInputError(
                f"{option('start_time')} must be left out if rows have times or names of sensors, "
                f"got {shown(self.start_time)}."
            )
        parse_time(self.start_time)

    @property
    def _missing(self) -> tuple[float | str, ...]:
        return self.missing if isinstance(self.missing, tuple) else ()


# All options by name, and their names in Python: the fields, and a name for a single sensor.
_TYPES = get_type_hints(ReadingOptions, include_extras=True)
OPTIONS = {each.name: each.default for each in fields(ReadingOptions)}
OPTION_NAMES = ("sensor", *OPTIONS)


def flag_of(name: str) -> Flag:
    """Return the flag of an option."""
    flag: Flag = _TYPES[name].__metadata__[0]
    return flag if flag.names else replace(flag, names=(f"--{name.replace('_', '-')}",))


def flag_type(name: str) -> Any:
    """Return the type of a flag's value: a choice of words, a switch, or text."""
    declared = _TYPES[name].__origin__
    choices = [each for each in (declared, *get_args(declared)) if get_origin(each) is Literal]
    return choices[0] if choices else declared if declared in (bool, int) else str


def require_options(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise at an option that a function does not have."""
    for name in given:
        if name not in known:
            words = ", ".join(dict.fromkeys(known))
            raise InvalidInputError(
                f"{function} must be given options among {words}, got {name!r}."
            )


def reading_arguments(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that lists reading options in the signature of a function.

    The named options, by default all, replace `**reading`.
    """
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=OPTIONS.get(name))
        for name in names or OPTION_NAMES
    ]

    def decorate(function: Function) -> Function:
        own = signature(function)
        *before, last = own.parameters.values()
        after = [] if last.name == READING else [last]
        function.__signature__ = own.replace(parameters=[*before, *options, *after])  # type: ignore[attr-defined]
        return function

    return decorate


def _names(given: Any) -> tuple[str, ...]:
    """Return names as texts, each once; a single one need not be in a list."""
    one = isinstance(given, str) or not isinstance(given, Iterable)
    return tuple(dict.fromkeys(map(str, [given] if one else given)))


def _whole(name: str, given: Any) -> int:
    """Return a number of lines; raise if it is none."""
    text = str(given).strip()
    if isinstance(given, bool) or not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise InvalidInputError(f"{name} must be a whole number of lines, got {shown(given)}.")
    return int(text)


def _finite(value: float | str) -> float | None:
    """Return a number that is not infinite, None for any other text."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) or isnan(number) else None


def _require_pattern(pattern: str) -> None:
    """Raise unless a pattern of strptime reads back at least the year of a time."""
    time = datetime(2021, 6, 13, 8, 15)
    try:
        known = "%" in pattern and datetime.strptime(time.strftime(pattern), pattern)
    except (ValueError, re.error):  # such as a part that occurs twice
        known = False
    if not known or known.year != time.year:
        raise InvalidInputError(
            "date_format must be a pattern with a year, such as %d/%m/%Y %H:%M, or one of "
            f"{', '.join(DATE_WORDS)}, got {shown(pattern)}."
        )


def _require_encoding(name: str) -> None:
    try:
        "".encode(name)
        b"".decode(name)
        known = codecs.lookup(name).name not in _INTERNAL_ENCODINGS
    except (LookupError, ValueError, UnicodeError):
        known = False
    if not known:
        raise InvalidInputError(
            f"encoding must be one that Python knows, such as utf-8, latin-1 or utf-16, "
            f"got {shown(name)}."
        )
