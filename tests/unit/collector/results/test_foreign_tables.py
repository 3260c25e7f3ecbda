"""Files of the data set that somebody else wrote: named, and made anew from the documents."""

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.errors import UserError
from bench.schema import Failure
from bench.store import Store
from collector.results.collection import Collection
from collector.results.dataset.columns import ATTEMPTS, STEPS
from collector.results.load import load_run
from collector.results.summary import summarize_cells
from factories import RUN_ID, make_cell, make_failed_result, make_result, make_roofline, make_run, put_documents
from parquet_bombs import dump_table, make_long_texts


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Store.open(f"file://{tmp_path}/store")


def put_run(store: Store) -> None:
    """Put a run with two results of each of two cells."""
    cells = [make_cell(batch_size=size) for size in (1, 2)]
    results = [make_result(cell, repeat=repeat) for cell in cells for repeat in (1, 2)]
    put_documents(store, make_run(cells, repeats=2), results)


def collect(store: Store) -> Collection:
    return load_run(store, RUN_ID, writes_tables=True)


def find_key(store: Store, table: str) -> str:
    (key,) = [found.key for found in store.list_objects(f"tables/{table}/{RUN_ID}")]
    return key


def assert_same(actual: Collection, expected: Collection) -> None:
    pd.testing.assert_frame_equal(actual.results, expected.results)
    pd.testing.assert_frame_equal(actual.samples, expected.samples)


def test_a_file_that_would_unpack_to_gigabytes_is_named_and_its_documents_are_read_anew(store: Store) -> None:
    put_run(store)
    expected = collect(store)
    key = find_key(store, ATTEMPTS)
    store.put(key, dump_table(pa.table({"key": make_long_texts(8192), "object_version": ["1"] * 8192})))

    found = collect(store)

    assert_same(found, expected)
    (notice,) = found.notices
    assert notice.startswith(f"{key}: it unpacks to 8,5")
    assert notice.endswith("its documents are read anew")
    assert collect(store).notices == ()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("median_step_seconds", 1e300, "median_step_seconds has a value beyond 1e+24"),
        ("framework", "caffe", "framework has a word that no document has"),
        ("repeat", None, "a row without repeat"),
        ("batch_size", 2**63 - 1, "batch_size has a value beyond 4611686018427387904"),
        ("started_at", datetime(1970, 1, 1, tzinfo=UTC), "started_at has a time that no document can hold"),
        ("num_steps", "many", "a column of another type"),
    ],
)
def test_rows_that_no_document_could_have_said_are_named_and_read_anew(
    store: Store, name: str, value: object, words: str
) -> None:
    put_run(store)
    expected = collect(store)
    key = find_key(store, ATTEMPTS)
    table = pq.read_table(pa.BufferReader(store.get(key)))
    column = pa.array([value] * table.num_rows)
    store.put(key, dump_table(table.set_column(table.column_names.index(name), name, column)))

    found = collect(store)

    assert_same(found, expected)
    assert [words in notice for notice in found.notices] == [True]


def test_integers_that_a_document_may_have_are_no_damage(store: Store) -> None:
    roofline = make_roofline(flops_per_step=2**63 - 1, least_flops_per_step=2**63 - 1)
    failure = Failure(kind="exception", message="it broke", exit_code=-(2**63))
    # A step of this cell takes about as many operations as an integer of 64 bits can hold.
    cell = make_cell(model="resnet50", batch_size=450_000_000, input_size=224, num_classes=1000)
    results = [make_result(cell, roofline=roofline), make_failed_result(cell, repeat=2, error=failure)]
    put_documents(store, make_run([cell], repeats=2), results)
    assert collect(store).notices == ()
    found = collect(store)
    assert found.notices == ()
    assert found.results["flops_per_step"].max() == 2**63 - 1
    assert found.results["exit_code"].min() == -(2**63)


def test_step_times_that_are_not_those_of_the_results_are_an_error_that_names_their_file(store: Store) -> None:
    put_run(store)
    collect(store)
    key = find_key(store, STEPS)
    table = pq.read_table(pa.BufferReader(store.get(key)))
    empty = pa.array([[]] * table.num_rows, pa.list_(pa.float64()))
    store.put(key, dump_table(table.set_column(table.column_names.index("step_seconds"), "step_seconds", empty)))

    with pytest.raises(UserError, match=rf"{key} has \d+ of the \d+ steps of .*--rebuild"):
        summarize_cells(load_run(store, RUN_ID))
