"""Lets the kernels that a cell compiles outlive its container, in a folder that its order names.

Each kind of processor has a folder of its own: Inductor compiles for the machine that it runs on (`-march=native`), and
of the processor its cache knows the width of the vectors only.
"""

import os
import re
from pathlib import Path

from bench.probes.cpu import parse_cpuinfo
from bench.schema import hash_text
from bench.worker.request import COMPILE_CACHE_VARIABLE

FOLDERS = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""The variables that name the caches, with the folder of each. TensorFlow has none here: XLA loads what its persistent
cache holds for a CPU as ahead-of-time code, and warns that it may not fit the machine (seen with 2.21)."""
# By default JAX keeps only what took a second to compile:
# https://docs.jax.dev/en/latest/persistent_compilation_cache.html
LIMITS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
# What names a processor and its features in /proc/cpuinfo; `Features` is ARM's.
_CPU_FIELDS = ("model name", "CPU implementer", "CPU part", "flags", "Features")


def use_compile_cache(folder: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Name the caches below `folder` in this process's variables, which frameworks read when they are imported.

    A variable that is set already stays as it is.
    """
    machine = Path(folder) / _name_machine(cpuinfo)
    for name, child in FOLDERS.items():
        os.environ.setdefault(name, str(machine / child))
    for name, value in LIMITS.items():
        os.environ.setdefault(name, value)


def read_chosen_caches() -> dict[str, str]:
    """Return the variables of caches that are set.

    Call it before the framework is imported: Inductor sets its own to the default.
    """
    return {name: os.environ[name] for name in (COMPILE_CACHE_VARIABLE, *FOLDERS) if name in os.environ}


def _name_machine(cpuinfo: Path) -> str:
    """Return a folder's name that is equal on machines with the same processor and features."""
    fields = parse_cpuinfo(cpuinfo.read_text())
    found = {key: fields[key] for key in _CPU_FIELDS if key in fields}
    slug = re.sub("[^a-z0-9]+", "-", found.get("model name", "cpu").lower()).strip("-")
    return f"{slug}-{hash_text(repr(sorted(found.items())))}"
