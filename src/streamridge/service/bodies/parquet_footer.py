"""The footer of a Parquet file, judged before pyarrow sees it.

What pyarrow tells of a footer ends the whole process if the footer contradicts itself. So it is
read here, and only files that are plain and of one piece go on.
"""

from __future__ import annotations

from typing import NamedTuple

from streamridge.errors import listed
from streamridge.service.bodies.fields import FIELDS
from streamridge.service.bodies.thrift import Structure, ThriftReader
from streamridge.service.problems import Problem

MAGIC = b"PAR1"
# The largest file that may be sent needs a hundredth of it.
LONGEST_FOOTER = 1_000_000
# Fields of the structures that are looked into.
SCHEMA, ROWS, GROUPS = 2, 3, 4
TYPE, REPETITION, NAME, CHILDREN = 1, 3, 4, 5
GROUP_COLUMNS, GROUP_SIZE, GROUP_ROWS = 1, 2, 3
OTHER_FILE, METADATA = 1, 3
PATH, VALUES, PACKED, DATA_AT, DICTIONARY_AT = 3, 5, 7, 9, 11
# The kind of columns of texts; the last of all kinds; the kind of columns of lists.
BYTE_ARRAY, LAST_TYPE, REPEATED = 6, 7, 2


class Chunk(NamedTuple):
    """A column of a group of rows: its first byte, its length, and its number of values."""

    start: int
    length: int
    values: int


class Footer(NamedTuple):
    """What a footer tells: rows, the size unpacked, the names of columns of texts, the chunks."""

    rows: int
    size: int
    texts: list[str]
    chunks: list[Chunk]


def footer_of(body: bytes) -> Footer:
    """Return what the footer of a file tells, after it was found to be sound.

    Raises ValueError if it is damaged, and `Problem` if it has other columns than a reading.
    """
    length = int.from_bytes(body[-8:-4], "little")
    start = len(body) - 8 - length
    if not (body.startswith(MAGIC) and body.endswith(MAGIC)) or start < len(MAGIC):
        raise ValueError("it does not begin and end as one")
    if length > LONGEST_FOOTER:
        raise ValueError(f"its footer has {length:,} bytes")
    footer = ThriftReader(body[start:-8]).structure()
    columns = _columns(footer.items_of(SCHEMA, Structure))
    groups = footer.items_of(GROUPS, Structure)
    chunks = [chunk for group in groups for chunk in _chunks(group, columns, start)]
    rows = sum(group.whole(GROUP_ROWS) for group in groups)
    _require(rows == footer.whole(ROWS), "its groups do not have as many rows as it says")
    texts = [name for name, kind in columns if kind == BYTE_ARRAY]
    return Footer(rows, sum(group.whole(GROUP_SIZE, 0) for group in groups), texts, chunks)


def _columns(schema: list[Structure]) -> list[tuple[str, int]]:
    """Return name and kind of each column."""
    root, *columns = schema or [Structure()]
    names = [column.text(NAME).decode(errors="backslashreplace") for column in columns]
    nested = any(each.whole(REPETITION) == REPEATED or each.whole(CHILDREN, 0) for each in columns)
    if sorted(names) != sorted(FIELDS) or nested:
        raise Problem(
            "sr-unreadable",
            "a Parquet file must have the columns sensor, time and value, not nested and no "
            f"others, got {listed(names)}.",
        )
    kinds = [column.whole(TYPE) for column in columns]
    _require(root.whole(CHILDREN) == len(columns), "its columns are not those it says")
    _require(0 <= min(kinds) <= max(kinds) <= LAST_TYPE, "a column has an unknown kind")
    return list(zip(names, kinds, strict=True))


def _chunks(group: Structure, columns: list[tuple[str, int]], end: int) -> list[Chunk]:
    written = group.items_of(GROUP_COLUMNS, Structure)
    _require(not any(OTHER_FILE in each for each in written), "a part is in another file")
    described = [each.inner(METADATA) for each in written]
    found = [(each.items_of(PATH, bytes), each.whole(TYPE)) for each in described]
    right = [([name.encode()], kind) for name, kind in columns]
    _require(found == right, "a group of rows has other columns than the file")
    return [_chunk(each, group.whole(GROUP_ROWS), end) for each in described]


def _chunk(described: Structure, rows: int, end: int) -> Chunk:
    _require(0 <= rows == described.whole(VALUES), "a column has not a value for each row")
    data, length = described.whole(DATA_AT), described.whole(PACKED)
    start = min(data, described.whole(DICTIONARY_AT, data) or data)
    inside = len(MAGIC) <= start <= data <= start + length <= end
    _require(inside or rows == 0, "a column lies outside the file")
    return Chunk(start, length, rows)


def _require(sound: bool, otherwise: str) -> None:
    if not sound:
        raise ValueError(otherwise)
