"""How long earlier repeats of the same cells took: medians of what ended well, of the newest runs at one place."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.schema import Cell, Cluster, Run
from bench.store import Store
from factories import START, make_cell, make_failed_result, make_result, make_run, put_documents
from runner.estimates import is_at_place, read_alike_runs, read_durations, read_near_durations

KNOWN, OTHER = make_cell(), make_cell(batch_size=8)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/store")


def put(store: Store, run_id: str, *seconds: float, cell: Cell = KNOWN, day: int = 0, **fields: Any) -> Run:
    """Store a run of one cell whose repeats took so many seconds from start to end."""
    run = make_run([cell], repeats=len(seconds), run_id=run_id, created_at=START + timedelta(days=day), **fields)
    results = [
        make_result(cell, repeat=number, run_id=run_id, started_at=START, finished_at=START + timedelta(seconds=taken))
        for number, taken in enumerate(seconds, start=1)
    ]
    put_documents(store, run, results)
    return run


def read_all(store: Store) -> list[Run]:
    return read_alike_runs(store, lambda _: True)


def test_the_median_of_what_ended_well_counts(store: Store) -> None:
    put(store, "first", 20.0, 40.0)
    put(store, "second", 90.0, day=1)
    failed = make_failed_result(KNOWN, run_id="bad", started_at=START, finished_at=START + timedelta(hours=1))
    put_documents(store, make_run([KNOWN], run_id="bad"), [failed])
    assert read_durations(store, read_all(store), make_run([KNOWN, OTHER])) == {KNOWN.cell_id: 40.0}


def test_the_nearest_cells_say_how_long_an_unknown_one_takes(store: Store) -> None:
    put(store, "batch", 10.0, cell=make_cell(batch_size=8))
    put(store, "phase", 90.0, cell=make_cell(batch_size=8, phase="infer", precision="bf16"), day=1)
    put(store, "model", 500.0, cell=make_cell(model="vgg16"), day=2)
    put(store, "framework", 500.0, cell=make_cell(framework="jax", mode="compiled"), day=2)
    wanted, other = make_cell(batch_size=16), make_cell(device="gpu")
    found = read_near_durations(store, read_all(store), make_run([wanted, other]), {})
    assert found == {wanted.cell_id: 10.0}
    assert read_near_durations(store, read_all(store), make_run([wanted]), {wanted.cell_id}) == {}


def test_runs_at_other_places_say_nothing(store: Store) -> None:
    def make_cluster(context: str) -> Cluster:
        return Cluster(context=context, namespace="bench", profile="gke")

    here = put(store, "here", 10.0)
    put(store, "elsewhere", 99.0, hostname="bench-2")
    put(store, "cluster", 50.0, executor="kubernetes", cluster=make_cluster("lab"))
    assert read_durations(store, read_alike_runs(store, partial(is_at_place, here)), here) == {KNOWN.cell_id: 10.0}
    there = make_run([KNOWN], executor="kubernetes", cluster=make_cluster("lab"), hostname="laptop")
    assert read_durations(store, read_alike_runs(store, partial(is_at_place, there)), there) == {KNOWN.cell_id: 50.0}
    assert not is_at_place(there, make_run(executor="kubernetes", cluster=make_cluster("other")))
