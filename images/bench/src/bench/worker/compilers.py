"""Finds the compiler that torch.compile calls while a cell is measured, and lets compiled kernels outlive a container.

TorchInductor makes a CPU's kernels with a C++ compiler; Triton makes the launchers of GPU kernels with a C compiler.
XLA, in TensorFlow and JAX, calls none. Each kind of processor has a folder of kernels of its own: Inductor compiles for
the machine that it runs on (`-march=native`), and of the processor its cache knows the width of the vectors only.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bench.probes.cpu import parse_cpuinfo
from bench.schema import Cell, Device, hash_text
from bench.worker.request import COMPILE_CACHE_VARIABLE

VERSION_SECONDS = 10.0
"""How long a compiler may take to say its version; it takes milliseconds."""


class Compiler(NamedTuple):
    """The compiler of one language, as torch._inductor.config.cpp.cxx and triton.runtime.build look for it."""

    key: str
    """What the compiler is called among the versions of an environment."""
    language: str
    variable: str
    """The environment variable that chooses another one."""
    programs: tuple[str, ...]
    """Looked for on PATH, in this order, where the variable is not set; the first is also its package in Debian."""

    def read_choice(self) -> list[str]:
        """Return the words of the variable: arguments may follow, as in CXX="ccache g++"."""
        return os.environ.get(self.variable, "").split()

    def find_program(self) -> str | None:
        names = self.read_choice()[:1] or self.programs
        return next(filter(None, map(shutil.which, names)), None)


COMPILERS: Mapping[Device, Compiler] = {
    "cpu": Compiler("cxx_compiler", "C++", "CXX", ("g++",)),
    "gpu": Compiler("c_compiler", "C", "CC", ("gcc", "clang")),
}


def _find_compiler(cell: Cell) -> Compiler | None:
    return COMPILERS[cell.device] if (cell.framework, cell.mode) == ("pytorch", "compiled") else None


def explain_missing_compiler(cell: Cell) -> str | None:
    compiler = _find_compiler(cell)
    if compiler is None or compiler.find_program() is not None:
        return None
    _, language, variable, programs = compiler
    chosen = compiler.read_choice()
    missing = f"{variable}={chosen[0]} is no program" if chosen else f"there is no {' or '.join(programs)} on PATH"
    return (
        f"compiled PyTorch needs a {language} compiler, and {missing}; install one (Debian: apt-get install "
        f"{programs[0]}) or name one in {variable}"
    )


def read_compiler_version(cell: Cell) -> dict[str, str]:
    """Return the first line that the cell's compiler prints of its version, by its key; empty if it needs none.

    Its version changes the code of a CPU's kernels. A compiler that does not say its version is `unknown`.
    """
    compiler = _find_compiler(cell)
    program = compiler and compiler.find_program()
    if compiler is None or program is None:
        return {}
    command, said = [program, *compiler.read_choice()[1:], "--version"], ""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_SECONDS, check=True)
        said = done.stdout.partition("\n")[0]
    return {compiler.key: said or "unknown"}


CACHE_FOLDERS = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""The variables that name the caches, with the folder of each. TensorFlow has none here: XLA loads what its persistent
cache holds for a CPU as ahead-of-time code, and warns that it may not fit the machine (seen with 2.21)."""
# What names a processor and its features in /proc/cpuinfo; `Features` is ARM's.
_CPU_FIELDS = ("model name", "CPU implementer", "CPU part", "flags", "Features")


def use_compile_cache(folder: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Set the variables of this process that name the caches below `folder`; one that is set already stays.

    Call it before a framework is imported: frameworks read these variables then.
    """
    fields = parse_cpuinfo(cpuinfo.read_text())
    found = {key: fields[key] for key in _CPU_FIELDS if key in fields}
    slug = re.sub("[^a-z0-9]+", "-", found.get("model name", "cpu").lower()).strip("-")
    machine = Path(folder) / f"{slug}-{hash_text(repr(sorted(found.items())))}"
    for name, child in CACHE_FOLDERS.items():
        os.environ.setdefault(name, str(machine / child))
    # By default JAX keeps only what took a second to compile:
    # https://docs.jax.dev/en/latest/persistent_compilation_cache.html
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def read_chosen_variables() -> dict[str, str]:
    """Return the variables of compilers and caches that are set; once it is imported, Inductor has set its own."""
    return {
        name: os.environ[name] for name in (COMPILE_CACHE_VARIABLE, *CACHE_FOLDERS, "CC", "CXX") if name in os.environ
    }
