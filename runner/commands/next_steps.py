"""Tell people at a terminal what happens now and what to do next; logs and pipes get results only."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands.options import DEFAULT_STORE, make_error_console
from runner.sources import list_builtin_matrices

if TYPE_CHECKING:  # a shell that completes options waits for what is imported here
    from bench.schema import Run


def say_next(*commands: str) -> None:
    """Print what to do next in dim letters to stderr, if that is a terminal."""
    console = make_error_console()
    if console.is_terminal:
        console.print(f"next: {'; or '.join(commands)}", style="dim", soft_wrap=True)


def format_place(on: str, profile: str | None, namespace: str | None, queue: str | None = None) -> str:
    """Return the options that lead a command to the same place on a cluster, as they were given, quoted for a shell."""
    given = {"--on": on, "--profile": profile, "--namespace": namespace, "--queue": queue}
    return shlex.join(word for name, value in given.items() if value is not None for word in (name, value))


def format_resumption(run: "Run", store: str, on: str | None, namespace: str | None) -> str:
    """Return the command that measures what a run lacks, in its store and where it ran.

    `on`, `namespace`: what the options of the command at hand say; the run's own cluster counts where they are None.
    """
    words = ["benchmatrix", "run", _name_matrix(run)]
    if run.cluster is not None:
        profile = _find_file(run.cluster.profile) or run.cluster.profile
        words += shlex.split(format_place(on or run.cluster.context, profile, namespace, run.cluster.queue))
    words += ["--store", store] if store != DEFAULT_STORE else []
    return shlex.join([*words, "--run-id", run.run_id])


def _name_matrix(run: "Run") -> str:
    """Return the run's matrix as `run` takes it: a run knows its name, not in which file it was."""
    if run.matrix in list_builtin_matrices():
        return run.matrix
    return _find_file(run.matrix) or "MATRIX"


def _find_file(name: str) -> str | None:
    file = f"{name}.yaml"
    return file if Path(file).exists() else None
