"""Reads cores, CPU quota and processor name, and sets every library's number of threads."""

import math
import os
from pathlib import Path

from bench.probes.cgroup import CGROUP_MEMBERSHIP, CGROUP_ROOT, list_cgroups

# One variable per library that would otherwise start a thread for each core of the node.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


def count_visible_cores() -> int:
    """Return the number of cores in this process's affinity mask."""
    return len(os.sched_getaffinity(0))


def count_threads() -> int:
    """Return floor(cgroup CPU quota or visible cores, whichever is smaller), at least 1."""
    quota = read_cpu_quota_cores()
    cores = count_visible_cores()
    return max(1, math.floor(cores if quota is None else min(quota, cores)))


def limit_library_threads(num_threads: int) -> None:
    """Set every numeric library's number of threads. Works only before the library is imported."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(num_threads)


def read_cpu_quota_cores(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None where there is none.

    Reads cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us` over `cpu.cfs_period_us`).
    """
    group = find_quota_group(membership, root)
    return None if group is None else _read_quota(group)


def find_quota_group(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> Path | None:
    """Return the directory of the cgroup that sets the tightest CPU quota; None where none sets one."""
    quotas = {group: quota for group in list_cgroups("cpu", membership, root) if (quota := _read_quota(group))}
    return min(quotas, key=quotas.__getitem__, default=None)


def _read_quota(cgroup: Path) -> float | None:
    """Return the quota that one cgroup directory sets, in cores."""
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
    """Return the frequency governor of the first core; None where the machine shows none (most virtual ones)."""
    return policy.read_text().strip() if policy.exists() else None
