"""The size of a Parquet file before it is unpacked, as the header of each of its pages says.

The file's footer may lie about it. But a page is unpacked into as many bytes as its header says
and no more, so these are the ones to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamridge.service.bodies.parquet_footer import Chunk
from streamridge.service.bodies.sieve import too_many_rows
from streamridge.service.bodies.thrift import Structure, ThriftError, ThriftReader
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES, MOST_ROWS

MOST_PAGES = 10_000
# Fields of a page's header, and of the three kinds of headers inside it.
UNPACKED, PACKED, DATA, DICTIONARY, DATA_V2 = 2, 3, 5, 7, 8
COUNT = 1
ENCODING = {DATA: 2, DATA_V2: 4}
# Texts as differences to the text before: a few bytes can stand for any number of them.
DELTA_BYTE_ARRAY = 7


def require_small_pages(body: bytes, chunks: Iterable[Chunk]) -> None:
    """Refuse a file whose pages would take too much memory."""
    size = pages = 0
    for header in (header for chunk in chunks for header in _headers(body, chunk)):
        size, pages = size + header.whole(UNPACKED), pages + 1
        if size > MOST_BYTES or pages > MOST_PAGES:
            raise Problem(
                "sr-too-large",
                f"a Parquet file must have at most {MOST_BYTES:,} bytes unpacked, "
                f"in at most {MOST_PAGES:,} pages.",
            )
        _require_known_growth(header)


def _require_known_growth(header: Structure) -> None:
    if header.inner(DICTIONARY).whole(COUNT) > MOST_ROWS:
        raise too_many_rows()
    for kind, field in ENCODING.items():
        if header.inner(kind).whole(field) == DELTA_BYTE_ARRAY:
            raise Problem(
                "sr-unreadable",
                "texts must not have the encoding DELTA_BYTE_ARRAY. Write them plainly or with a "
                "dictionary.",
            )


def _headers(body: bytes, chunk: Chunk) -> Iterator[Structure]:
    """Yield the headers that a reader meets: it stops when it has all values."""
    end, seen = chunk.start + chunk.length, 0
    reader = ThriftReader(body, chunk.start)
    while seen < chunk.values and reader.at < end:
        header = reader.structure()
        if min(header.whole(UNPACKED), header.whole(PACKED)) < 0:
            raise ThriftError("a page has no size")
        yield header
        reader.at += header.whole(PACKED)
        seen += max(0, *(header.inner(kind).whole(COUNT) for kind in ENCODING))
