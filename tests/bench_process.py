"""Runs `python -m bench` as a process of its own and says how it ended."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.schema import Cell, Result
from bench.worker.request import Order

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How `python -m bench` ended."""

    exit_code: int
    output: str
    result: Result | None
    started_at: datetime
    wall_seconds: float
    store: Path


def use_one_core() -> None:
    """Keep the process that calls it, and what it starts, on one core.

    A framework has a thread for each core, and where the machine is busy they burn it waiting for one another.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def start_bench(
    python: Path | str,
    cell: Cell,
    folder: Path,
    *program: str,
    preexec: Callable[[], None] | None = None,
    cwd: Path | None = None,
    **variables: str,
) -> "subprocess.Popen[str]":
    """Start `python -m bench`, or `program` in its place, on one core; `variables` override the environment."""

    def prepare() -> None:
        use_one_core()
        if preexec is not None:
            preexec()

    group = "g" if cell.tenants > 1 else None
    url = f"file://{folder / 'store'}"
    order = Order(cell=cell, run_id="test-1", repeat=2, attempt="a1", store_url=url, tenant_group=group)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    path = {"PYTHONPATH": str(ROOT / "images" / "bench" / "src"), "TZ": "America/New_York"}
    return subprocess.Popen(
        [str(python), *(program or ("-m", "bench"))],
        env={**inherited, **path, **order.to_variables(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd or folder,
        preexec_fn=prepare,
    )


def run_bench(
    python: Path | str,
    cell: Cell,
    folder: Path,
    *,
    preexec: Callable[[], None] | None = None,
    cwd: Path | None = None,
    **variables: str,
) -> Ending:
    """Run `python -m bench` for one cell and return how it ended."""
    started_at, start = datetime.now(UTC), time.perf_counter()
    process = start_bench(python, cell, folder, preexec=preexec, cwd=cwd, **variables)
    output, _ = process.communicate()
    wall_seconds = time.perf_counter() - start
    store = folder / "store"
    record = store / "runs" / "test-1" / "results" / cell.cell_id / "2-a1.json"
    return Ending(
        exit_code=process.returncode,
        output=output,
        result=Result.model_validate_json(record.read_bytes()) if record.exists() else None,
        started_at=started_at,
        wall_seconds=wall_seconds,
        store=store,
    )


def get_result(ending: Ending) -> Result:
    """Return the record that the process left; AssertionError with its output where there is none."""
    assert ending.result is not None, ending.output[-3000:]
    return ending.result
