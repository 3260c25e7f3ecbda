"""Columns of one value take little memory, and say what they said."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from collector.results.dataset.shared_values import MAX_VALUE_CHARACTERS, PIECE_ROWS, share_values

NUM_ROWS = 3 * PIECE_ROWS + 7
LONG = "x" * (MAX_VALUE_CHARACTERS + 1)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "NVIDIA H200"),
        (pa.string(), None),
        (pa.int64(), 2**62 + 1),
        (pa.bool_(), True),
        (pa.float64(), None),
        (pa.timestamp("us", tz="UTC"), datetime(2026, 11, 22, 3, tzinfo=UTC)),
    ],
)
def test_a_column_of_one_value_is_one_piece_again_and_again(kind: pa.DataType, value: object) -> None:
    rows = pa.table({"column": pa.array([value] * NUM_ROWS, kind), "number": list(range(NUM_ROWS))})
    shared = share_values(rows)
    assert shared.equals(rows)
    assert shared.schema == rows.schema
    addresses = {chunk.buffers()[-1].address for chunk in shared["column"].chunks if chunk.buffers()[-1] is not None}
    assert len(addresses) <= 1
    assert shared["number"].num_chunks == 1


@pytest.mark.parametrize(
    "values",
    [
        ["a"] * (NUM_ROWS - 1) + ["b"],
        ["a"] * (NUM_ROWS // 2) + ["b"] + ["a"] * (NUM_ROWS - NUM_ROWS // 2 - 1),
        ["a"] * (NUM_ROWS - 1) + [None],
        [LONG] * NUM_ROWS,
        [0.0] * (NUM_ROWS - 1) + [-0.0],
        [[1.0]] * NUM_ROWS,
    ],
)
def test_other_columns_stay_as_they_are(values: list[object]) -> None:
    rows = pa.table({"column": pa.array(values)})
    shared = share_values(rows)
    assert str(shared["column"].to_pylist()) == str(values)  # which tells -0.0 from 0.0
    assert shared["column"].num_chunks == 1


def test_one_and_true_are_not_taken_for_each_other() -> None:
    rows = pa.table({"number": pa.array([1] * NUM_ROWS), "truth": pa.array([True] * NUM_ROWS)})
    assert share_values(rows).equals(rows)
    assert share_values(rows.select(["truth", "number"])).equals(rows.select(["truth", "number"]))
