"""Reads Parquet files that anybody may have written: what they become in memory is bounded before it is taken.

A few kilobytes can say 2^40 rows, hold pages that unpack to gigabytes, or texts that stand once in a dictionary and a
million times in the column. Sizes are taken from the headers of the pages, by which Arrow allocates, and not from the
file's own summary of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collector.parquet_layout import (
    BYTE_ARRAY,
    DELTA_BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY,
    MAX_FOOTER_BYTES,
    Chunk,
    Layout,
    LayoutError,
    read_layout,
    read_pages,
)
from collector.thrift_compact import ThriftError

MAX_THRIFT_ITEMS = 4096
"""Columns, row groups or levels of nesting of one file: Arrow goes down the levels by recursion."""
VALUE_BYTES = 8
"""What a value takes at least: a float, an offset, an index."""


class ForeignParquetError(ValueError):
    """A file is no Parquet file that can be relied on; the message is the reason in words, in one line."""


@dataclass(frozen=True, kw_only=True)
class ParquetLimits:
    """How much a file may become."""

    max_rows: int
    max_bytes: int
    """In memory, of the columns that are read."""


def read_foreign_parquet(data: bytes, limits: ParquetLimits, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a Parquet file, of all columns or of those of `columns` that it has.

    ForeignParquetError where it cannot be read, or would take more than `limits`.
    """
    try:
        return _read(data, limits, columns)
    except ForeignParquetError:
        raise
    except (ThriftError, LayoutError) as error:
        raise ForeignParquetError(f"no whole Parquet file: {error}") from None
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise ForeignParquetError(f"no whole Parquet file: {' '.join(str(error).split())[:200]}") from error


def _read(data: bytes, limits: ParquetLimits, columns: Sequence[str] | None) -> pa.Table:
    layout = read_layout(data)
    if layout.num_rows > limits.max_rows:
        raise ForeignParquetError(f"it has {layout.num_rows:,} rows, more than {limits.max_rows:,}")
    file = _open(data)
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise ForeignParquetError("two of its columns have the same name")
    chosen = [name for name in names if columns is None or name in columns]
    weights = _weigh(memoryview(data), layout, chosen)
    plain = sum(weight.num_bytes for weight in weights.values())
    if plain > limits.max_bytes:
        raise _too_large(plain, limits)
    if plain + sum(weight.num_dictionary_bytes for weight in weights.values()) <= limits.max_bytes:
        return file.read(columns=chosen, use_threads=False)  # several threads gain nothing, and each keeps memory
    return _read_by_dictionaries(data, chosen, weights, limits, plain)


def _open(data: bytes, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    return pq.ParquetFile(
        # Not a file object of Python: Arrow's threads would read from it, and now and then end the process at its exit
        # (https://github.com/apache/arrow/issues/34314, 50482).
        pa.BufferReader(data),
        read_dictionary=list(read_dictionary),
        thrift_string_size_limit=MAX_FOOTER_BYTES,
        thrift_container_size_limit=MAX_THRIFT_ITEMS,
    )


@dataclass(kw_only=True)
class Weight:
    """What one column becomes at the most."""

    num_bytes: int = 0
    """Of its pages, and of its values as far as they have a fixed size."""
    num_dictionary_bytes: int = 0
    """If every value were as long as the whole dictionary that it is from."""

    def add(self, data: memoryview, chunk: Chunk) -> None:
        """Add the pages of a chunk; ForeignParquetError for an encoding without a bound."""
        dictionary_bytes = num_values = 0
        for page in read_pages(data, chunk):
            if page.encoding == DELTA_BYTE_ARRAY:
                raise ForeignParquetError("texts that are told by their differences (DELTA_BYTE_ARRAY) are not read")
            self.num_bytes += max(page.unpacked_bytes, VALUE_BYTES * page.num_values)
            if page.is_dictionary:
                dictionary_bytes += page.unpacked_bytes
            else:
                num_values += page.num_values
        if chunk.physical_type in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY):
            self.num_dictionary_bytes += dictionary_bytes * num_values


def _weigh(data: memoryview, layout: Layout, names: Sequence[str]) -> dict[str, Weight]:
    """Return the weight of each of these columns."""
    weights = {name: Weight() for name in names}
    for chunk in layout.chunks:
        name = _find_column(chunk.path, weights)
        if name is not None:
            weights[name].add(data, chunk)
    return weights


def _find_column(path: str, weights: dict[str, Weight]) -> str | None:
    """Return the column of a leaf, whose path is the name or begins with it; names may hold dots."""
    if path in weights:
        return path
    return next((name for name in weights if path.startswith(f"{name}.")), None)


def _read_by_dictionaries(
    data: bytes, names: Sequence[str], weights: dict[str, Weight], limits: ParquetLimits, plain: int
) -> pa.Table:
    """Read columns with a dictionary as indices into it, and unfold them if they are found to fit."""
    folded = [name for name in names if weights[name].num_dictionary_bytes]
    file = _open(data, folded)
    for name in folded:
        if not pa.types.is_dictionary(file.schema_arrow.field(name).type):
            raise ForeignParquetError(f"the column {name[:100]!r} has a dictionary and is no text")
    table = file.read(columns=list(names), use_threads=False)
    unfolded = plain + sum(_measure(table[name]) for name in folded)
    if unfolded > limits.max_bytes:
        raise _too_large(unfolded, limits)
    columns = [table[name].cast(table[name].type.value_type) if name in folded else table[name] for name in names]
    return pa.table(columns, names=list(names)).replace_schema_metadata(table.schema.metadata)


def _measure(column: pa.ChunkedArray) -> int:
    """Return the bytes of all texts of a column of indices."""
    total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return total


def _too_large(num_bytes: int, limits: ParquetLimits) -> ForeignParquetError:
    return ForeignParquetError(f"it unpacks to {num_bytes:,} bytes, more than {limits.max_bytes:,}")
