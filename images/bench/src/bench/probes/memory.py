"""Reads memory limits and peaks of the process, its cgroup and the machine."""

from pathlib import Path

from bench.probes.cgroup import CGROUP_MEMBERSHIP, CGROUP_ROOT, list_cgroups

LIMIT_FILES = ("memory.max", "memory.limit_in_bytes")
NO_LIMIT_BYTES = 2**60
"""v1 writes the largest number of whole pages where there is no limit."""
PEAK_FILES = ("memory.peak", "memory.max_usage_in_bytes")  # cgroup v2 (Linux 5.19) and v1


def read_peak_rss_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Return the process's peak resident set (VmHWM). It never falls: import and build are in it."""
    return _read_kibibytes(status, "VmHWM")


def read_rss_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Return the process's present resident set (VmRSS)."""
    return _read_kibibytes(status, "VmRSS")


def reset_peak_rss(clear_refs: Path = Path("/proc/self/clear_refs")) -> None:
    """Start VmHWM anew from the present resident set (proc_pid_clear_refs(5)). Raise OSError where that is refused."""
    clear_refs.write_text("5")


def read_memory_total_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the machine's memory (MemTotal)."""
    return _read_kibibytes(meminfo, "MemTotal")


def read_peak_cgroup_bytes(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> int | None:
    """Return the peak of the nearest cgroup around this process that counts one; None where none does."""
    for group in list_cgroups("memory", membership, root):
        for name in PEAK_FILES:
            if (group / name).exists():
                return int((group / name).read_text())
    return None


def read_memory_limit_bytes(membership: Path = CGROUP_MEMBERSHIP, root: Path = CGROUP_ROOT) -> int | None:
    """Return the tightest memory limit of this process's cgroup and its parents; None where there is none."""
    limits = []
    for group in list_cgroups("memory", membership, root):
        for name in LIMIT_FILES:
            text = (group / name).read_text().strip() if (group / name).exists() else "max"
            if text != "max" and int(text) < NO_LIMIT_BYTES:
                limits.append(int(text))
    return min(limits, default=None)


def _read_kibibytes(path: Path, key: str) -> int:
    """Return the bytes of a `Key:   123 kB` line; these files count in units of 1024."""
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise LookupError(f"{path} has no line {key}")
