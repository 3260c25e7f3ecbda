"""SIGTERM and Ctrl-C before anything was measured, and the end of the runner."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.errors import EXIT_PREEMPTED, EXIT_SIGINT
from bench_process import start_bench
from factories import make_cell, present
from fake_interpreters import await_end, is_running
from workspace import HANG_GUARD_SECONDS

ROOT = Path(__file__).parents[4]
SLOW_IMPORT = "import time\nprint('importing', flush=True)\ntime.sleep(600)\n"


def start(folder: Path, **variables: Any) -> "subprocess.Popen[str]":
    def hear_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what runs beside it

    return start_bench(sys.executable, make_cell(), folder, preexec=hear_interrupts, **variables)


def start_and_import(folder: Path, **variables: str) -> "subprocess.Popen[str]":
    """Start it where its first import takes long, as from a file system that is slow to read, and wait for that."""
    (folder / "pydantic.py").write_text(SLOW_IMPORT)
    path = f"{folder}:{ROOT / 'images' / 'bench' / 'src'}"
    process = start(folder, PYTHONPATH=path, **variables)
    assert present(process.stdout).readline() == "importing\n"
    return process


def end(process: "subprocess.Popen[str]", number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    output, _ = process.communicate(timeout=HANG_GUARD_SECONDS)
    return process.returncode, output


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGTERM, (EXIT_PREEMPTED, "preempted: ended by SIGTERM before anything was measured\n")),
        (signal.SIGINT, (EXIT_SIGINT, "interrupted: ended by Ctrl-C (SIGINT); nothing is recorded\n")),
    ],
)
def test_a_signal_during_the_first_import_ends_the_container_at_once(
    tmp_path: Path, number: signal.Signals, expected: tuple[int, str]
) -> None:
    assert end(start_and_import(tmp_path), number) == expected


def test_outside_a_container_sigterm_ends_the_process_as_usual(tmp_path: Path) -> None:
    process = start_and_import(tmp_path, BENCH_PARENT_PID=str(os.getpid()))
    assert end(process) == (-signal.SIGTERM, "")


FORK = """
import os, signal, time
from bench.worker.shutdown import SigtermListener
SigtermListener().start()
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
time.sleep(0.5)
print(os.WTERMSIG(status), "alive")
"""


def test_a_child_of_the_process_dies_of_sigterm_and_the_process_gets_no_signal() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "15 alive\n"), done.stderr


START_AND_SLEEP = '''
import os, subprocess, sys
child = """
import os, time
from bench.worker.shutdown import die_with_parent
die_with_parent(os.getppid())
print("ready", flush=True)
time.sleep(600)
"""
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
'''


def test_the_measuring_process_dies_with_the_runner_even_by_sigkill() -> None:
    with subprocess.Popen([sys.executable, "-c", START_AND_SLEEP], stdout=subprocess.PIPE, text=True) as runner:
        orphan = int(present(runner.stdout).readline())
        assert is_running(orphan)
        runner.send_signal(signal.SIGKILL)
    await_end(orphan)


def test_a_process_whose_runner_is_already_dead_kills_itself() -> None:
    code = "from bench.worker.shutdown import die_with_parent; die_with_parent(999_999_999)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
