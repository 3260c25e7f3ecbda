"""Structs of Thrift's compact protocol, by hand: read as the protocol has them, refused where readers may differ."""

import pytest

from collector.thrift_compact import ThriftError, Wire, find_integer, read_struct, take_integer, take_list, take_struct

# Field 1, i32: 7 (zigzag 14). Field 3, i64: -1 (zigzag 1). Field 4, struct with field 1, binary "ab". Field 40, list of
# two i32 (2, 3), whose id does not fit into four bits: zigzag 80. End.
STRUCT = bytes([0x15, 14, 0x26, 1, 0x1C, 0x18, 2, 0x61, 0x62, 0, 0x09, 80, 0x25, 4, 6, 0])


def test_a_struct_is_read_with_its_types() -> None:
    found, place = read_struct(memoryview(b"?" + STRUCT + b"rest"), 1)
    assert place == 1 + len(STRUCT)
    assert take_integer(found, 1, Wire.I32) == 7
    assert take_integer(found, 3, Wire.I64) == -1
    assert take_struct(found, 4) == {1: (Wire.BINARY, b"ab")}
    assert take_list(found, 40, Wire.I32) == [2, 3]
    assert find_integer(found, 9, Wire.I64) is None


@pytest.mark.parametrize(
    ("identity", "kind"), [(1, Wire.I64), (3, Wire.I32), (4, Wire.I32), (9, Wire.I32)], ids=lambda value: str(value)
)
def test_an_integer_of_another_type_is_refused(identity: int, kind: Wire) -> None:
    found, _ = read_struct(memoryview(STRUCT), 0)
    with pytest.raises(ThriftError):
        take_integer(found, identity, kind)


def test_what_is_no_struct_or_list_is_refused() -> None:
    found, _ = read_struct(memoryview(STRUCT), 0)
    with pytest.raises(ThriftError):
        take_struct(found, 1)
    with pytest.raises(ThriftError):
        take_list(found, 40, Wire.STRUCT)
    with pytest.raises(ThriftError):
        take_list(found, 7, Wire.STRUCT)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cut off"),
        (b"\x15", "cut off"),
        (b"\x15\x0e", "cut off"),
        (b"\x18\x7fab", "cut off"),
        (b"\x15" + b"\xff" * 11, "a number that does not end"),
        (b"\x1c" * 100, "nested too deep"),
        (b"\x19" * 100, "nested too deep"),
        (b"\x1b\x01\x00", "a value of type 11"),
        (b"\x1d\x00", "a value of type 13"),
        (b"\x15\x02\x05\x02\x04\x00", "a field 1 that stands twice"),
        (b"\x19\xf5\xff\xff\xff\x7f" + b"\x02" * 400_010, "more than 400,000 values"),
    ],
    ids=lambda value: repr(value[:8]),
)
def test_what_cannot_be_relied_on_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ThriftError, match=words):
        read_struct(memoryview(data), 0)
