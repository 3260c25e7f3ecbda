"""Finds the compiler on this machine that torch.compile calls while a cell is measured.

TorchInductor makes a CPU's kernels with a C++ compiler; Triton makes the launchers of GPU kernels with a C compiler.
XLA, in TensorFlow and JAX, calls none.
"""

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass

from bench.schema import Cell

VERSION_SECONDS = 10.0
"""How long a compiler may take to say its version; it takes milliseconds."""


@dataclass(frozen=True, kw_only=True)
class CompilerKind:
    """The compiler of one language, as torch._inductor.config.cpp.cxx and triton.runtime.build look for it."""

    key: str
    """What the compiler is called among the versions of an environment."""
    language: str
    variable: str
    """The environment variable that chooses another one."""
    package: str
    """The package of Debian that has it."""
    programs: tuple[str, ...]
    """Looked for on PATH, in this order, where the variable is not set."""


CXX = CompilerKind(key="cxx_compiler", language="C++", variable="CXX", package="g++", programs=("g++",))
C = CompilerKind(key="c_compiler", language="C", variable="CC", package="gcc", programs=("gcc", "clang"))


def find_needed_kind(cell: Cell) -> CompilerKind | None:
    """Return the kind of compiler that measuring the cell calls; None if it calls none."""
    if (cell.framework, cell.mode) != ("pytorch", "compiled"):
        return None
    return CXX if cell.device == "cpu" else C


def explain_missing_compiler(cell: Cell) -> str | None:
    """Return which compiler the cell needs and this machine lacks, and how to mend that; None if it lacks none."""
    kind = find_needed_kind(cell)
    if kind is None or _find_program(kind) is not None:
        return None
    chosen = _read_choice(kind)
    missing = f"{kind.variable}={chosen[0]} is no program" if chosen else _name_programs(kind)
    return (
        f"compiled PyTorch needs a {kind.language} compiler, and {missing}; install one (Debian: apt-get install "
        f"{kind.package}) or name one in {kind.variable}"
    )


def read_compiler_version(cell: Cell) -> dict[str, str]:
    """Return the first line that the cell's compiler prints of its version, by its key; empty if it needs none.

    Its version changes the code of a CPU's kernels. A compiler that does not say its version is `unknown`.
    """
    kind = find_needed_kind(cell)
    if kind is None:
        return {}
    program = _find_program(kind)
    if program is None:
        return {}
    command = [program, *_read_choice(kind)[1:], "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {kind.key: "unknown"}
    return {kind.key: (done.stdout.splitlines() or ["unknown"])[0] if not done.returncode else "unknown"}


def _read_choice(kind: CompilerKind) -> list[str]:
    """Return the words of the variable that chooses the compiler: arguments may follow, as in CXX="ccache g++"."""
    try:
        return shlex.split(os.environ.get(kind.variable, ""))
    except ValueError:  # an open quotation mark
        return os.environ[kind.variable].split()


def _find_program(kind: CompilerKind) -> str | None:
    names = _read_choice(kind)[:1] or kind.programs
    return next(filter(None, map(shutil.which, names)), None)


def _name_programs(kind: CompilerKind) -> str:
    return f"there is no {' or '.join(kind.programs)} on PATH"
