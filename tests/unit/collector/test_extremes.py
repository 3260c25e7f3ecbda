"""Every number and time of a result and a run at its extremes: left out by name, or carried into report and tables."""

import json
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest
from pydantic import ValidationError

from bench.errors import UserError
from bench.schema import Cell, Failure, InvalidDocumentError, PlannedCell, Result, Run, read_result
from bench.store import Store, result_key, run_key
from collector.analysis import analyze_run
from collector.export import write_collection
from collector.grid import make_grid
from collector.report.page import write_page
from collector.report.terminal import make_grid_table
from collector.results.collection import Collection
from collector.results.load import load_run
from factories import (
    RUN_ID,
    make_cell,
    make_cpu_use,
    make_environment,
    make_failed_result,
    make_gpu,
    make_gpu_use,
    make_memory,
    make_result,
    make_roofline,
    make_run,
    make_validity,
    put_documents,
)
from host_figures import make_host_figures
from measured_runs import make_repeats

# The study's own work, so that its claims are judged from it too.
GPU_CELL = make_cell(device="gpu")
BASE = make_result(
    GPU_CELL,
    device_step_seconds=(0.1, 0.1, 0.1),
    memory=make_memory(peak_cgroup_bytes=2**31, peak_memory_allocated_bytes=2**28, peak_memory_reserved_bytes=2**29),
    cpu_use=make_cpu_use(energy_joules=30.0),
    gpu_use=(make_gpu_use(foreign_processes=({"pid": 7, "memory_bytes": 5},), throttle_reasons={"power cap": 0.5}),),
    roofline=make_roofline(peak_bytes_per_second=1e11, min_memory_seconds=0.01),
    host_peak=make_host_figures(),
    validity=make_validity("contaminated"),
    environment=make_environment(
        memory_limit_bytes=2**33, gpus=(make_gpu(),), settings={"inter_op_threads": 2, "benchmark": False}
    ),
)
FAILED = make_failed_result(
    GPU_CELL,
    error=Failure(kind="out-of-memory", message="it broke", exit_code=137, bytes_requested=2**33),
    status="oom",
)
NUMBERS = [
    *("0", "-1", "-9223372036854775809", "9223372036854775807", "9223372036854775808", "1" + "0" * 400),
    *("1" + "0" * 5000, "1000000000", "5e-324", "1e-30", "1e30", "1.7976931348623157e308", "1e400"),
]
TIMES = [
    *("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
    *("1970-01-01T00:00:00+14:00", "2262-04-11T23:47:16.854776Z", "9999-12-31T23:59:59-14:00"),
    *("9999-12-31T23:59:59.999999Z", "2026-03-01T12:00:00+23:59", "2026-03-01T12:00:00-23:59"),
]
IMPOSSIBLE_PARTS = ("schema_version", "samples")
"""The parts in which no extreme value is possible."""
Path = tuple[str | int, ...]
PLACE = {"cell": "@cell", "cell_id": "@cell_id", "repeat": "@repeat"}
"""What `put_run` replaces in the text of a result."""


def list_leaves(node: Any, path: Path = ()) -> list[Path]:
    """The paths of the numbers and times in a JSON document; of a list, those of its first element."""
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in list_leaves(value, (*path, key))]
    if isinstance(node, list):
        return list_leaves(node[0], (*path, 0)) if node else []
    if isinstance(node, bool) or not isinstance(node, int | float | str):
        return []
    return [path] if not isinstance(node, str) or str(path[-1]).endswith("_at") else []


def list_extremes(document: Any, path: Path) -> list[str]:
    """The JSON texts that are put in the place of the leaf at `path`."""
    leaf = reduce(operator.getitem, path, document)
    return [json.dumps(time) for time in TIMES] if isinstance(leaf, str) else NUMBERS


def replace_leaf(text: str, path: Path, value: str, **changes: Any) -> str:
    """The document with the JSON text `value` at `path`, and `changes` at its top."""
    document = json.loads(text) | changes
    reduce(operator.getitem, path[:-1], document)[path[-1]] = "@@"
    return json.dumps(document).replace('"@@"', value)


