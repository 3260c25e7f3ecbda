"""Ctrl-C ends the command line with 130 and without a traceback, whatever is being imported just then."""

import subprocess
import sys

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


@pytest.mark.parametrize("module", ["runner.cli", "typer", "runner.command_loading", "runner.commands.schema"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
