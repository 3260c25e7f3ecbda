"""Ctrl-C ends the command line with 130 and without a traceback, whatever is being imported just then."""

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from runner.start import main
sys.argv = ["benchmatrix", "schema"]
main()
"""
CLOSED = """
import atexit, os, sys

def write():
    descriptor = os.open({result!r}, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, str(descriptor).encode())

atexit.register(write)
from runner.start import main
sys.argv = ["benchmatrix", "version"]
main()
"""


@pytest.mark.parametrize("module", ["runner.cli", "typer", "runner.command_loading", "runner.commands.schema"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_closed_descriptors_do_not_become_those_of_a_result(tmp_path: Path) -> None:
    """Libraries that are not Python's write their messages to 2, whatever file that is."""
    program = CLOSED.format(result=str(tmp_path / "result"))
    subprocess.run(["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program], check=True)
    assert int((tmp_path / "result").read_text()) > 2
