"""Reads how busy the CPUs are that this process may use, and how long threads waited for one.

Only the CPUs of the process's affinity and their hyperthreads say whether it had neighbours: it uses no others.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from bench.probes.cgroup import CGROUP_MEMBERSHIP, CGROUP_ROOT, list_cgroups
from bench.probes.cpu_topology import SYSTEM_CPU, list_siblings

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Columns of the line `cpu` in /proc/stat (proc(5)) in which a core works or is kept from this machine: user, nice,
# system, irq, softirq, steal. idle and iowait are neither; guest is counted in user already.
BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)


@dataclass(frozen=True, kw_only=True)
class CoreCounters:
    """The CPUs that the process may use, and those outside that are hyperthreads of the same cores."""

    affinity: frozenset[int]
    busy_seconds: float
    """Of all CPUs of the affinity together, since the machine started."""
    siblings: frozenset[int] | None
    """None here and below: the machine does not show its hyperthreads."""
    num_physical_cores: int | None
    sibling_busy_seconds: float | None


def read_core_counters(
    affinity: frozenset[int], stat: Path = PROC / "stat", system_cpu: Path = SYSTEM_CPU
) -> CoreCounters | None:
    """Return the busy time of the CPUs `affinity` and of their siblings; None where one of the former is not shown."""
    words = [line.split() for line in stat.read_text().splitlines()] if stat.exists() else []
    by_cpu = {int(line[0][3:]): sum_busy_seconds(line) for line in words if line and line[0][3:].isdigit()}
    if not affinity or not affinity <= by_cpu.keys():
        return None
    cores = {list_siblings(cpu, system_cpu) for cpu in affinity}
    shown = {core for core in cores if core is not None and core <= by_cpu.keys()}
    is_complete = shown == cores
    siblings = frozenset(cpu for core in shown for cpu in core) - affinity
    return CoreCounters(
        affinity=affinity,
        busy_seconds=sum(by_cpu[cpu] for cpu in affinity),
        siblings=siblings if is_complete else None,
        num_physical_cores=len(shown) if is_complete else None,
        sibling_busy_seconds=sum(by_cpu[cpu] for cpu in siblings) if is_complete else None,
    )


def read_cgroup_pressure_seconds(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> float | None:
    """Return the pressure of the nearest cgroup around this process that counts it (v2 only); None where none does."""
    files = (group / "cpu.pressure" for group in list_cgroups("cpu", membership, root))
    return next((seconds for file in files if (seconds := read_pressure_seconds(file)) is not None), None)


def read_pressure_seconds(path: Path) -> float | None:
    """Return how long some thread had to wait for a core (PSI, the line `some`); None where it is not counted.

    The file may be there and not be readable: the kernel was started with psi=0.
    """
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def sum_busy_seconds(words: list[str]) -> float:
    """Return the busy seconds of a line of /proc/stat that begins with `cpu`."""
    return sum(int(words[1 + column]) for column in BUSY_COLUMNS) / TICKS_PER_SECOND
