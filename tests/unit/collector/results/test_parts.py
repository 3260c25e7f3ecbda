"""The files of the data set: no bit of one can change and what it says with it, unnoticed."""

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.store import Store
from collector.results.dataset.columns import ATTEMPTS, ENVIRONMENTS, STEPS, TENANTS
from collector.results.dataset.digests import DamagedPartError
from collector.results.dataset.parts import list_parts, parse_rows
from collector.results.load import load_run
from factories import RUN_ID, make_cell, make_result, make_run, put_documents
from parquet_bombs import dump_table

NUM_PLACES = 200
"""Bytes of a file of which a bit is turned, at equal distances: several in each column and in what describes them."""


def read_file(store: Store, table: str) -> bytes:
    [part] = list_parts(store, ATTEMPTS, RUN_ID)
    return store.get(part.key_of(table))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(f"file://{tmp_path_factory.mktemp('store')}")
    cell = make_cell()
    results = [make_result(cell, repeat=number, step_seconds=(0.1 * number, 0.25, 0.3)) for number in (1, 2, 3)]
    put_documents(store, make_run([cell], repeats=3), results)
    load_run(store, RUN_ID, writes_tables=True)
    return store


@pytest.mark.parametrize("table", [ATTEMPTS, STEPS, ENVIRONMENTS])
def test_a_bit_that_turned_is_found_or_changes_nothing(store: Store, table: str) -> None:
    """`benchmatrix clean` deletes raw results because their rows are there."""
    data = read_file(store, table)
    whole = parse_rows(data, "key", table)
    num_found = 0
    for place in range(0, len(data), len(data) // NUM_PLACES):
        turned = bytearray(data)
        turned[place] ^= 1 << place % 8
        with suppress(DamagedPartError):
            assert parse_rows(bytes(turned), "key", table).equals(whole), place
            continue
        num_found += 1
    assert num_found > 0.9 * NUM_PLACES


def test_a_text_that_is_no_utf8_is_damage(tmp_path: Path) -> None:
    lengths = pa.array([0, 2], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 1, [None, lengths, pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"environment_document": broken}), tmp_path / "part")
    with pytest.raises(DamagedPartError, match="key: .*UTF8"):
        parse_rows((tmp_path / "part").read_bytes(), "key", ENVIRONMENTS)


def test_a_file_of_an_earlier_version_has_no_digest_and_is_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"hostname": ["host-1"]}), tmp_path / "part")
    rows = parse_rows((tmp_path / "part").read_bytes(), "key", ENVIRONMENTS, ["hostname"])
    assert rows.to_pylist() == [{"hostname": "host-1"}]


@pytest.mark.parametrize("table", [ATTEMPTS, TENANTS])
def test_a_column_that_had_another_name_is_read(table: str) -> None:
    old = pa.table({"key": ["runs/a"], "throughput_samples_per_s": [640.0]})
    found = parse_rows(dump_table(old), "key", table, ("key", "window_samples_per_s"))
    assert found.to_pylist() == [{"key": "runs/a", "window_samples_per_s": 640.0}]