def name_path(path: Path) -> str:
    return ".".join(map(str, path))


def list_parts(document: Result) -> list[str]:
    """The parts of a result that have numbers or times. A cell's own fields are in its id and in the plan: see RUN."""
    parts = dict.fromkeys(str(path[0]) for path in list_leaves(json.loads(document.to_json())))
    return [part for part in parts if part not in PLACE]


def make_texts(document: Result, part: str) -> list[str]:
    """The document with each extreme value at each leaf of a part, one at a time."""
    content = json.loads(document.to_json())
    return [
        replace_leaf(document.to_json().decode(), path, value, **PLACE)
        for path in list_leaves(content)
        if path[0] == part
        for value in list_extremes(content, path)
    ]


def make_cells(seed: int) -> tuple[Cell, Cell]:
    """The cell on the GPU that has extreme results, and its partner on the CPU."""
    return make_cell(device="gpu", seed=seed), make_cell(seed=seed)


def put_run(store: Store, groups: Sequence[Sequence[str]]) -> Collection:
    """Put each group of texts as the repeats from 2 on of a cell that has one good repeat and a good partner.

    The cells of each group have its number as their seed.
    """
    planned = []
    for seed, texts in enumerate(groups):
        gpu_cell, cpu_cell = make_cells(seed)
        for cell, repeats in ((gpu_cell, len(texts) + 1), (cpu_cell, 2)):
            planned.append(PlannedCell(cell=cell, repeats=repeats, timeout_seconds=600.0))
        for result in (make_result(gpu_cell), *make_repeats(cpu_cell, 0.5, 0.6)):
            store.put(result_key(RUN_ID, result.cell_id, result.repeat, result.attempt), result.to_json())
        for repeat, text in enumerate(texts, start=2):
            placed = text.replace('"@cell"', gpu_cell.to_json().decode()).replace("@cell_id", gpu_cell.cell_id)
            placed = placed.replace('"@repeat"', str(repeat))
            store.put(result_key(RUN_ID, gpu_cell.cell_id, repeat, "a1"), placed.encode())
    store.put(run_key(RUN_ID), make_run().model_copy(update={"cells": tuple(planned)}).to_json())
    return load_run(store, RUN_ID)


def check_counts(collection: Collection, seed: int, num_put: int) -> int:
    """Every result of the cells with this seed is used, or named with a reason; returns how many are used."""
    ids = [cell.cell_id for cell in make_cells(seed)]
    is_used = collection.results["cell_id"].isin(ids) & (collection.results["status"] != "missing")
    skipped = [document for document in collection.skipped if any(cell_id in document.key for cell_id in ids)]
    assert int(is_used.sum()) + len(skipped) == num_put
    assert all(document.reason for document in skipped)
    return int(is_used.sum())


def check_written(collection: Collection, directory: Any) -> None:
    """Report, tables and terminal are written."""
    analysis = analyze_run(collection)
    write_page(analysis, directory / "report.html")
    write_collection(collection, directory)
    make_grid_table(make_grid(analysis)).format_rows()


@pytest.fixture(scope="module")
def extreme_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Collection]:
    """The runs of BASE and FAILED: each part of the document has a cell of its own, with all its extreme values."""
    return {
        document.status: put_run(
            Store.open(f"file://{tmp_path_factory.mktemp('store')}"),
            [make_texts(document, part) for part in list_parts(document)],
        )
        for document in (BASE, FAILED)
    }


@pytest.mark.parametrize(
    ("document", "part"),
    [
        pytest.param(document, part, id=f"{document.status}-{part}")
        for document in (BASE, FAILED)
        for part in list_parts(document)
    ],
)
def test_an_extreme_value_in_a_result_is_named_or_carried(
    document: Result, part: str, extreme_runs: dict[str, Collection]
) -> None:
    seed = list_parts(document).index(part)
    num_used = check_counts(extreme_runs[document.status], seed, num_put=3 + len(make_texts(document, part)))
    assert (num_used == 3) == (part in IMPOSSIBLE_PARTS)


