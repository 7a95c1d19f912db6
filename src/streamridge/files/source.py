"""One source: from bytes or a frame to blocks, and from blocks to the pieces of sensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from typing import Any, Literal, TypeAlias

from streamridge.errors import InvalidInputError, shown
from streamridge.files.blocks import Block, Gap, Origin
from streamridge.files.csv_text import csv_blocks
from streamridge.files.dialect import Dialect
from streamridge.files.foreign import require_own_bytes, require_own_text
from streamridge.files.frames import frame_block
from streamridge.files.json_lines import json_blocks
from streamridge.files.layouts import Choice, Split, is_long, split_long, split_wide, wide_groups
from streamridge.files.opened import name_of, opened
from streamridge.files.parquet import MAGIC, parquet_content
from streamridge.files.pems import is_pems, split_pems
from streamridge.files.sense import Senses
from streamridge.files.text import HEAD, encoding_of, opened_text
from streamridge.files.time_parts import TimeParts
from streamridge.texts import option

Layout: TypeAlias = Literal["wide", "long", "pems"]

SPLITS: Mapping[str, Callable[[Block, Choice], Split]] = {
    "wide": split_wide,
    "long": split_long,
    "pems": split_pems,
}


class SourceReader:
    """A file or a frame that is read, once or twice, and what its columns told about themselves.

    Parameters
    ----------
    source
        A path, "-", or a frame.
    choice
        The sensors and extras that are wanted.
    layout
        How it is laid out; found by default.
    gap
        What to do with cells that cannot be read.
    dialect
        How it is written, as far as the user says so.
    """

    def __init__(
        self, source: Any, choice: Choice, layout: Layout | None, gap: Gap, dialect: Dialect
    ) -> None:
        self._source, self._choice, self._asked = source, choice, layout
        self._is_path = isinstance(source, str | os.PathLike)
        name = name_of(source) if self._is_path else type(source).__name__
        self.origin = Origin(name, "row", gap)
        self._senses = Senses(dialect)
        self._layout = layout
        self._parts = TimeParts()
        self._decided = False

    def splits(self) -> Iterator[Split]:
        """Yield what the source holds, block by block."""
        self._layout, self._parts, self._decided = self._asked, TimeParts(), False
        return map(self._split, self._blocks())

    def was_misread(self) -> bool:
        """Return whether cells showed too late how those above them are written.

        That is an error where the source cannot be read once more.
        """
        for column, proof in self._senses.misread():
            if self._is_path and not os.path.isfile(self._source):
                raise InvalidInputError(
                    f"{self._place} {proof.place}, column {column}: {shown(proof.text)} must "
                    "come earlier in what can be read only once, got it after cells that it "
                    f"explains. Pass {option('date_format')} or {option('decimal')}, or the path "
                    "of a file."
                )
            return True
        return False

    def require_one_reading(self) -> None:
        """Raise if cells can be read in two ways."""
        self._senses.require_one_reading(self._place)

    def notes(self) -> Iterator[str]:
        """Yield what was decided that a user may want to know."""
        for note in self._senses.notes():
            yield f"{self.origin.name}: {note}"

    @property
    def _place(self) -> str:
        return f"{self.origin.name} {self.origin.unit}"

    def _split(self, block: Block) -> Split:
        whole = self._whole(block)
        return SPLITS[self._layout_of(whole)](whole, self._choice)

    def _whole(self, block: Block) -> Block:
        """Return a block with one column of times; the first rows decide which make it up."""
        if not self._decided:
            self._parts = TimeParts.of(block)
            self._decided = len(block.places) > 0
        return self._parts.join(block, self._senses)

    def _layout_of(self, block: Block) -> Layout:
        if self._layout is None:
            self._layout = "pems" if is_pems(block) else "long" if is_long(block) else "wide"
        return self._layout

    def _blocks(self) -> Iterator[Block]:
        if not self._is_path:
            yield frame_block(self._source, self.origin, self._senses)
            return
        with opened(self._source, self._senses.dialect.most_bytes) as stream:
            if stream.peek(len(MAGIC)).startswith(MAGIC):
                yield from self._parquet_blocks(stream)
            else:
                yield from self._text_blocks(stream)

    def _text_blocks(self, stream: BufferedReader) -> Iterator[Block]:
        self.origin = Origin(self.origin.name, "line", self.origin.gap)
        head = stream.peek(HEAD)[:HEAD]
        require_own_bytes(head, self.origin.name)
        encoding = encoding_of(head, self.origin.name, self._senses.dialect)
        text = head.decode(encoding, "ignore")
        require_own_text(text, self.origin.name)
        blocks_of = json_blocks if text.lstrip().startswith("{") else csv_blocks
        with opened_text(stream, self.origin.name, encoding) as lines:
            yield from blocks_of(lines, encoding, self.origin, self._senses)

    def _parquet_blocks(self, stream: BufferedReader) -> Iterator[Block]:
        """Yield a block without rows, which names all columns, and then the rows."""
        with parquet_content(stream, self.origin.name) as content:
            head = frame_block(content.head, self.origin, self._senses)
            yield head
            as_written = {name.strip(): name for name in reversed(content.head.column_names)}
            for group in self._groups(head):
                first = 0
                for table in content.tables([as_written[name] for name in group]):
                    yield frame_block(table, self.origin, self._senses, first)
                    first += len(table)

    def _groups(self, head: Block) -> list[tuple[str, ...]]:
        """Return the columns of a file in groups that are read at a time."""
        whole = self._whole(head)
        if self._layout_of(whole) != "wide":
            return [tuple(head.columns)]
        parts = self._parts
        return [
            tuple(dict.fromkeys(each for name in group for each in parts.behind(name)))
            for group in wide_groups(whole, self._choice)
        ]
