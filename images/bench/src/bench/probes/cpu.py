"""Reads cores, quota, topology and use of the CPUs, from /proc, /sys and the cgroup. Needs no root.

The counters of /proc tick in hundredths of a second (SC_CLK_TCK): over a window of 0.5 s the cores are exact to 0.04.
Only the CPUs of the process's affinity and their hyperthreads say whether it had neighbours: it uses no others.
"""

import math
import os
import resource
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from bench.probes import try_probe
from bench.schema import CpuUse

PROC = Path("/proc")
CPUINFO = PROC / "cpuinfo"
OWN_TASKS = PROC / "self" / "task"
SYSTEM_CPU = Path("/sys/devices/system/cpu")
CGROUP_MEMBERSHIP = PROC / "self" / "cgroup"
CGROUP_ROOT = Path("/sys/fs/cgroup")


def list_cgroups(controller: str, membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> Iterator[Path]:
    """Yield this process's cgroup directory for `controller`, then its parents; not all of them exist.

    In a container /proc may show the path on the host, while the mount shows the container's own group as its root.
    """
    if not membership.exists():
        return
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [root / controllers, root / controller] if controllers else [root, root / "unified"]
        for mount in mounts:
            inside = Path(path.lstrip("/"))
            yield from (mount / parent for parent in (inside, *inside.parents))


# One variable per library that would otherwise start a thread for each core of the node.
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
)


def count_threads() -> int:
    """Return floor(cgroup CPU quota or visible cores, whichever is smaller), at least 1."""
    quota = read_cpu_quota_cores()
    cores = len(os.sched_getaffinity(0))
    return max(1, math.floor(cores if quota is None else min(quota, cores)))


def limit_library_threads(num_threads: int) -> None:
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(num_threads)


