"""Small Parquet files that become large: whoever reads one as Arrow does takes gigabytes for it."""

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collector.results.dataset.digests import DIGEST_FIELD, METADATA_KEY

LONG = 2**20


def dump_table(table: pa.Table, **options: Any) -> bytes:
    """Return a table as a Parquet file: one of the data set without its digest, as an earlier version wrote it."""
    metadata = dict(table.schema.metadata or {})
    if METADATA_KEY in metadata:
        said = {name: value for name, value in json.loads(metadata[METADATA_KEY]).items() if name != DIGEST_FIELD}
        metadata[METADATA_KEY] = json.dumps(said).encode()
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), file, compression="zstd", **options)
    return file.getvalue()


def make_long_texts(num_rows: int) -> pa.DictionaryArray:
    """Return a column in which one text of a megabyte stands again and again; in a file it is there once."""
    indices = pa.array(np.zeros(num_rows, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(["a" * LONG]))


def make_long_list(num_values: int) -> pa.ListArray:
    """Return a column of one row: a list of zeros."""
    values = pa.array(np.zeros(num_values, dtype=np.int8))
    return pa.ListArray.from_arrays(pa.array([0, num_values], pa.int32()), values)


def deny_rows(data: bytes, rows: int, said: int) -> bytes:
    """Return a file of `rows` rows that says it has `said`; both take two bytes in the footer."""
    old, new = (_write_varint(2 * number) for number in (rows, said))
    assert len(old) == len(new) == 2
    for place in range(len(data) - len(old)):
        if data[place : place + len(old)] == old:
            changed = data[:place] + new + data[place + len(old) :]
            try:
                if pq.read_metadata(io.BytesIO(changed)).num_rows == said:
                    return changed
            except OSError:
                continue
    raise AssertionError("the number of rows is not in the footer")


def _write_varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])
