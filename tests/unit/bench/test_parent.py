"""The measuring process dies with its parent."""

import signal
import subprocess
import sys

from fake_interpreters import await_end, is_running

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
        assert runner.stdout is not None
        orphan = int(runner.stdout.readline())
        assert is_running(orphan)
        runner.send_signal(signal.SIGKILL)
    await_end(orphan)


def test_a_process_whose_runner_is_already_dead_kills_itself() -> None:
    code = "from bench.worker.shutdown import die_with_parent; die_with_parent(999_999_999)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
