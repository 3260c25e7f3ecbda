"""Reads cores, quota, topology and use of the CPUs, from /proc, /sys and the cgroup. Needs no root.

The counters of /proc tick in hundredths of a second (SC_CLK_TCK): over a window of 0.5 s the cores are exact to 0.04.
Only the CPUs of the process's affinity and their hyperthreads say whether it had neighbours: it uses no others.
"""

import math
import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from bench.probes.probing import try_probe
from bench.schema import CpuUse

CGROUP_MEMBERSHIP = Path("/proc/self/cgroup")
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


def count_visible_cores() -> int:
    return len(os.sched_getaffinity(0))


def count_threads() -> int:
    """Return floor(cgroup CPU quota or visible cores, whichever is smaller), at least 1."""
    quota = read_cpu_quota_cores()
    cores = count_visible_cores()
    return max(1, math.floor(cores if quota is None else min(quota, cores)))


def limit_library_threads(num_threads: int) -> None:
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(num_threads)


def read_cpu_quota_cores(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None where there is none.

    Reads cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us` over `cpu.cfs_period_us`).
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


def read_cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as the kernel gives it, `unknown` where it gives none.

    64-bit ARM kernels give numbers only (implementer and part of the core); boards add a line `Model` at the end.
    """
    fields = parse_cpuinfo(cpuinfo.read_text())
    names = [fields[key] for key in ("model name", "Model") if fields.get(key)]
    if not names and "CPU part" in fields:
        return f"ARM implementer {fields.get('CPU implementer', 'unknown')} part {fields['CPU part']}"
    return names[0] if names else "unknown"


def parse_cpuinfo(text: str) -> dict[str, str]:
    """Return the fields of /proc/cpuinfo, each with its first value: those of the first processor, and of the board."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def read_cpu_governor(policy: Path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) -> str | None:
    return policy.read_text().strip() if policy.exists() else None


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
    return sum(int(words[1 + column]) for column in BUSY_COLUMNS) / TICKS_PER_SECOND


POWERCAP = Path("/sys/class/powercap")
QUOTA_NAMES = ("num_periods", "num_throttled_periods", "throttled_seconds")
MAX_READINGS = 5  # of the processes; where they never stand still, the last reading counts


@dataclass(frozen=True, kw_only=True)
class CpuCounters:
    """One reading of every counter; None: not readable here."""

    seconds: float
    own_seconds: float
    busy_seconds: float | None
    num_machine_cores: int
    quota: Mapping[str, float] | None
    """Of the cgroup's CPU quota, by the names of CpuUse."""
    packages: tuple[tuple[int, int], ...] | None
    """RAPL's counter of each socket in microjoules, and where it starts anew."""
    cores: CoreCounters | None = None
    pressure_seconds: float | None = None
    """Of this process's cgroup."""
    machine_pressure_seconds: float | None = None


def read_cpu_counters() -> CpuCounters:
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
        before, after = self._before, self._read()
        if before is None or after is None:
            return None
        return try_probe(self._failures, "use of the CPUs", lambda: compare_cpu_counters(before, after), None)

    def _read(self) -> CpuCounters | None:
        return try_probe(self._failures, "use of the CPUs", read_cpu_counters, None)


def compare_cpu_counters(before: CpuCounters, after: CpuCounters) -> CpuUse:
    window_seconds = after.seconds - before.seconds

    def share(later: float | None, earlier: float | None) -> float | None:
        return None if later is None or earlier is None else max(0.0, later - earlier) / window_seconds

    own_cores = max(0.0, after.own_seconds - before.own_seconds) / window_seconds
    busy_cores = share(after.busy_seconds, before.busy_seconds)
    quota: dict[str, Any] = dict.fromkeys(QUOTA_NAMES)
    if before.quota is not None and after.quota is not None:
        quota = {name: after.quota[name] - before.quota[name] for name in QUOTA_NAMES}
    cores: dict[str, Any] = {}
    first, last = before.cores, after.cores
    if first is not None and last is not None and first.affinity == last.affinity:
        cores = {
            "num_affinity_cores": len(last.affinity),
            "num_affinity_physical_cores": last.num_physical_cores,
            "affinity_other_cores": max(0.0, (last.busy_seconds - first.busy_seconds) / window_seconds - own_cores),
            "num_sibling_cores": None if last.siblings is None else len(last.siblings),
            "sibling_busy_cores": share(last.sibling_busy_seconds, first.sibling_busy_seconds),
        }
    energy_joules = None
    if before.packages is not None and after.packages is not None:
        ends = zip(before.packages, after.packages, strict=True)
        energy_joules = sum((later - earlier) % size for (earlier, _), (later, size) in ends) / 1e6
    return CpuUse(
        window_seconds=window_seconds,
        own_cores=own_cores,
        # The two clocks tick apart: the difference of an idle machine can fall just below 0.
        other_cores=None if busy_cores is None else max(0.0, busy_cores - own_cores),
        num_machine_cores=after.num_machine_cores,
        energy_joules=energy_joules,
        pressure_share=share(after.pressure_seconds, before.pressure_seconds),
        machine_pressure_share=share(after.machine_pressure_seconds, before.machine_pressure_seconds),
        **quota,
        **cores,
    )


def read_own_seconds(proc: Path = PROC) -> float:
    """Return the CPU seconds of this process and its descendants: living ones and those that were waited for.

    The kernel lists one process after the other: one that is waited for meanwhile would be missed (its parent was read
    before it took over the seconds), so the list is read until the same descendants stand in it twice.
    """
    known: frozenset[int] | None = None
    for _ in range(MAX_READINGS):
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        processes = _read_processes(proc)
        descendants = frozenset(_find_descendants(processes))
        if descendants == known:
            break
        known = descendants
    ticks = sum(processes[pid][1] for pid in descendants)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + ticks / TICKS_PER_SECOND


def read_machine_seconds(stat: Path = PROC / "stat") -> tuple[float | None, int]:
    """Return the busy core seconds of the whole machine since it started, and its cores; stolen time is busy."""
    if not stat.exists():
        return None, os.cpu_count() or 1
    lines = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
    return sum_busy_seconds(lines[0]), len(lines) - 1


def list_own_pids(proc: Path = PROC) -> frozenset[int]:
    return frozenset({os.getpid()} | _find_descendants(_read_processes(proc)))


def read_quota_counters(group: Path) -> Mapping[str, float] | None:
    """Return what `group`'s quota has done (v2: throttled_usec, v1: throttled_time in ns); None: not counted there."""
    stat = group / "cpu.stat"
    values = dict(line.split() for line in stat.read_text().splitlines()) if stat.exists() else {}
    if "nr_periods" not in values:
        return None
    nanoseconds = int(values.get("throttled_time", 0)) + 1000 * int(values.get("throttled_usec", 0))
    counters = (int(values["nr_periods"]), int(values["nr_throttled"]), nanoseconds / 1e9)
    return dict(zip(QUOTA_NAMES, counters, strict=True))


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
