"""Measures collection: results a second beside `rclone copy`, a second collection, all tables, and peak memory.

    .venv/bin/python benchmarks/collect.py --results 1000 10000 100000

Makes N valid results of about 7 KB from a real one (docs/results), five repeats a cell, on a local `rclone serve s3`.
For each N it alternates, three times by default, between `rclone copy` with 32 transfers into an empty folder and a
first collection into a store without tables; then it adds 100 results and collects again, and writes all tables. Each
collection is a process of its own, whose peak memory the kernel tells. Figures are medians. Run it on an idle machine:
the ratio to rclone bears some load, seconds do not.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from bench.schema import Cell, PlannedCell, Result, Run, read_result  # noqa: E402
from bench.store import Store, result_key, results_prefix, run_key  # noqa: E402
from s3_server import S3Server  # noqa: E402

RUN_ID = "collect"
SOURCES = ROOT / "docs/results/2026-11-21-h100/runs/scaling-20261121-065706-e88e/results"
SOURCE_NAME = "resnet18-jax-gpu-train-fp32-compiled-b64-7c850ad5"
NUM_REPEATS = 5
NUM_LATE = 100
VARIANTS = (("pytorch", "eager"), ("jax", "compiled"))


def make_results(num_results: int, attempt: str = "a1") -> Iterator[Result]:
    """Yield results of NUM_REPEATS repeats a cell, whose times vary by 2 %; the same ones each time."""
    source = read_result(next((SOURCES / SOURCE_NAME).glob("*.json")).read_bytes())
    document: dict[str, Any] = json.loads(source.to_json())
    rng = random.Random(num_results)
    for number in range(num_results // NUM_REPEATS):
        framework, mode = VARIANTS[number % 2]
        changes = {"framework": framework, "mode": mode, "batch_size": 1 + number // 2}
        cell = Cell.model_validate_json(json.dumps(document["cell"] | changes))
        for repeat in range(1, NUM_REPEATS + 1):
            factor = rng.lognormvariate(0, 0.02)
            samples, phases = dict(document["samples"]), dict(document["phases"])
            for name, window in (("step_seconds", "steady_seconds"), ("warmup_step_seconds", "warmup_seconds")):
                samples[name] = [seconds * factor * rng.uniform(1, 1.01) for seconds in samples[name]]
                phases[window] = sum(samples[name]) * 1.001
            identity = {"run_id": RUN_ID, "cell_id": cell.cell_id, "repeat": repeat, "attempt": attempt}
            parts = {"samples": samples, "phases": phases, "cell": cell.model_dump(mode="json")}
            yield Result.model_validate_json(json.dumps(document | identity | parts))


def write_store(directory: Path, num_results: int) -> None:
    """Write a run with its results as files of a bucket."""
    cells: dict[str, PlannedCell] = {}
    for result in make_results(num_results):
        planned = PlannedCell(cell=result.cell, repeats=NUM_REPEATS, timeout_seconds=600)
        cells.setdefault(result.cell_id, planned)
        path = directory / name_result(result)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(result.to_json())
    run = Run(
        run_id=RUN_ID,
        matrix="collect",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        executor="local",
        hostname="bench",
        user="bench",
        tool_version="0",
        git_revision=None,
        cells=tuple(cells.values()),
        left_out=(),
    )
    (directory / run_key(RUN_ID)).write_bytes(run.to_json())


def name_result(result: Result) -> str:
    return result_key(result.run_id, result.cell_id, result.repeat, result.attempt)


def collect(step: str, url: str) -> None:
    """Do one step in this process and print its seconds, the process's peak memory in MB and the results it saw."""
    from collector.export import write_collection
    from collector.results.load import load_run

    store = Store.open(url)
    begin = time.perf_counter()
    if step == "list":
        num_seen = len(list(store.list_objects(results_prefix(RUN_ID))))
        seconds = time.perf_counter() - begin
    else:
        collection = load_run(store, RUN_ID, writes_tables=True)
        seconds = time.perf_counter() - begin
        num_seen = int(collection.results["num_attempts"].sum())
        if step == "tables":
            begin = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                write_collection(collection, Path(folder))
            seconds = time.perf_counter() - begin
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, num_seen]))


