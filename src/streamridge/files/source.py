"""One source, a file or a frame: read table by table, once or twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedReader
from typing import Any

from streamridge.errors import InvalidInputError, option, shown
from streamridge.files.collector import Collector
from streamridge.files.csv_text import read_csv
from streamridge.files.encodings import HEAD, encoding_of, open_text
from streamridge.files.frames import read_frame
from streamridge.files.json_lines import read_json_lines
from streamridge.files.layouts import LAYOUTS, layout_of, wide_groups
from streamridge.files.open_files import (
    open_source,
    require_readable_bytes,
    require_readable_text,
    source_name,
)
from streamridge.files.parquet import MAGIC, open_parquet
from streamridge.files.raw_table import Origin, RawTable, SourceFormats
from streamridge.files.reading_options import Layout, ReadingOptions
from streamridge.files.time_column import TimeParts, with_times


class SourceReader:
    """A file, standard input or a frame, and the formats of its columns so far."""

    def __init__(self, source: Any, options: ReadingOptions) -> None:
        self._source, self._options = source, options
        self._is_path = isinstance(source, str | os.PathLike)
        self.name = source_name(source) if self._is_path else type(source).__name__
        self._origin = Origin(self.name, "row", options.gap)
        self._formats = SourceFormats(options)
        self._layout: Layout | None = None
        self._parts: TimeParts | None = None
        self._time: str | None = None  # the column of times, where one column holds them
        self._guessed = False
        self._rows = 0  # rows of text that were read so far

    def read(self, collector: Collector) -> None:
        """Add all readings of the source to a collector."""
        self._layout, self._parts, self._rows = self._options.layout, None, 0
        # A loop over the tables would keep one in memory while the next is read.
        for _ in map(lambda table: self._add(table, collector), self._tables(collector)):
            pass

    def must_be_reread(self) -> bool:
        """Return whether late cells showed that earlier cells were misread.

        Raises an error if the source cannot be read a second time.
        """
        for column, proof in self._formats.late_proofs():
            if self._is_path and not os.path.isfile(self._source):
                raise InvalidInputError(
                    f"{self._place} {proof.place}, column {column}: {shown(proof.text)} must "
                    "come earlier in what can be read only once, got it after cells that it "
                    f"explains. Pass {option('date_format')} or {option('decimal')}, or the path "
                    "of a file."
                )
            return True
        return False

    def require_unambiguous(self) -> None:
        """Raise if cells can be read in two ways."""
        self._formats.require_unambiguous(self._place)

    def notes(self) -> Iterator[str]:
        """Yield the decisions that a user may want to check."""
        for note in self._formats.notes():
            yield f"{self.name}: {note}"

    @property
    def _place(self) -> str:
        return f"{self.name} {self._origin.unit}"

    def _add(self, table: RawTable, collector: Collector) -> None:
        first = table.places[0] if self._origin.unit == "row" and len(table.places) else self._rows
        joined = self._timed(table, first)
        self._rows += len(table.places)
        LAYOUTS[self._layout_of(joined)](joined, collector)

    def _timed(self, table: RawTable, first_row: int) -> RawTable:
        """Return a table whose column of times is known; its first rows decide which it is."""
        options = self._options
        if self._time is not None and self._time in table.columns:
            return replace(table, time=self._time, guessed=self._guessed)
        parts = self._parts
        if parts is None:
            named = options.time is not None or options.start_time is not None
            parts = TimeParts() if named else TimeParts.of(table)
        joined = parts.join(replace(table, origin=self._origin), self._formats)
        timed = with_times(joined, options, first_row)
        if len(table.places):
            self._parts = parts
            if not parts.names and options.start_time is None:
                self._time, self._guessed = timed.time, timed.guessed
        return timed

    def _layout_of(self, table: RawTable) -> Layout:
        self._layout = self._layout or layout_of(table, self._options)
        return self._layout

    def _tables(self, collector: Collector) -> Iterator[RawTable]:
        if not self._is_path:
            self._require_text()
            yield read_frame(self._source, self._origin, self._formats)
            return
        with open_source(self._source, self._options.most_bytes) as stream:
            if stream.peek(len(MAGIC)).startswith(MAGIC):
                self._require_text()
                yield from self._parquet_tables(stream, collector)
            else:
                yield from self._text_tables(stream)

    def _require_text(self) -> None:
        """Raise if lines are to be skipped in a source that has none."""
        if self._options.skip_lines:
            raise InvalidInputError(
                f"{option('skip_lines')} must be left out for {self.name}, which is no text, got "
                f"{self._options.skip_lines}."
            )

    def _text_tables(self, stream: BufferedReader) -> Iterator[RawTable]:
        self._origin = Origin(self.name, "line", self._options.gap)
        head = stream.peek(HEAD)[:HEAD]
        require_readable_bytes(head, self.name)
        encoding = encoding_of(head, self.name, self._options.encoding)
        *_, text = head.decode(encoding, "ignore").split("\n", self._options.skip_lines)
        require_readable_text(text, self.name)
        read = read_json_lines if text.lstrip().startswith("{") else read_csv
        # A row that is left out would move the times that are counted from row to row.
        counted = self._options.start_time is not None
        rows = replace(self._origin, gap="error") if counted else self._origin
        with open_text(stream, self.name, encoding) as lines:
            yield from read(lines, encoding, rows, self._formats)

    def _parquet_tables(self, stream: BufferedReader, collector: Collector) -> Iterator[RawTable]:
        """Yield a table without rows, which names all columns, and then the rows."""
        content = open_parquet(stream, self.name)
        head = read_frame(content.head, self._origin, self._formats)
        yield head
        as_written = {name.strip(): name for name in reversed(content.head.column_names)}
        for group in self._groups(head, collector):
            first = 0
            for table in content.tables([as_written[name] for name in group]):
                yield read_frame(table, self._origin, self._formats, first)
                first += len(table)

    def _groups(self, head: RawTable, collector: Collector) -> list[tuple[str, ...]]:
        """Return the columns of a file in groups that are read at a time."""
        joined = self._timed(head, 0)
        if self._layout_of(joined) != "wide":
            return [tuple(head.columns)]
        parts = self._parts or TimeParts.of(head)
        groups = (
            dict.fromkeys(each for name in group for each in parts.source_columns(name))
            for group in wide_groups(joined, collector)
        )
        # Times that are counted are no column of the file.
        return [tuple(name for name in group if name in head.columns) for group in groups]
