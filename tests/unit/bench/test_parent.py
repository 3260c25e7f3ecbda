"""The measuring process dies with its parent."""

import signal
import subprocess
import sys
import time
from pathlib import Path

START_AND_SLEEP = '''
import os, subprocess, sys
child = """
import os, time
from bench.parent import die_with_parent
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
        assert runner.stdout is not None
        orphan = int(runner.stdout.readline())
        assert is_alive(orphan)
        runner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while is_alive(orphan):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_whose_runner_is_already_dead_kills_itself() -> None:
    code = "from bench.parent import die_with_parent; die_with_parent(999_999_999)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL


def is_alive(pid: int) -> bool:
    """Return whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
