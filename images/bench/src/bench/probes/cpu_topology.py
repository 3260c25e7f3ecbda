"""Reads which CPUs this process may use and which of them are hyperthreads of one core."""

import os
from pathlib import Path

SYSTEM_CPU = Path("/sys/devices/system/cpu")
OWN_TASKS = Path("/proc/self/task")


def read_affinity(tasks: Path = OWN_TASKS) -> frozenset[int]:
    """Return the CPUs that the threads of this process may use, together.

    Not those of the calling thread alone: OpenMP may have bound it to one core when it was loaded.
    """
    allowed = set(os.sched_getaffinity(0))
    for task in tasks.glob("[0-9]*"):
        try:
            allowed |= os.sched_getaffinity(int(task.name))
        except ProcessLookupError:  # ended meanwhile
            continue
    return frozenset(allowed)


def list_siblings(cpu: int, system_cpu: Path = SYSTEM_CPU) -> frozenset[int] | None:
    """Return the CPUs that share a core with `cpu`, itself included; None where the machine does not show it."""
    path = system_cpu / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    return parse_cpu_list(path.read_text()) if path.exists() else None


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the numbers of the kernel's lists of CPUs: `0-3,8` is 0, 1, 2, 3 and 8."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
