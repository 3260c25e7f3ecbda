"""bench.worker.shutdown under the local executor: a measuring process dies with its runner."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from bench.schema import Framework
from factories import make_cell
from fake_interpreters import await_end, is_running
from workspace import HANG_GUARD_SECONDS

BENCH = Path(__file__).parents[4] / "images" / "bench" / "src"


def test_bench_dies_with_a_killed_runner(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    """A real cell that would take minutes; its parent is killed while PyTorch is being imported."""
    order = {
        "BENCH_CELL": make_cell(min_seconds=600.0).model_dump_json(),
        "BENCH_RUN_ID": "run-1",
        "BENCH_REPEAT": "1",
        "BENCH_ATTEMPT": "a1",
        "BENCH_STORE": f"file://{tmp_path}/store",
        "PYTHONPATH": str(BENCH),
    }
    runner = start_parent([str(interpreters["pytorch"]), "-m", "bench"], order)
    child = int(read_line(runner))
    try:
        await_mapping(child, "libtorch")
        runner.kill()
        runner.communicate()
        await_end(child)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def start_parent(command: list[str], variables: dict[str, str]) -> "subprocess.Popen[str]":
    """Start a process that starts `command`, prints its pid and waits: a runner reduced to what matters here."""
    program = (
        "import os, subprocess, sys, time\n"
        "os.environ['BENCH_PARENT_PID'] = str(os.getpid())\n"
        "child = subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *command], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True
    )


def read_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def await_mapping(pid: int, word: str) -> None:
    """Return when the process has loaded a library with `word` in its path."""
    deadline = time.monotonic() + HANG_GUARD_SECONDS
    while word not in Path(f"/proc/{pid}/maps").read_text():
        assert is_running(pid), "bench ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.01)
