"""Tenants through the data set and back: each has its row and its raw steps, and older tables are still read."""

import pytest

from bench.schema import Result
from bench.store import Store
from collector.results.collection import Collection
from collector.results.frames import TENANT_COLUMNS
from collector.results.load import load_run
from factories import RUN_ID, make_result, make_run, put_documents
from shared_runs import TRAINING, make_fallen_result, make_gpu_cell, make_tenants_result

CELLS = [make_gpu_cell(), make_gpu_cell(tenants=3), make_gpu_cell(phase="infer", tenants=2, neighbour=TRAINING)]
RESULTS = [
    make_result(CELLS[0], step_seconds=(0.1, 0.2, 0.3)),
    make_tenants_result(CELLS[1], (3.0, 4.0), (1.5,) * 5, (2.5, 3.0, 3.5), attempt="b2"),
    make_tenants_result(CELLS[2], (2.0,) * 4, (3.5, 4.5), repeat=2),
]


def collect(store: Store, *results: Result) -> Collection:
    """Put results as a run and return what is read back from Parquet files."""
    put_documents(store, make_run(CELLS, repeats=2), results)
    load_run(store, RUN_ID, writes_tables=True)
    return load_run(store, RUN_ID)


def test_each_tenant_has_a_row_in_the_order_of_the_plan(store: Store) -> None:
    tenants = collect(store, *RESULTS).tenants
    assert list(tenants.columns) == list(TENANT_COLUMNS)
    train, infer = make_gpu_cell(batch_size=32), make_gpu_cell(phase="infer")
    columns = ["cell_id", "repeat", "tenant", "alone_cell_id", "batch_size", "num_steps_taken"]
    assert list(tenants[columns].itertuples(index=False, name=None)) == [
        (CELLS[1].cell_id, 1, 0, CELLS[0].cell_id, 64, 2),
        (CELLS[1].cell_id, 1, 1, CELLS[0].cell_id, 64, 5),
        (CELLS[1].cell_id, 1, 2, CELLS[0].cell_id, 64, 3),
        (CELLS[2].cell_id, 2, 0, infer.cell_id, 64, 4),
        (CELLS[2].cell_id, 2, 1, train.cell_id, 32, 2),
    ]
    # Steps times batch over the seconds from the first step's start to the last one's end.
    rates = [2 * 64 / 7, 5 * 64 / 7.5, 3 * 64 / 9, 4 * 64 / 8, 2 * 32 / 8]
    assert tenants["window_samples_per_s"].to_list() == pytest.approx(rates)
    assert set(tenants["window_seconds"]) == {10.0}


def test_every_step_says_whose_it_is(store: Store) -> None:
    samples = collect(store, *RESULTS).samples
    timed = samples[samples["kind"] == "timed"]
    keys = ["cell_id", "repeat", "tenant"]
    assert {key: rows["seconds"].to_list() for key, rows in timed.groupby(keys)} == {
        (CELLS[0].cell_id, 1, 0): [0.1, 0.2, 0.3],
        (CELLS[1].cell_id, 1, 0): [3.0, 4.0],
        (CELLS[1].cell_id, 1, 1): [1.5] * 5,
        (CELLS[1].cell_id, 1, 2): [2.5, 3.0, 3.5],
        (CELLS[2].cell_id, 2, 0): [2.0] * 4,
        (CELLS[2].cell_id, 2, 1): [3.5, 4.5],
    }
    found = samples.drop_duplicates(keys)
    assert found["tenant"].to_list() == [0, 0, 1, 2, 0, 1]
    assert (samples[samples["tenant"] > 0]["kind"] == "warmup").sum() == 3 * 2


def test_the_attempt_that_counts_brings_its_tenants(store: Store) -> None:
    fallen = make_fallen_result(CELLS[1], "ok", "oom", "ok", attempt="a1")
    tenants = collect(store, RESULTS[1], fallen).tenants
    assert set(tenants["attempt"]) == {"b2"}
    alone = collect(Store.open(f"{store.url}-2"), fallen).tenants
    assert alone["status"].to_list() == ["ok", "oom", "ok"]
    assert alone["error_kind"].to_list()[1] == "out-of-memory"
    assert alone["num_steps_taken"].isna().to_list() == [False, True, False]
