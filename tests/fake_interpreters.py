"""Executables for `--python` that stand in for a Python with the frameworks.

They are called as the runner calls a real one, `INTERPRETER -m bench` with an order in the environment.
"""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import cast

from bench.order import Order
from bench.schema import Failure, Result, Verdict
from bench.store import Store, result_key
from factories import make_failed_result, make_result, make_validity

BYTES_PER_SAMPLE = 2**30
END_GUARD_SECONDS = 300.0
STEP_VARIABLE = "FAKE_STEP_SECONDS"
"""How long each step takes, in seconds; 0.1 without it."""
VERDICT_VARIABLE = "FAKE_VERDICT"
"""The verdict on each measurement; `valid` without it."""


def make_interpreter(path: Path, body: str) -> Path:
    """Return `path`, now an executable shell script of the commands `body`."""
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def make_measuring_interpreter(
    path: Path, *, log: Path, before: str = "", after: str = "", num_samples_that_fit: int = 10**9
) -> Path:
    """Return an executable that writes an ok result at once, as `python -m bench` does after a measurement.

    A batch of more than `num_samples_that_fit` is out of memory, BYTES_PER_SAMPLE being asked for each. `log` gets one
    line for each start: cell_id, repeat, attempt, pid. `before` and `after`: shell commands around it.
    """
    # The runner asks for a safe path; this script finds the modules beside it all the same.
    words = ["env", "-u", "PYTHONSAFEPATH", sys.executable, __file__, str(log), str(num_samples_that_fit)]
    start = shlex.join(words)
    return make_interpreter(path, f"{before}\n{start} || exit\n{after}")


def is_running(pid: int) -> bool:
    """Return whether the process exists and is no zombie (which only waits for its parent to read how it ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def await_end(pid: int) -> None:
    """Return when the process has ended."""
    deadline = time.monotonic() + END_GUARD_SECONDS
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} has not ended"
        time.sleep(0.01)


def read_log(log: Path) -> list[tuple[str, int]]:
    """Return cell_id and repeat of each start, in order."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(cell_id, int(repeat)) for cell_id, repeat, *_ in lines]


def read_pids(log: Path) -> list[int]:
    """Return the process of each start, in order."""
    return [int(line.split()[3]) for line in log.read_text().splitlines()] if log.exists() else []


def put_result(log: Path, num_samples_that_fit: int) -> None:
    """Do what the order in the environment asks for, in no time. Exit code 3 where another one does so now."""
    order = Order.from_variables(os.environ)
    others = read_pids(log)
    with log.open("a") as file:
        file.write(f"{order.cell.cell_id} {order.repeat} {order.attempt} {os.getpid()}\n")
    if any(is_running(pid) for pid in others):
        sys.exit(3)
    result = make_ok(order) if order.cell.batch_size <= num_samples_that_fit else make_out_of_memory(order)
    key = result_key(order.run_id, result.cell_id, order.repeat, order.attempt)
    Store.open(order.store_url).put(key, result.to_json())


def make_ok(order: Order) -> Result:
    """Return the ok record of an order."""
    verdicts = cast("list[Verdict]", [os.environ[VERDICT_VARIABLE]] if VERDICT_VARIABLE in os.environ else [])
    return make_result(
        order.cell,
        run_id=order.run_id,
        repeat=order.repeat,
        attempt=order.attempt,
        step_seconds=(float(os.environ.get(STEP_VARIABLE, "0.1")),) * order.cell.num_steps,
        warmup_step_seconds=(0.1,) * order.cell.num_warmup_steps,
        validity=make_validity(*verdicts),
    )


def make_out_of_memory(order: Order) -> Result:
    """Return the record of an order that memory did not suffice for."""
    size = order.cell.batch_size * BYTES_PER_SAMPLE
    error = Failure(kind="out-of-memory", message="OutOfMemoryError: there is no more", bytes_requested=size)
    return make_failed_result(
        order.cell, status="oom", run_id=order.run_id, repeat=order.repeat, attempt=order.attempt, error=error
    )


if __name__ == "__main__":
    put_result(Path(sys.argv[1]), int(sys.argv[2]))
