"""Parquet files with the columns sensor, time and value, for which pyarrow must be installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from streamridge.service.bodies.fields import FIELDS, FieldError
from streamridge.service.bodies.moments import Moment, moment_of_text, moment_of_ticks
from streamridge.service.bodies.parquet_footer import Footer, footer_of
from streamridge.service.bodies.parquet_pages import require_small_pages
from streamridge.service.bodies.sieve import Sieve, too_many_rows
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES, MOST_ROWS, Batch

# Rows that become Python's values at once.
BLOCK = 2**14


def decode_parquet(body: bytes) -> Batch:
    """Return the readings of a Parquet file; a reading's line is its row, counted from one.

    Sensors are texts, times are timestamps with a zone or texts in ISO 8601, values are floats or
    integers; a null value is a gap.
    """
    with _damage_named():
        footer = footer_of(body)
        _require_small(body, footer)
        file = _opened(body, footer)
        kinds = {name: file.schema_arrow.field(name).type for name in FIELDS}
        wrong = _wrong_kind(kinds)
        if wrong is not None:
            return _all_refused(footer.rows, wrong)
        sieve = Sieve(_moment(kinds["time"]))
        for line, row in enumerate(_rows(file), 1):
            sieve.add(line, *row)
        return sieve.batch()


def _require_small(body: bytes, footer: Footer) -> None:
    if footer.rows > MOST_ROWS:
        raise too_many_rows()
    if footer.size > MOST_BYTES:
        raise Problem("sr-too-large", f"the file says that it has {footer.size:,} bytes unpacked.")
    require_small_pages(body, footer.chunks)


def _opened(body: bytes, footer: Footer) -> Any:
    pyarrow, parquet = _require_pyarrow(), import_module("pyarrow.parquet")
    # A text that is there many times is kept once: a small file can stand for many long texts.
    once = {"read_dictionary": footer.texts, "pre_buffer": False}
    file = parquet.ParquetFile(pyarrow.BufferReader(body), **once)
    for field in file.schema_arrow:
        extended = isinstance(field.type, pyarrow.BaseExtensionType)
        if extended or b"ARROW:extension:name" in (field.metadata or {}):
            raise Problem("sr-unreadable", f"column {field.name} must not have an extension type.")
    return file


def _wrong_kind(kinds: dict[str, Any]) -> FieldError | None:
    """Return why every row is refused, if a column has a kind of values that cannot be right."""
    types = _require_pyarrow().types
    sensor, time, value = (kinds[name] for name in FIELDS)
    if not _is_text(sensor):
        return FieldError("sr-bad-name", f"column sensor must hold texts, got {sensor}.", "sensor")
    if types.is_timestamp(time) and not time.tz:
        return FieldError("sr-no-offset", f"column time must have a zone, got {time}.", "time")
    if not types.is_timestamp(time) and not _is_text(time):
        return FieldError(
            "sr-bad-time", f"column time must hold timestamps or texts, got {time}.", "time"
        )
    if not types.is_floating(value) and not types.is_integer(value):
        return FieldError(
            "sr-not-a-number", f"column value must hold numbers, got {value}.", "value"
        )
    return None


def _is_text(kind: Any) -> bool:
    types = _require_pyarrow().types
    content = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(content) or types.is_large_string(content)


def _all_refused(count: int, error: FieldError) -> Batch:
    sieve = Sieve()
    for line in range(1, count + 1):
        sieve.refuse(line, error)
    return sieve.batch()


def _moment(kind: Any) -> Moment:
    is_timestamp = _require_pyarrow().types.is_timestamp(kind)
    return partial(moment_of_ticks, unit=kind.unit) if is_timestamp else moment_of_text


def _rows(file: Any) -> Iterator[tuple[Any, ...]]:
    for block in file.iter_batches(BLOCK, columns=list(FIELDS), use_threads=False):
        block.validate(full=True)
        places = map(block.schema.get_field_index, FIELDS)
        yield from zip(*(_values(block.column(place)) for place in places), strict=True)


def _values(column: Any) -> Sequence[Any]:
    """Return texts, ticks or numbers, None for null."""
    pyarrow = _require_pyarrow()
    types = pyarrow.types
    if types.is_dictionary(column.type):
        # A block uses few of the texts of a large file.
        used = column.indices.unique().drop_null()
        texts = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
        return [texts.get(place) for place in column.indices.to_pylist()]
    if types.is_timestamp(column.type):
        return column.cast(pyarrow.int64()).to_pylist()
    if types.is_floating(column.type) or types.is_integer(column.type):
        return column.cast(pyarrow.float64(), safe=False).to_pylist()
    return column.to_pylist()


@contextmanager
def _damage_named() -> Iterator[None]:
    """Turn what pyarrow raises for damaged files into the refusal of the body."""
    broken = (_require_pyarrow().ArrowException, OSError, ValueError, KeyError, MemoryError)
    try:
        yield
    except broken as error:
        reason = str(error).partition("\n")[0].rstrip(" .:")
        raise Problem(
            "sr-unreadable", f"the body must be a whole Parquet file: {reason}."
        ) from None


def _require_pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        raise Problem(
            "sr-unsupported-type",
            "this service was installed without pyarrow, which reads Parquet. "
            "Send application/x-ndjson, or install it with: pip install 'streamridge[parquet]'",
        ) from None
