"""Make one virtual environment per framework on this machine, with exactly what the framework's image installs.

That is the locked requirements and the package `bench`. A stamp, written last, says what was installed; an environment
without it (a killed installation) is created again.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Framework
from runner.images import Flavour, locate_requirements
from runner.local.installer import choose_variables, hide_python_path, list_arguments
from runner.local.process import end_group, start_group
from runner.processes import delay_interrupts
from runner.sources import find_cache_folder, find_source, has_checkout, locate_sources

Report = Callable[[str], None]

TAIL_LINES = 12
SIZE = "1 to 6 GB"
"""Of an environment on the disk: for CPUs little, with CUDA much."""
UV_STEPS = ("Downloading ", "Installing ")
"""How those lines of uv's begin that are reported."""
CONNECTION_SIGNS = ("Failed to fetch", "error sending request", "No solution found", "Hash mismatch")
"""What uv prints where it reached no index, or one that does not have the packages."""


@dataclass(frozen=True, kw_only=True)
class VirtualEnvironment:
    """The folder of a virtual environment, which may be missing, and what is installed into it."""

    directory: Path
    requirements: Path
    project: Path | None
    """The folder of the package `bench` in a checkout; None elsewhere: measuring processes find it by PYTHONPATH."""

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.directory / "installed"

    def compute_fingerprint(self) -> str:
        """Return a text that changes with the requirements' contents and with this Python."""
        digest = hashlib.sha256(sys.version.encode())
        project = [] if self.project is None else [self.project / "pyproject.toml"]
        for file in (self.requirements, *project):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def is_up_to_date(self) -> bool:
        """Return whether what the requirements name as they are now was installed."""
        return self.stamp.is_file() and self.stamp.read_text() == self.compute_fingerprint()


def prepare_virtual_environments(
    frameworks: Iterable[Framework], flavour: Flavour, report: Report, *, keep_open: Sequence[int] = ()
) -> dict[Framework, Path]:
    """Return the interpreter of each framework's virtual environment; install what is missing or out of date.

    `report` gets a line for each thing that takes long; the processes that install inherit the file descriptors
    `keep_open`. Raise UserError if an installation fails.
    """
    environments = locate_environments(frameworks, flavour)
    missing = [environment for environment in environments.values() if not environment.is_up_to_date()]
    if len(missing) > 1:
        report(describe_missing(missing))
    for environment in missing:
        with _lock_directory(environment.directory, report) as lock:
            if not environment.is_up_to_date():
                _install(environment, report, [lock, *keep_open])
    return {framework: environment.python for framework, environment in environments.items()}


def locate_environments(frameworks: Iterable[Framework], flavour: Flavour) -> dict[Framework, VirtualEnvironment]:
    folder = locate_sources() / ".environments" if has_checkout() else find_cache_folder() / "environments"
    project = find_source("images/bench") if has_checkout() else None
    if foreign := [name for name in frameworks if FRAMEWORKS[name].module is not None]:
        hint = f"give --python {foreign[0]}=PATH, an interpreter that has it"
        raise UserError(f"framework {foreign[0]} is a plugin's, for which no environment is made; {hint}")
    return {
        framework: VirtualEnvironment(
            directory=folder / f"{framework}-{flavour}",
            requirements=find_source(locate_requirements(framework, flavour)),
            project=project,
        )
        for framework in frameworks
    }


@contextmanager
def _lock_directory(directory: Path, report: Report) -> Iterator[int]:
    """Wait for the lock on a directory and hold it; yields its file descriptor.

    The processes that install inherit it: one that outlives its killed parent has to end before the next installation.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{directory}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{directory.name}: waiting for another installation")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _install(environment: VirtualEnvironment, report: Report, keep_open: Sequence[int]) -> None:
    name = environment.directory.name
    fingerprint, began = environment.compute_fingerprint(), time.monotonic()
    report(f"{name}: new environment")
    report(describe_missing([environment]))
    shutil.rmtree(environment.directory, ignore_errors=True)
    try:
        variables = choose_variables(hide_python_path(os.environ))
    except ValueError as error:
        raise UserError(f"environment {name}: pip's settings: {error}") from None
    # Compiled, so that no first step contains it for a module that is imported in it.
    variables.setdefault("UV_COMPILE_BYTECODE", "1")
    install = list_arguments(environment.python, variables)
    commands = [
        [install[0], "venv", "--python", sys.executable, str(environment.directory)],
        [*install, "--require-hashes", "-r", str(environment.requirements)],
    ]
    if environment.project is not None:
        commands.append([*install, "--no-deps", "-e", str(environment.project)])
    for command in commands:
        _run(command, name, report, variables, keep_open)
    environment.stamp.write_text(fingerprint)
    report(f"{name}: installed in {time.monotonic() - began:.0f} s")


def _run(
    command: Sequence[str], name: str, report: Report, variables: Mapping[str, str], keep_open: Sequence[int]
) -> None:
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    process = None
    try:
        with delay_interrupts():
            process = start_group(command, variables=variables, keep_open=keep_open)
        for line in process.stdout or ():
            tail.append(line.decode(errors="replace").rstrip())
            if tail[-1].strip().startswith(UV_STEPS):
                report(f"{name}: {tail[-1].strip()}")
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # `end_group` needs its number
    finally:
        if process is not None:
            end_group(process)
    if process.returncode != 0:
        raise UserError(_explain_failure(name, list(tail), process.returncode))


def _explain_failure(name: str, tail: list[str], code: int) -> str:
    text = "\n".join(tail)
    if code == -signal.SIGKILL:
        hint = "it was killed: most likely the memory was used up"
    elif "No space left on device" in text:
        hint = f"the disk is full: an environment takes {SIZE}"
    elif any(sign in text for sign in CONNECTION_SIGNS):
        hint = "check that a package index can be reached, then run the same command again"
    else:
        hint = "the last lines say why; run the same command again once that is mended"
    return f"environment {name}: the installation failed; {hint}. The end of its output:\n{text}"


def describe_missing(environments: Sequence[VirtualEnvironment]) -> str:
    """Return which environments are to be installed, and what they take on the disk and is free there."""
    folder = environments[0].directory.parent
    names = ", ".join(environment.directory.name for environment in environments)
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.exists(place))
    free = shutil.disk_usage(there).free / 1e9
    return f"{names}: each takes {SIZE}; {free:.1f} GB are free in {folder}"
