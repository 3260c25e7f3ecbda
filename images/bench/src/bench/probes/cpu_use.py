"""Measures who uses the CPUs between two readings of the kernel's counters. Needs no root.

The counters of /proc tick in hundredths of a second (SC_CLK_TCK): over a window of 0.5 s the cores are exact to 0.04.
"""

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from bench.measured_bounds import try_probe
from bench.probes.core_use import (
    PROC,
    TICKS_PER_SECOND,
    CoreCounters,
    read_cgroup_pressure_seconds,
    read_core_counters,
    read_pressure_seconds,
    sum_busy_seconds,
)
from bench.probes.cpu import find_quota_group
from bench.probes.cpu_topology import read_affinity
from bench.schema import CpuUse

POWERCAP = Path("/sys/class/powercap")
MAX_READINGS = 5  # of the processes; where they never stand still, the last reading counts


@dataclass(frozen=True, kw_only=True)
class QuotaCounters:
    """The counters of the cgroup's CPU quota (cpu.stat)."""

    num_periods: int
    num_throttled_periods: int
    throttled_seconds: float

    def subtract(self, earlier: "QuotaCounters") -> "QuotaCounters":
        """Return what was added since `earlier`."""
        return QuotaCounters(
            num_periods=self.num_periods - earlier.num_periods,
            num_throttled_periods=self.num_throttled_periods - earlier.num_throttled_periods,
            throttled_seconds=self.throttled_seconds - earlier.throttled_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class PackageEnergy:
    """RAPL's counter of one socket; it starts anew at `range_microjoules`."""

    microjoules: int
    range_microjoules: int


@dataclass(frozen=True, kw_only=True)
class CpuCounters:
    """One reading of every counter; None: not readable here."""

    seconds: float
    own_seconds: float
    busy_seconds: float | None
    num_machine_cores: int
    quota: QuotaCounters | None
    packages: tuple[PackageEnergy, ...] | None
    cores: CoreCounters | None = None
    pressure_seconds: float | None = None
    """Of this process's cgroup."""
    machine_pressure_seconds: float | None = None


def read_cpu_counters() -> CpuCounters:
    """Read all counters now."""
    busy_seconds, num_cores = read_machine_seconds()
    group = find_quota_group()
    return CpuCounters(
        seconds=monotonic(),
        own_seconds=read_own_seconds(),
        busy_seconds=busy_seconds,
        num_machine_cores=num_cores,
        quota=None if group is None else read_quota_counters(group),
        packages=read_package_energy(),
        cores=read_core_counters(read_affinity()),
        pressure_seconds=read_cgroup_pressure_seconds(),
        machine_pressure_seconds=read_pressure_seconds(PROC / "pressure" / "cpu"),
    )


class CpuWatch:
    """The use of the CPUs from now until `end`. What cannot be read is noted in `failures` and ends no measurement."""

    def __init__(self, failures: list[str]) -> None:
        self._failures = failures
        self._before = self._read()

    def end(self) -> CpuUse | None:
        """Return what happened since; None, and a note, where it is not known."""
        before, after = self._before, self._read()
        if before is None or after is None:
            return None
        return try_probe(self._failures, "use of the CPUs", lambda: compare_cpu_counters(before, after), None)

    def _read(self) -> CpuCounters | None:
        return try_probe(self._failures, "use of the CPUs", read_cpu_counters, None)


def compare_cpu_counters(before: CpuCounters, after: CpuCounters) -> CpuUse:
    """Return what happened between two readings."""
    window_seconds = after.seconds - before.seconds
    own_cores = max(0.0, after.own_seconds - before.own_seconds) / window_seconds
    other_cores = None
    if before.busy_seconds is not None and after.busy_seconds is not None:
        # The two clocks tick apart: the difference of an idle machine can fall just below 0.
        other_cores = max(0.0, (after.busy_seconds - before.busy_seconds) / window_seconds - own_cores)
    quota = None if before.quota is None or after.quota is None else after.quota.subtract(before.quota)
    pressure = _subtract(after.pressure_seconds, before.pressure_seconds)
    machine_pressure = _subtract(after.machine_pressure_seconds, before.machine_pressure_seconds)
    return CpuUse(
        window_seconds=window_seconds,
        own_cores=own_cores,
        other_cores=other_cores,
        num_machine_cores=after.num_machine_cores,
        num_periods=None if quota is None else quota.num_periods,
        num_throttled_periods=None if quota is None else quota.num_throttled_periods,
        throttled_seconds=None if quota is None else quota.throttled_seconds,
        energy_joules=_sum_energy(before.packages, after.packages),
        pressure_share=None if pressure is None else pressure / window_seconds,
        machine_pressure_share=None if machine_pressure is None else machine_pressure / window_seconds,
        **_compare_cores(before.cores, after.cores, window_seconds, own_cores),
    )


def _compare_cores(
    before: CoreCounters | None, after: CoreCounters | None, window_seconds: float, own_cores: float
) -> dict[str, Any]:
    """Return what CpuUse says of the affinity and its siblings; nothing where the affinity changed meanwhile."""
    if before is None or after is None or before.affinity != after.affinity:
        return {}
    busy_cores = (after.busy_seconds - before.busy_seconds) / window_seconds
    sibling_seconds = _subtract(after.sibling_busy_seconds, before.sibling_busy_seconds)
    return {
        "num_affinity_cores": len(after.affinity),
        "num_affinity_physical_cores": after.num_physical_cores,
        "affinity_other_cores": max(0.0, busy_cores - own_cores),
        "num_sibling_cores": None if after.siblings is None else len(after.siblings),
        "sibling_busy_cores": None if sibling_seconds is None else sibling_seconds / window_seconds,
    }


def _subtract(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else max(0.0, later - earlier)


def read_own_seconds(proc: Path = PROC) -> float:
    """Return the CPU seconds of this process and its descendants: living ones and those that were waited for.

    The kernel lists one process after the other: one that is waited for meanwhile would be missed (its parent was read
    before it took over the seconds), so the list is read until the same descendants stand in it twice.
    """
    known: frozenset[int] | None = None
    for _ in range(MAX_READINGS):
        seconds, ticks = _read_waited_and_own_seconds(), _read_descendant_ticks(proc)
        if frozenset(ticks) == known:
            break
        known = frozenset(ticks)
    return seconds + sum(ticks.values()) / TICKS_PER_SECOND


def read_machine_seconds(stat: Path = PROC / "stat") -> tuple[float | None, int]:
    """Return the busy core seconds of the whole machine since it started, and its cores; stolen time is busy."""
    if not stat.exists():
        return None, os.cpu_count() or 1
    lines = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
    return sum_busy_seconds(lines[0]), len(lines) - 1


def list_own_pids(proc: Path = PROC) -> frozenset[int]:
    """Return this process and its living descendants."""
    return frozenset({os.getpid()} | _find_descendants(_read_processes(proc)))


def read_quota_counters(group: Path) -> QuotaCounters | None:
    """Return what `group`'s quota has done (v2: throttled_usec, v1: throttled_time in ns); None: not counted there."""
    stat = group / "cpu.stat"
    if not stat.exists():
        return None
    values = dict(line.split() for line in stat.read_text().splitlines())
    if "nr_periods" not in values:
        return None
    nanoseconds = int(values.get("throttled_time", 0)) + 1000 * int(values.get("throttled_usec", 0))
    return QuotaCounters(
        num_periods=int(values["nr_periods"]),
        num_throttled_periods=int(values["nr_throttled"]),
        throttled_seconds=nanoseconds / 1e9,
    )


def read_package_energy(powercap: Path = POWERCAP) -> tuple[PackageEnergy, ...] | None:
    """Return every socket's energy counter; None where there is none or it is for root only, as on most systems."""
    try:
        packages = tuple(
            PackageEnergy(
                microjoules=int((domain / "energy_uj").read_text()),
                range_microjoules=int((domain / "max_energy_range_uj").read_text()),
            )
            for domain in sorted(powercap.glob("intel-rapl:*"))
            if (domain / "name").read_text().startswith("package")
        )
    except OSError:
        return None
    return packages or None


def _sum_energy(before: tuple[PackageEnergy, ...] | None, after: tuple[PackageEnergy, ...] | None) -> float | None:
    if before is None or after is None:
        return None
    growth = (
        (last.microjoules - first.microjoules) % last.range_microjoules
        for first, last in zip(before, after, strict=True)
    )
    return sum(growth) / 1e6


def _read_waited_and_own_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _read_descendant_ticks(proc: Path) -> dict[int, int]:
    """Return the ticks of each living descendant of this process, with those of the children that it has waited for."""
    processes = _read_processes(proc)
    return {pid: processes[pid][1] for pid in _find_descendants(processes)}


def _read_processes(proc: Path) -> dict[int, tuple[int, int]]:
    """Return the parent of each process, and its ticks with those of the children that it has waited for."""
    processes = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        # From state on (proc(5)): the second is ppid, the 12th to 15th utime, stime, cutime and cstime.
        processes[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return processes


def _find_descendants(processes: Mapping[int, tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    parents = {os.getpid()}
    while parents:
        parents = {pid for pid, (parent, _) in processes.items() if parent in parents}
        found |= parents
    return found
