"""Reads what a Parquet file says of itself: its columns, and how large each page becomes when it is unpacked.

Arrow allocates what the header of a page says, without a limit. Python's objects for a file's metadata end the process
if the file lies (pyarrow's `RowGroupMetaData.column` does not catch what its C++ throws): they are not used. The ids of
the fields: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collector.thrift_compact import Struct, Wire, find_integer, read_struct, take_integer, take_list, take_struct

MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 4 * 2**20
"""A part with 150 columns has 50 KB of it."""
BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY = 6, 7
"""Physical types (`Type`) of texts and bytes."""
DELTA_BYTE_ARRAY = 7
"""The encoding (`Encoding`) of texts by what each has in common with the one before it."""
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
"""Kinds of pages (`PageType`)."""
DETAILS = {DATA_PAGE: (5, 2), DICTIONARY_PAGE: (7, 2), DATA_PAGE_V2: (8, 4)}
"""By the kind of a page: the field of PageHeader with its details, and in these the field of the encoding."""


class LayoutError(ValueError):
    """A file is not laid out as Parquet; the message is a line without the place."""


@dataclass(frozen=True)
class Chunk:
    """One leaf of a column in one row group."""

    path: str
    physical_type: int
    num_values: int
    start: int
    end: int
    """Where its pages are in the file."""


@dataclass(frozen=True)
class Layout:
    """What a file says of itself."""

    num_rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Page:
    """What the header of a page says."""

    unpacked_bytes: int
    num_values: int
    is_dictionary: bool
    encoding: int


def read_layout(data: bytes) -> Layout:
    """Return the layout of a Parquet file; LayoutError or ThriftError where it has none."""
    if len(data) < 3 * len(MAGIC) or not (data.startswith(MAGIC) and data.endswith(MAGIC)):
        raise LayoutError("it does not begin and end with PAR1")
    length = int.from_bytes(data[-8:-4], "little")
    if length > min(MAX_FOOTER_BYTES, len(data) - 12):
        raise LayoutError(f"a footer of {length:,} bytes")
    footer, _ = read_struct(memoryview(data)[:-8], len(data) - 8 - length)
    num_rows = take_integer(footer, 3, Wire.I64)
    groups = take_list(footer, 4, Wire.STRUCT)
    numbers = [take_integer(group, 3, Wire.I64) for group in groups]
    if min(numbers, default=0) < 0 or sum(numbers) != num_rows:
        raise LayoutError("its row groups have other rows than it says")
    columns = [column for group in groups for column in take_list(group, 1, Wire.STRUCT)]
    return Layout(num_rows=num_rows, chunks=tuple(_read_chunk(column, len(data)) for column in columns))


def _read_chunk(column: Struct, file_bytes: int) -> Chunk:
    if 1 in column or 8 in column:
        raise LayoutError("a column in another file, or an encrypted one")
    said = take_struct(column, 3)
    start, length = take_integer(said, 9, Wire.I64), take_integer(said, 7, Wire.I64)
    dictionary = find_integer(said, 11, Wire.I64)
    num_values = take_integer(said, 5, Wire.I64)
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    if num_values < 0 or start < 0 or length < 0 or start + length > file_bytes:
        raise LayoutError("a column outside of the file")
    path = b".".join(take_list(said, 3, Wire.BINARY)).decode(errors="replace")
    physical_type = take_integer(said, 1, Wire.I32)
    return Chunk(path=path, physical_type=physical_type, num_values=num_values, start=start, end=start + length)


def read_pages(data: memoryview, chunk: Chunk) -> Iterator[Page]:
    """Yield the pages of a chunk; LayoutError or ThriftError where there is something else.

    Of a chunk without values Arrow reads no page, and writes a place before the file as that of its first.
    """
    place = chunk.start if chunk.num_values else chunk.end
    while place < chunk.end:
        header, place = read_struct(data, place)
        kind, unpacked, packed = (take_integer(header, identity, Wire.I32) for identity in (1, 2, 3))
        place += packed
        if packed < 0 or unpacked < 0 or place > chunk.end:
            raise LayoutError("a page that is longer than its column")
        if kind in DETAILS:
            identity, encoding = DETAILS[kind]
            details = take_struct(header, identity)
            num_values = take_integer(details, 1, Wire.I32)
            if num_values < 0:
                raise LayoutError("a page with less than no values")
            yield Page(
                unpacked_bytes=unpacked,
                num_values=num_values,
                is_dictionary=kind == DICTIONARY_PAGE,
                encoding=take_integer(details, encoding, Wire.I32),
            )
