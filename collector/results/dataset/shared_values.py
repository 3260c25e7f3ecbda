"""Hold columns whose rows all say the same in little memory: a run's results agree in most of what they say."""

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

PIECE_ROWS = 512
"""A column of one value is this piece again and again, each time the same memory."""
MAX_PIECES = 256
"""Pieces that are kept for further parts: the columns of two kinds of results, in 8 MB."""
MAX_VALUE_CHARACTERS = 1024
"""Longer texts, such as the last lines of a process, are not looked at: few results have the same."""


def share_values(rows: pa.Table) -> pa.Table:
    """Return the rows with little memory behind each column that has one value, or none, in all of them.

    Half of the columns of most runs have no value: what GPUs say of CPU cells, errors of attempts that had none. Of the
    others, half say the same of all results of a part: machine, versions, what was not varied.
    """
    columns = [_share(column) if rows.num_rows > PIECE_ROWS else column for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _share(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.null_count == len(column):
        value = None
    elif column.null_count or not _has_one_value(column):
        return column
    else:
        value = column[0].as_py()
    piece = _make_piece(column.type, value)
    whole, rest = divmod(len(column), PIECE_ROWS)
    return pa.chunked_array([*[piece] * whole, piece.slice(0, rest)], type=column.type)


def _has_one_value(column: pa.ChunkedArray) -> bool:
    """Return whether all rows have the same value. Floats are not looked at: 0.0 and -0.0 are equal, and are two."""
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        return False
    first = column[0]
    if column[-1] != first or (pa.types.is_string(column.type) and len(first.as_py()) > MAX_VALUE_CHARACTERS):
        return False
    return bool(pc.all(pc.equal(column, first)).as_py())


@lru_cache(maxsize=MAX_PIECES)
def _make_piece(kind: pa.DataType, value: object) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), PIECE_ROWS)
