"""Write the commands that resume an interrupted run, and that measure its contaminated repeats again."""

import shlex
import shutil
import sys
from pathlib import Path

from bench.schema import Run

RETRY_CONTAMINATED = "--retry-contaminated"


def format_resume_command(run: Run) -> str:
    """Return the command line of this process with the run's id in it, quoted for a shell."""
    return shlex.join(_list_words(run))


def format_retry_command(run: Run) -> str:
    """Return the command that measures the contaminated repeats of the run again, quoted for a shell."""
    words = _list_words(run)
    return shlex.join(words if RETRY_CONTAMINATED in words else [*words, RETRY_CONTAMINATED])


def _list_words(run: Run) -> list[str]:
    words = [word for word in [*_name_program(), *sys.argv[1:]] if word != "--new"]
    return words if run.run_id in words else [*words, "--run-id", run.run_id]


def _name_program() -> list[str]:
    program = sys.argv[0]
    if Path(program).suffix == ".py":  # `python -m runner.cli`
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return [Path(program).name if shutil.which(Path(program).name) == program else program]
