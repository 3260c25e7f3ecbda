"""The command that resumes an interrupted run."""

import shlex
import shutil
import sys
from pathlib import Path

from bench.schema import Run


def format_resume_command(run: Run) -> str:
    """Return the command line of this process with the run's id in it, quoted for a shell."""
    words = [word for word in [*_name_program(), *sys.argv[1:]] if word != "--new"]
    return shlex.join(words if run.run_id in words else [*words, "--run-id", run.run_id])


def _name_program() -> list[str]:
    """Return the words that started this program, as short as they work here."""
    program = sys.argv[0]
    if Path(program).suffix == ".py":  # `python -m runner.cli`
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return [Path(program).name if shutil.which(Path(program).name) == program else program]
