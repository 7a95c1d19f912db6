"""The compact protocol of Thrift, as far as Parquet uses it to describe files and pages."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

# Kinds of values.
TRUE, FALSE, BYTE, WHOLE, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, (4, 5, 6), 7, 8, 9, 12
# Descriptions of files hold structures of six levels.
DEEPEST = 12
# A number of 64 bits takes at most ten bytes.
LONGEST_NUMBER = 10
# The length of a list that does not fit into its first byte.
LONG = 15


class ThriftError(ValueError):
    """Bytes that are no structure of Thrift, or not of the one that they should be."""


class Structure(dict[int, object]):
    """The fields of a structure by their numbers; texts are bytes."""

    def whole(self, field: int, otherwise: int = -1) -> int:
        """Return a field that is a whole number, if it is there."""
        return self._of_kind(int, field, otherwise)

    def text(self, field: int) -> bytes:
        """Return a field that is a text; empty if it is not there."""
        return self._of_kind(bytes, field, b"")

    def inner(self, field: int) -> Structure:
        """Return a field that is a structure; without fields if it is not there."""
        return self._of_kind(Structure, field, Structure())

    def items_of(self, field: int, kind: type[T]) -> list[T]:
        """Return a field that is a list, of which all items are of one kind."""
        items = self._of_kind(list, field, [])
        if not all(isinstance(item, kind) for item in items):
            raise ThriftError(f"field {field} is a list of other things than it should be")
        return items

    def _of_kind(self, kind: type[T], field: int, otherwise: T) -> T:
        value = self.get(field, otherwise)
        if not isinstance(value, kind):
            raise ThriftError(f"field {field} is of another kind than it should be")
        return value


class ThriftReader:
    """A place in bytes from which structures are read, one after another.

    Parameters
    ----------
    data
        The bytes.
    at
        Where the first structure begins; afterwards, the byte after the last one read.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self.at = data, at

    def structure(self, depth: int = 0) -> Structure:
        """Return the next structure."""
        if depth > DEEPEST:
            raise ThriftError("structures are nested too deeply.")
        fields = Structure()
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in WHOLE:
            return self._signed()
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind == STRUCT:
            return self.structure(depth + 1)
        if kind == LIST:
            return self._list(depth + 1)
        if kind == DOUBLE:
            return self._bytes(8)
        # In a list, a truth value takes a byte.
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        raise ThriftError(f"there are no values of kind {kind}.")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length, kind = head >> 4, head & 15
        length = self._unsigned() if length == LONG else length
        return [self._value(kind, depth) for _ in range(length)]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        start, self.at = self.at, self.at + length
        if not 0 <= start <= self.at <= len(self._data):
            raise ThriftError("the bytes end before the structure does.")
        return self._data[start : self.at]

    def _unsigned(self) -> int:
        result = 0
        for place in range(LONGEST_NUMBER):
            byte = self._byte()
            result |= (byte & 127) << 7 * place
            if byte < 128:
                return result
        raise ThriftError("a number has too many bytes.")

    def _signed(self) -> int:
        coded = self._unsigned()
        return coded >> 1 ^ -(coded & 1)