def run_step(step: str, server: S3Server, num_results: int) -> tuple[float, float]:
    """Return seconds and peak memory in MB of a step in a process of its own, which has to see so many results."""
    command = [sys.executable, __file__, "--step", step, "--url", f"s3://{server.bucket}"]
    output = subprocess.run(command, env=os.environ | server.environment, check=True, capture_output=True, text=True)
    seconds, memory, num_seen = json.loads(output.stdout)
    if num_seen != num_results:
        raise AssertionError(f"{step}: {num_seen} of {num_results} results were seen")
    return seconds, memory


def copy_with_rclone(server: S3Server, target: Path) -> float:
    """Return the seconds that rclone takes to copy all results into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    settings = {"PROVIDER": "Other", "ENV_AUTH": "true", "ENDPOINT": server.endpoint_url}
    environment: Mapping[str, str] = server.environment | {f"RCLONE_S3_{k}": v for k, v in settings.items()}
    source = f":s3:{server.bucket}/{results_prefix(RUN_ID)}"
    rclone = Path(sys.executable).parent / "rclone"
    command = [rclone, "copy", "--config", "", "--transfers", "32", "--checkers", "32", source, target]
    begin = time.perf_counter()
    subprocess.run(command, env=os.environ | environment, check=True)
    return time.perf_counter() - begin


@contextmanager
def serve(folder: Path, num_results: int) -> Iterator[S3Server]:
    """Yield a server with the results; its first listing, which reads every file for its ETag, is done."""
    server = S3Server(root=folder / f"s3-{num_results}")
    bucket = server.root / server.bucket
    if not bucket.exists():
        write_store(bucket, num_results)
    for late in bucket.glob("runs/*/results/*/*-late*.json"):  # of an earlier call
        late.unlink()
    server.start()
    try:
        run_step("list", server, num_results)
        yield server
    finally:
        server.stop()


def measure(num_results: int, num_turns: int, folder: Path | None) -> dict[str, list[float]]:
    """Measure one number of results; print its figures and return them, each with its values turn by turn."""
    with tempfile.TemporaryDirectory() as name, serve(folder or Path(name), num_results) as server:
        # Through the server, which would go on listing what is changed behind it.
        os.environ.update(server.environment)
        store, num_stored = Store.open(f"s3://{server.bucket}"), num_results
        turns: dict[str, list[float]] = {}
        for turn in range(num_turns):
            store.delete_many(list(store.list_keys("tables")))
            figures = {"rclone_s": copy_with_rclone(server, Path(name) / "copy")}
            figures["first_s"], figures["first_mb"] = run_step("collect", server, num_stored)
            for result in make_results(NUM_LATE, attempt=f"late{turn}"):
                store.put(name_result(result), result.to_json())
            num_stored += NUM_LATE
            figures["list_s"], _ = run_step("list", server, num_stored)
            figures["second_s"], figures["second_mb"] = run_step("collect", server, num_stored)
            figures["tables_s"], figures["tables_mb"] = run_step("tables", server, num_stored)
            figures["first_over_rclone"] = figures["rclone_s"] / figures["first_s"]
            print(json.dumps({"results": num_results, "turn": turn} | figures), flush=True)
            for key, value in figures.items():
                turns.setdefault(key, []).append(value)
        medians = {key: round(statistics.median(values), 3) for key, values in turns.items()}
        print(json.dumps({"results": num_results, "medians": medians}), flush=True)
        return turns


def main() -> None:
    """Measure every number of results, or do one step of a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="Where the results are kept for further calls, 1 GB of 100,000.")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        collect(arguments.step, arguments.url)
        return
    for num_results in arguments.results:
        measure(num_results, arguments.turns, arguments.folder)


if __name__ == "__main__":
    main()
