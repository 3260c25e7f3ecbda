"""Parquet files that are not what they say: refused before they take memory, in one line."""

import random
import resource

import numpy as np
import pyarrow as pa
import pytest

from collector.foreign_parquet import ForeignParquetError, ParquetLimits, read_foreign_parquet
from parquet_bombs import LONG, deny_rows, dump_table, make_long_list, make_long_texts

LIMITS = ParquetLimits(max_rows=5000, max_bytes=4 * 2**20)
ROWS = pa.table(
    {
        "number": [1, None, 3],
        "text": ["a", "b", None],
        "a.b": [0.5, 1.5, 2.5],
        "list": [[1.0, 2.0], [], None],
        "yes": [True, False, None],
    }
)


def refuse(data: bytes, limits: ParquetLimits = LIMITS, columns: tuple[str, ...] | None = None) -> str:
    with pytest.raises(ForeignParquetError) as caught:
        read_foreign_parquet(data, limits, columns)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_a_file_within_its_limits_is_read_as_it_is(version: str, is_dictionary: bool) -> None:
    data = dump_table(ROWS, data_page_version=version, use_dictionary=is_dictionary)
    assert read_foreign_parquet(data, LIMITS).equals(ROWS)
    assert read_foreign_parquet(data, LIMITS, ("text", "no such")).equals(ROWS.select(["text"]))


def test_a_file_without_rows_is_read() -> None:
    empty = ROWS.slice(0, 0)
    assert read_foreign_parquet(dump_table(empty), LIMITS).equals(empty)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "does not begin and end with PAR1"),
        (b"PAR1PAR1", "does not begin and end with PAR1"),
        (b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "a footer of 2,147,483,647 bytes"),
        (b"PAR1" + bytes(100) + b"\x20\x00\x00\x00" + b"PAR1", "no whole Parquet file"),
        (b"PAR1 is what it begins with, and nothing else", "does not begin and end with PAR1"),
        (dump_table(ROWS)[:-40] + b"PAR1", "no whole Parquet file"),
    ],
)
def test_what_is_no_parquet_file_is_said_to_be_none(data: bytes, words: str) -> None:
    assert words in refuse(data)


def test_one_text_that_stands_a_thousand_times_is_unfolded_only_where_it_fits() -> None:
    table = pa.table({"text": make_long_texts(1000), "number": list(range(1000))})
    data = dump_table(table)
    assert len(data) < 4000
    assert "it unpacks to 1,049," in refuse(data)  # 1000 times 2**20, and the pages
    short = read_foreign_parquet(data, LIMITS, ("number",))
    assert short["number"].to_pylist() == list(range(1000))
    few = dump_table(pa.table({"text": make_long_texts(2)}))
    assert [len(text) for text in read_foreign_parquet(few, LIMITS)["text"].to_pylist()] == [LONG, LONG]


def test_different_texts_of_a_dictionary_that_fit_together_are_read() -> None:
    """Their dictionary times their number is more than the limit; all of them together are not."""
    texts = [str(number) * 50 for number in range(400)]
    assert read_foreign_parquet(dump_table(pa.table({"text": texts})), LIMITS)["text"].to_pylist() == texts


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": np.zeros(1_000_000)}),
        pa.table({"x": pa.nulls(1_000_000, pa.float64())}),
        pa.table({"x": pa.nulls(1_000_000)}),
        pa.table({"x": make_long_list(1_000_000)}),
    ],
    ids=["zeros", "missing", "null", "list"],
)
def test_few_bytes_that_become_many_values_are_refused_by_their_size(table: pa.Table) -> None:
    data = dump_table(table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "it unpacks to" in refuse(data, ParquetLimits(max_rows=2**40, max_bytes=2**20))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


def test_too_many_rows_are_refused_by_their_number() -> None:
    assert refuse(dump_table(pa.table({"x": pa.nulls(5001)}))) == "it has 5,001 rows, more than 5,000"


def test_a_file_that_denies_its_rows_is_refused() -> None:
    data = dump_table(pa.table({"x": list(range(2000))}))
    assert refuse(deny_rows(data, 2000, 100)) == "no whole Parquet file: its row groups have other rows than it says"


def test_texts_that_are_told_by_their_differences_are_refused() -> None:
    """A page of kilobytes can hold thousands of long texts that differ in their last letter."""
    data = dump_table(ROWS, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    assert "DELTA_BYTE_ARRAY" in refuse(data)
    assert read_foreign_parquet(data, LIMITS, ("number",)).num_rows == 3


def test_columns_of_the_same_name_are_refused() -> None:
    assert "same name" in refuse(dump_table(pa.table([[1], [2]], names=["x", "x"])))


def test_levels_without_end_are_refused() -> None:
    kind = pa.float64()
    for _ in range(500):
        kind = pa.struct({"a": kind})
    assert "no whole Parquet file" in refuse(dump_table(pa.table({"x": pa.nulls(1, kind)})))


def test_a_file_with_any_byte_changed_is_read_or_refused() -> None:
    data, rng = dump_table(ROWS), random.Random(7)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 3])):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        try:
            found = read_foreign_parquet(bytes(changed), LIMITS)
        except ForeignParquetError:
            continue
        assert found.num_rows <= LIMITS.max_rows
