"""Every number and time of a result and a run at its extremes: left out by name, or carried into report and tables."""

import json
import operator
from functools import reduce
from typing import Any

import pytest
from pydantic import ValidationError

from bench.errors import UserError
from bench.schema import Failure, Result
from bench.store import Store, result_key, run_key
from collector.export import write_collection
from collector.report.html import render_report
from collector.report.terminal import make_terminal_table
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
)
from host_figures import make_host_figures
from measured_runs import make_repeats

# The study's own work, so that its claims are judged from it too.
GPU_CELL = make_cell(device="gpu")
CPU_CELL = make_cell()
BASE = make_result(
    GPU_CELL,
    device_step_seconds=(0.1, 0.1, 0.1),
    memory=make_memory(peak_cgroup_bytes=2**31, peak_memory_allocated_bytes=2**28, peak_memory_reserved_bytes=2**29),
    cpu_use=make_cpu_use(energy_joules=30.0),
    gpu_use=(make_gpu_use(foreign_processes=({"pid": 7, "memory_bytes": 5},), throttle_reasons={"power cap": 0.5}),),
    roofline=make_roofline(peak_bytes_per_second=1e11, least_flops_per_step=10**8, min_memory_seconds=0.01),
    host_peak=make_host_figures(),
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
Path = tuple[str | int, ...]


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


def put_run(store: Store, texts: list[str]) -> Collection:
    """Put `texts` as the repeats from 2 on of a cell on the GPU that has one good repeat and a good partner."""
    run = make_run([GPU_CELL, CPU_CELL], repeats=len(texts) + 1)
    good = [make_result(GPU_CELL), *make_repeats(CPU_CELL, 0.5, 0.6)]
    store.put(run_key(RUN_ID), run.to_json())
    for result in good:
        store.put(result_key(RUN_ID, result.cell_id, result.repeat, result.attempt), result.to_json())
    for repeat, text in enumerate(texts, start=2):
        store.put(result_key(RUN_ID, GPU_CELL.cell_id, repeat, "a1"), text.encode())
    return load_run(store, RUN_ID)


def check_whole(collection: Collection, directory: Any, *, num_put: int) -> None:
    """Every result is used or named, and report, tables and terminal are written from those that are used."""
    render_report(collection, forecast=None, path=directory / "report.html")
    write_collection(collection, directory)
    make_terminal_table(collection).format_rows()
    used = int((collection.results["status"] != "missing").sum())
    assert used + len(collection.skipped) == num_put
    assert all(document.reason for document in collection.skipped)


@pytest.fixture
def store(tmp_path: Any) -> Store:
    return Store.open(f"file://{tmp_path}/store")


# A cell's own fields are in its id and in the plan: see the run's.
@pytest.mark.parametrize(
    ("document", "part"),
    [
        (document, part)
        for document in (BASE, FAILED)
        for part in dict.fromkeys(str(path[0]) for path in list_leaves(json.loads(document.to_json())))
        if part not in ("cell", "repeat")
    ],
)
def test_an_extreme_value_in_a_result_is_named_or_carried(
    document: Result, part: str, store: Store, tmp_path: Any
) -> None:
    content = json.loads(document.to_json())
    leaves = [path for path in list_leaves(content) if path[0] == part]
    texts = [
        replace_leaf(document.to_json().decode(), path, value, repeat=0).replace('"repeat": 0', '"repeat": @@', 1)
        for path in leaves
        for value in list_extremes(content, path)
    ]
    numbered = [text.replace("@@", str(repeat), 1) for repeat, text in enumerate(texts, start=2)]
    collection = put_run(store, numbered)
    check_whole(collection, tmp_path / "out", num_put=3 + len(texts))


@pytest.mark.parametrize(
    "value", ["0", "9223372036854775808", "5e-324", "1e30", "1e308", json.dumps(TIMES[0]), json.dumps(TIMES[-4])]
)
def test_a_result_whose_every_value_is_extreme_is_carried(value: str, store: Store, tmp_path: Any) -> None:
    text = BASE.to_json().decode()
    for path in list_leaves(json.loads(text)):
        if path[0] in ("cell", "repeat", "schema_version"):
            continue
        changed = replace_leaf(text, path, value)
        try:
            Result.model_validate_json(changed)
        except ValidationError:
            continue
        text = changed
    texts = [json.dumps(json.loads(text) | {"repeat": repeat}) for repeat in (2, 3, 4)]
    collection = put_run(store, texts)
    assert collection.skipped == ()
    check_whole(collection, tmp_path / "out", num_put=6)


def test_the_shortest_and_the_longest_times_are_carried_together(store: Store, tmp_path: Any) -> None:
    texts = [
        make_result(GPU_CELL, repeat=repeat, step_seconds=(seconds,) * 4, warmup_step_seconds=(seconds,))
        .to_json()
        .decode()
        for repeat, seconds in enumerate((1e-9, 1e-9, 86_400.0, 86_400.0), start=2)
    ]
    collection = put_run(store, texts)
    assert collection.skipped == ()
    check_whole(collection, tmp_path / "out", num_put=7)


RUN = make_run([GPU_CELL], repeats=2)


@pytest.mark.parametrize("path", list_leaves(json.loads(RUN.to_json())), ids=name_path)
def test_an_extreme_value_in_a_run_is_named_or_carried(path: Path, store: Store, tmp_path: Any) -> None:
    carried, reasons = [], []
    for value in list_extremes(json.loads(RUN.to_json()), path):
        store.put(run_key(RUN_ID), replace_leaf(RUN.to_json().decode(), path, value).encode())
        try:
            carried.append(load_run(store, RUN_ID))
        except UserError as error:
            reasons.append(str(error))
    assert reasons
    assert [reason for reason in reasons if f"{run_key(RUN_ID)} cannot be read" not in reason] == []
    if carried:  # the last: the greatest in most places
        check_whole(carried[-1], tmp_path / "out", num_put=0)
