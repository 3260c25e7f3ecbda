"""Reads the memory and the CPU time of another process from /proc, for the benchmarks."""

import os
import re
from pathlib import Path


def read_memory(pid: int) -> dict[str, float]:
    """Return the resident set of a process in MiB: now (VmRSS) and at most (VmHWM); zeros for one that has ended."""
    try:
        found = re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except FileNotFoundError:
        found = []
    return {"VmHWM": 0.0, "VmRSS": 0.0} | {name: int(kib) / 1024 for name, kib in found}


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, of user and kernel; 0 for one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