def read_cpu_quota_cores(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None if there is none.

    Read from cgroup v2 (`cpu.max`) or v1 (`cpu.cfs_quota_us` over `cpu.cfs_period_us`).
    """
    group = find_quota_group(membership, root)
    return None if group is None else _read_quota(group)


def find_quota_group(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> Path | None:
    quotas = {group: quota for group in list_cgroups("cpu", membership, root) if (quota := _read_quota(group))}
    return min(quotas, key=quotas.__getitem__, default=None)


def _read_quota(cgroup: Path) -> float | None:
    maximum = cgroup / "cpu.max"
    if maximum.exists():
        quota, period = maximum.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    v1_quota = cgroup / "cpu.cfs_quota_us"
    if v1_quota.exists():
        microseconds = int(v1_quota.read_text())
        return None if microseconds < 0 else microseconds / int((cgroup / "cpu.cfs_period_us").read_text())
    return None


def read_cpu_model(cpuinfo: Path = CPUINFO) -> str:
    """Return the processor's name as the kernel gives it, `unknown` where it gives none.

    64-bit ARM kernels give numbers only (implementer and part of the core); boards add a line `Model` at the end.
    """
    fields = parse_cpuinfo(cpuinfo.read_text())
    names = [fields[key] for key in ("model name", "Model") if fields.get(key)]
    if not names and "CPU part" in fields:
        return f"ARM implementer {fields.get('CPU implementer', 'unknown')} part {fields['CPU part']}"
    return names[0] if names else "unknown"


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the fields of /proc/cpuinfo, or of a status: each with its first value, that of the first processor."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


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


def list_physical_cores(cpus: Collection[int], system_cpu: Path = SYSTEM_CPU) -> frozenset[frozenset[int]] | None:
    """Return the cores of these CPUs, each as all its hyperthreads; None where the machine does not show them."""
    files = [system_cpu / f"cpu{cpu}" / "topology" / "thread_siblings_list" for cpu in cpus]
    return frozenset(parse_cpu_list(file.read_text()) for file in files) if all(map(Path.exists, files)) else None


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the numbers of the kernel's lists of CPUs: `0-3,8` is 0, 1, 2, 3 and 8."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Columns of a line `cpu` in /proc/stat (proc(5)) in which a core works or is kept from this machine: user, nice,
# system, irq, softirq, steal. idle and iowait are neither; guest is counted in user already.
BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)
POWERCAP = Path("/sys/class/powercap")
MAX_READINGS = 5  # of the processes; where they never stand still, the last reading counts


@dataclass(frozen=True, kw_only=True)
class CpuCounters:
    """One reading of every counter; None: not readable here."""

    seconds: float
    own_seconds: float
    busy_seconds: Mapping[int, float] = field(default_factory=dict)
    """Of each CPU of the machine since it started; empty where it shows none."""
    affinity: frozenset[int] = frozenset()
    """The CPUs that the process may use."""
    cores: frozenset[frozenset[int]] | None = None
    """The physical cores of the affinity, each as all its hyperthreads."""
    packages: tuple[tuple[int, int], ...] | None = None
    """RAPL's counter of each socket in microjoules, and where it starts anew."""
    quota: Mapping[str, float] = field(default_factory=dict)
    """Of the cgroup's CPU quota, by the names of CpuUse; empty: there is none."""
    pressure_seconds: Mapping[str, float | None] = field(default_factory=dict)
    """By the names of their shares in CpuUse."""


def read_cpu_counters() -> CpuCounters:
    group = find_quota_group()
    affinity = read_affinity()
    return CpuCounters(
        seconds=monotonic(),
        own_seconds=read_own_seconds(),
        busy_seconds=read_busy_seconds(),
        affinity=affinity,
        cores=list_physical_cores(affinity),
        packages=read_package_energy(),
        quota={} if group is None else read_quota_counters(group),
        pressure_seconds={
            "pressure_share": read_cgroup_pressure_seconds(),
            "machine_pressure_share": read_pressure_seconds(PROC / "pressure" / "cpu"),
        },
    )


def watch_cpus(failures: list[str]) -> Callable[[], CpuUse | None]:
    """Watch the use of the CPUs until what is returned is called. What cannot be read is noted in `failures`."""
    name = "use of the CPUs"
    before = try_probe(failures, name, read_cpu_counters, None)

    def end() -> CpuUse | None:
        if before is None:
            return None
        return try_probe(failures, name, lambda: compare_cpu_counters(before, read_cpu_counters()), None)

    return end


def compare_cpu_counters(before: CpuCounters, after: CpuCounters) -> CpuUse:
    window_seconds = after.seconds - before.seconds
    # Differences of clocks that tick apart can fall just below 0.
    own_cores = max(0.0, after.own_seconds - before.own_seconds) / window_seconds
    earlier_busy, later_busy = before.busy_seconds, after.busy_seconds
    busy = {cpu: seconds - earlier_busy[cpu] for cpu, seconds in later_busy.items() if cpu in earlier_busy}
    parts: dict[str, Any] = {name: after.quota[name] - value for name, value in before.quota.items() if after.quota}
    for name, earlier in before.pressure_seconds.items():
        later = after.pressure_seconds.get(name)
        if earlier is not None and later is not None:
            parts[name] = max(0.0, later - earlier) / window_seconds

    def count_busy(cpus: Collection[int], own_cores: float) -> float:
        return max(0.0, sum(busy[cpu] for cpu in cpus) / window_seconds - own_cores)

    affinity, cores = after.affinity, after.cores
    if affinity and affinity == before.affinity and affinity <= busy.keys():
        parts |= {"num_affinity_cores": len(affinity), "affinity_other_cores": count_busy(affinity, own_cores)}
        siblings = frozenset[int]().union(*(cores or ())) - affinity
        if cores is not None and siblings <= busy.keys():
            parts |= {"num_affinity_physical_cores": len(cores), "num_sibling_cores": len(siblings)}
            parts |= {"sibling_busy_cores": count_busy(siblings, 0.0)}
    if before.packages is not None and after.packages is not None:
        ends = zip(before.packages, after.packages, strict=True)
        parts["energy_joules"] = sum((later - earlier) % size for (earlier, _), (later, size) in ends) / 1e6
    return CpuUse(
        window_seconds=window_seconds,
        own_cores=own_cores,
        other_cores=count_busy(busy, own_cores) if busy else None,
        num_machine_cores=len(later_busy) or os.cpu_count() or 1,
        **parts,
    )


def read_busy_seconds(stat: Path = PROC / "stat") -> dict[int, float]:
    """Return for how long each CPU of the machine was busy since it started; stolen time is busy."""
    lines = stat.read_text().splitlines() if stat.exists() else []
    by_cpu = {words[0][3:]: words[1:] for line in lines if (words := line.split()) and line.startswith("cpu")}
    return {
        int(cpu): sum(int(ticks[column]) for column in BUSY_COLUMNS) / TICKS_PER_SECOND
        for cpu, ticks in by_cpu.items()
        if cpu  # the first line is the sum of all
    }


def read_cgroup_pressure_seconds(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> float | None:
    """Return the pressure of the nearest cgroup around this process that counts it (v2 only); None where none does."""
    files = (group / "cpu.pressure" for group in list_cgroups("cpu", membership, root))
    return next((seconds for file in files if (seconds := read_pressure_seconds(file)) is not None), None)


def read_pressure_seconds(path: Path) -> float | None:
    """Return how long some thread had to wait for a core (PSI, the line `some`); None if the kernel does not count."""
    with suppress(OSError):  # with psi=0 the file is there, and cannot be read
        for line in path.read_text().splitlines():
            if line.startswith("some "):
                return int(line.rpartition("total=")[2]) / 1e6
    return None


def read_own_seconds(proc: Path = PROC) -> float:
    """Return the CPU seconds of this process and its descendants: living ones and those that were waited for.

    The kernel lists one process after the other: one that is waited for meanwhile would be missed (its parent was read
    before it took over the seconds), so the list is read until the same descendants stand in it twice.
    """
    known: Collection[int] | None = None
    for _ in range(MAX_READINGS):
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ticks = _read_descendants(proc)
        if ticks.keys() == known:
            break
        known = ticks.keys()
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(ticks.values()) / TICKS_PER_SECOND


def list_own_pids(proc: Path = PROC) -> frozenset[int]:
    return frozenset({os.getpid(), *_read_descendants(proc)})


def _read_descendants(proc: Path) -> dict[int, int]:
    """Return the ticks of each descendant of this process, with those of the children that it has waited for."""
    parents, ticks = {}, {}
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            # From state on (proc(5)): the second is ppid, the 12th to 15th utime, stime, cutime and cstime.
            pid = int(stat.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    found: set[int] = set()
    generation = {os.getpid()}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation}
        found |= generation
    return {pid: ticks[pid] for pid in found}


def read_quota_counters(group: Path) -> dict[str, float]:
    """Return what `group`'s quota has done (v2: throttled_usec, v1: throttled_time in ns); empty: not counted there."""
    stat = group / "cpu.stat"
    values = dict(line.split() for line in stat.read_text().splitlines()) if stat.exists() else {}
    if "nr_periods" not in values:
        return {}
    nanoseconds = int(values.get("throttled_time", 0)) + 1000 * int(values.get("throttled_usec", 0))
    counts = {"num_periods": int(values["nr_periods"]), "num_throttled_periods": int(values["nr_throttled"])}
    return counts | {"throttled_seconds": nanoseconds / 1e9}


def read_package_energy(powercap: Path = POWERCAP) -> tuple[tuple[int, int], ...] | None:
    """Return every socket's energy counter; None where there is none or it is for root only, as on most systems."""
    try:
        packages = tuple(
            (int((domain / "energy_uj").read_text()), int((domain / "max_energy_range_uj").read_text()))
            for domain in sorted(powercap.glob("intel-rapl:*"))
            if (domain / "name").read_text().startswith("package")
        )
    except OSError:
        return None
    return packages or None
