"""Reads what explains how fast a machine is: firmware, hypervisor, cores, NUMA nodes, instruction sets."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bench.probes.cpu import parse_cpuinfo
from bench.probes.cpu_topology import parse_cpu_list
from bench.schema import Machine

T = TypeVar("T")

# What oneDNN, OpenBLAS, MKL and Eigen choose their kernels by, as the kernel names it in /proc/cpuinfo: x86, then ARM.
INSTRUCTION_SETS = (
    *("avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "sme"),
)


def read_machine(root: Path = Path("/"), cores: Collection[int] | None = None) -> Machine:
    """Return what is known of the machine, and of the part of it that `cores` are (default: those of this process)."""
    visible = os.sched_getaffinity(0) if cores is None else cores
    system = root / "sys/devices/system"
    flags = _read_flags(root / "proc/cpuinfo")
    cores_of_sockets = [_locate_core(system, core) for core in visible]
    siblings = [_parse(_read_text(_find_topology(system, core) / "thread_siblings_list"), len) for core in visible]
    return Machine(
        vendor=_read_text(root / "sys/class/dmi/id/sys_vendor"),
        product=_read_text(root / "sys/class/dmi/id/product_name"),
        is_virtual=_is_virtual(flags, root),
        num_online_cores=_parse(_read_text(system / "cpu/online"), len),
        visible_cores=format_core_list(visible),
        num_physical_cores=_count_different(cores_of_sockets),
        num_sockets=_count_different(place and place[0] for place in cores_of_sockets),
        num_numa_nodes=_count_numa_nodes(system, visible),
        threads_per_core=max((number for number in siblings if number), default=None),
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags),
    )


def format_core_list(cores: Iterable[int]) -> str | None:
    """Return the numbers as the kernel writes them: `0-3,8`; None without any."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs) or None


def _read_text(path: Path) -> str | None:
    """Return the text of a file on one line; None where it is empty or cannot be read, as in some sandboxes."""
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def _parse(text: str | None, measure: Callable[[frozenset[int]], T]) -> T | None:
    """Return `measure` of a list of cores; None where there is no list, or an empty or strange one."""
    try:
        cores = parse_cpu_list(text or "")
    except ValueError:
        return None
    return measure(cores) if cores else None


def _read_flags(cpuinfo: Path) -> set[str]:
    """Return the flags of the first core (`flags` on x86, `Features` on ARM)."""
    fields = parse_cpuinfo(_read_text(cpuinfo) or "")
    return set(fields.get("flags", fields.get("Features", "")).split())


def _is_virtual(flags: set[str], root: Path) -> bool | None:
    if "hypervisor" in flags or (root / "sys/hypervisor/type").exists():  # the latter: Xen
        return True
    return False if "fpu" in flags else None  # every x86 CPU has this flag, ARM has no flag for hypervisors


def _find_topology(system: Path, core: int) -> Path:
    return system / f"cpu/cpu{core}/topology"


def _locate_core(system: Path, core: int) -> tuple[int, int] | None:
    """Return socket and number of the physical core that a logical core belongs to."""
    folder = _find_topology(system, core)
    socket, number = _read_text(folder / "physical_package_id"), _read_text(folder / "core_id")
    # Kernels of some ARM machines and sandboxes give -1 for what they do not know.
    if not (socket and number and socket.isdigit() and number.isdigit()):
        return None
    return int(socket), int(number)


def _count_different(values: Iterable[object]) -> int | None:
    """Return how many different values there are; None where one of them is not known, or there is none."""
    found = set(values)
    return None if None in found else len(found) or None


def _count_numa_nodes(system: Path, cores: Collection[int]) -> int | None:
    nodes = list(_list_numa_nodes(system))
    return sum(bool(node & set(cores)) for node in nodes) or None


def _list_numa_nodes(system: Path) -> Iterator[frozenset[int]]:
    for node in system.glob("node/node[0-9]*"):
        yield _parse(_read_text(node / "cpulist"), frozenset) or frozenset()
