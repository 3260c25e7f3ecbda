"""Decodes Thrift's compact protocol, in which a Parquet file describes itself; for bytes that anybody may have written.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md. Nothing is trusted: lengths, nesting
and the number of values are bounded, and no field stands twice, since readers differ in which one they take.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

MAX_VARINT_BYTES = 10
MAX_DEPTH = 16
"""Of structs and lists in each other: a footer of Parquet has seven levels."""
MAX_VALUES = 400_000
"""Of one struct with all that is in it. A file with 150 columns and 20 row groups has 100,000."""


class ThriftError(ValueError):
    """The bytes are no struct of Thrift's compact protocol, or not the one that is expected; one line."""


class Wire(IntEnum):
    """Types of values."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12


Value = tuple[int, Any]
"""The type of a value, and the value: an integer, bytes, a list of values, or a struct; None of others."""
Struct = Mapping[int, Value]
"""Values by the ids of their fields."""


def take_integer(struct: Struct, identity: int, kind: Wire) -> int:
    """Return an integer field that must be there with this very type: Parquet's readers pass others by."""
    found = find_integer(struct, identity, kind)
    if found is None:
        raise ThriftError(f"a field {identity} is missing")
    return found


def find_integer(struct: Struct, identity: int, kind: Wire) -> int | None:
    """Return an integer field; None if there is none."""
    found, value = struct.get(identity, (kind, None))
    if found != kind:
        raise ThriftError(f"a field {identity} of type {found}")
    return None if value is None else int(value)


def take_struct(struct: Struct, identity: int) -> Struct:
    """Return a field that must be a struct."""
    kind, value = struct.get(identity, (Wire.STRUCT, None))
    if kind != Wire.STRUCT or not isinstance(value, dict):
        raise ThriftError(f"a field {identity} that is no struct")
    return value


def take_list(struct: Struct, identity: int, kind: Wire) -> Sequence[Any]:
    """Return a field that must be a list of values of a type."""
    wire, values = struct.get(identity, (None, ()))
    if wire != Wire.LIST or any(one != kind for one, _ in values):
        raise ThriftError(f"a field {identity} that is no list of type {kind}")
    return [value for _, value in values]


def read_struct(data: memoryview, place: int) -> tuple[Struct, int]:
    """Return the struct at a place, and the place behind it; ThriftError where there is none."""
    reader = _Reader(data, place)
    return reader.read_struct(0), reader.place


class _Reader:
    def __init__(self, data: memoryview, place: int) -> None:
        self._data = data
        self.place = place
        self._left = MAX_VALUES

    def read_struct(self, depth: int) -> Struct:
        if depth > MAX_DEPTH:
            raise ThriftError("nested too deep")
        fields: dict[int, Value] = {}
        identity = 0
        while mark := self._read_byte():
            identity = identity + (mark >> 4) if mark >> 4 else self._read_signed()
            if identity in fields:
                raise ThriftError(f"a field {identity} that stands twice")
            kind = mark & 15
            fields[identity] = (kind, None) if kind in (Wire.TRUE, Wire.FALSE) else self._read_value(kind, depth)
        return fields

    def _read_value(self, kind: int, depth: int) -> Value:
        self._left -= 1
        if self._left < 0:
            raise ThriftError(f"more than {MAX_VALUES:,} values")
        if kind in (Wire.I16, Wire.I32, Wire.I64):
            return kind, self._read_signed()
        if kind == Wire.BINARY:
            return kind, self._read_bytes(self._read_varint())
        if kind == Wire.STRUCT:
            return kind, self.read_struct(depth + 1)
        if kind in (Wire.LIST, Wire.SET):
            return kind, self._read_list(depth + 1)
        if kind in (Wire.BYTE, Wire.TRUE, Wire.FALSE, Wire.DOUBLE):  # of a list: a byte each, but a double
            self._read_bytes(8 if kind == Wire.DOUBLE else 1)
            return kind, None
        raise ThriftError(f"a value of type {kind}")  # maps: Parquet has none

    def _read_list(self, depth: int) -> list[Value]:
        if depth > MAX_DEPTH:
            raise ThriftError("nested too deep")
        mark = self._read_byte()
        number = mark >> 4
        if number == 15:
            number = self._read_varint()
        return [self._read_value(mark & 15, depth) for _ in range(number)]

    def _read_signed(self) -> int:
        value = self._read_varint()
        return (value >> 1) ^ -(value & 1)

    def _read_varint(self) -> int:
        value = 0
        for index in range(MAX_VARINT_BYTES):
            byte = self._read_byte()
            value |= (byte & 127) << (7 * index)
            if byte < 128:
                return value
        raise ThriftError("a number that does not end")

    def _read_bytes(self, length: int) -> bytes:
        if self.place + length > len(self._data):
            raise ThriftError("cut off")
        self.place += length
        return bytes(self._data[self.place - length : self.place])

    def _read_byte(self) -> int:
        if self.place >= len(self._data):
            raise ThriftError("cut off")
        self.place += 1
        return self._data[self.place - 1]