@pytest.mark.parametrize("document", [BASE, FAILED], ids=["ok", "oom"])
def test_what_is_carried_of_results_with_an_extreme_value_is_reported(
    document: Result, extreme_runs: dict[str, Collection], tmp_path: Any
) -> None:
    check_written(extreme_runs[document.status], tmp_path / "out")


def test_results_whose_every_value_is_extreme_are_carried(store: Store, tmp_path: Any) -> None:
    values = ["0", "9223372036854775808", "5e-324", "1e30", "1e308", json.dumps(TIMES[0]), json.dumps(TIMES[-4])]
    collection = put_run(store, [[make_extreme(value)] * 3 for value in values])
    assert collection.skipped == ()
    for seed in range(len(values)):
        check_counts(collection, seed, num_put=6)
    check_written(collection, tmp_path / "out")


def make_extreme(value: str) -> str:
    """BASE with `value` in every place that may have it: where neither the schema nor another part rules it out."""
    text = BASE.to_json().decode()
    for path in list_leaves(json.loads(text)):
        if path[0] in (*PLACE, "schema_version"):
            continue
        changed = replace_leaf(text, path, value)
        try:
            read_result(changed.encode())
        except InvalidDocumentError:
            continue
        text = changed
    return json.dumps(json.loads(text) | PLACE)


def test_the_shortest_and_the_longest_times_are_carried_together(store: Store, tmp_path: Any) -> None:
    texts = [
        json.dumps(
            json.loads(
                make_result(
                    GPU_CELL,
                    step_seconds=(seconds,) * 4,
                    warmup_step_seconds=(seconds,),
                    validity=make_validity("over-peak", "too-short"),
                )
                .to_json()
                .decode()
            )
            | PLACE
        )
        for seconds in (1e-9, 1e-9, 86_400.0, 86_400.0)
    ]
    collection = put_run(store, [texts])
    assert collection.skipped == ()
    check_counts(collection, 0, num_put=7)
    check_written(collection, tmp_path / "out")


RUN = make_run([GPU_CELL], repeats=2)
RUN_PATHS = list_leaves(json.loads(RUN.to_json()))


@pytest.mark.parametrize("path", RUN_PATHS, ids=name_path)
def test_an_extreme_value_in_a_run_is_named_or_carried(path: Path, store: Store) -> None:
    reasons = []
    for value in list_extremes(json.loads(RUN.to_json()), path):
        store.put(run_key(RUN_ID), replace_leaf(RUN.to_json().decode(), path, value).encode())
        try:
            load_run(store, RUN_ID)
        except UserError as error:
            reasons.append(str(error))
    assert reasons
    assert [reason for reason in reasons if f"{run_key(RUN_ID)} cannot be read" not in reason] == []


def test_a_run_of_extreme_values_is_reported(store: Store, tmp_path: Any) -> None:
    changes: dict[str, Any] = {"cells": ()}
    for seed, path in enumerate(RUN_PATHS):
        run = find_last_valid(make_run([make_cell(device="gpu", seed=seed)], repeats=2), path)
        if run is not None and path[0] == "cells":
            changes["cells"] += run.cells
        elif run is not None:
            changes[str(path[0])] = getattr(run, str(path[0]))
    put_documents(store, make_run().model_copy(update=changes), [])
    collection = load_run(store, RUN_ID)
    assert len(collection.run.cells) > 10
    assert collection.skipped == ()
    check_written(collection, tmp_path / "out")


def find_last_valid(run: Run, path: Path) -> Run | None:
    """The run with the last extreme value at `path` that it may have, the greatest in most places; None without any."""
    last = None
    for value in list_extremes(json.loads(run.to_json()), path):
        try:
            last = Run.model_validate_json(replace_leaf(run.to_json().decode(), path, value))
        except ValidationError:
            continue
    return last
