"""Looks at a cell's GPUs while the measured process still holds them: who else uses them, and what is free."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.probes.nvml import Device, open_nvml
from bench.probes.visible_gpus import find_visible_devices
from bench.schema import ForeignProcess, GpuUse

MPS_PROGRAM = "nvidia-cuda-mps"
"""How the names of MPS's own processes begin, which the kernel cuts to 15 characters (proc_pid_comm(5))."""


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """What is in use on a GPU."""

    used_bytes: int | None = None
    """Of all processes together; None: not known."""
    by_process: Mapping[int, int] = field(default_factory=dict)
    """Of each process of which NVML says it."""


def look_for_neighbours(
    baselines: Sequence[GpuUse], own_pids: Collection[int], *, is_under_mps: bool = False
) -> tuple[GpuUse, ...]:
    """Return `baselines` with the users of each GPU other than `own_pids`, who must be using the GPUs now.

    `is_under_mps`: MPS's server is one of them.
    """
    with open_nvml():
        devices = find_visible_devices(len(baselines))
        return tuple(
            _look_at_device(use, device, own_pids, is_under_mps) for use, device in zip(baselines, devices, strict=True)
        )


def _look_at_device(use: GpuUse, device: Device, own_pids: Collection[int], is_under_mps: bool) -> GpuUse:
    """Return `use` with what is known now.

    A container may see no process, or processes by the numbers of its host: who does not see itself sees nobody.
    """
    processes = device.read_compute_processes() or ()
    if is_under_mps:
        own_pids = {*own_pids, *find_mps_servers([process.pid for process in processes])}
    own = [process for process in processes if process.pid in own_pids]
    free: dict[str, Any] = {"memory_free_after_bytes": device.read_memory_free_bytes()}
    if not own:
        return use.model_copy(update={"processes_visible": False} | free)
    used = device.read_memory_used_bytes()
    update: dict[str, Any] = {
        "processes_visible": True,
        "foreign_processes_after": tuple(process for process in processes if process.pid not in own_pids),
        "foreign_memory_after_bytes": None if used is None else _subtract_own(used, own),
    }
    return use.model_copy(update=update | free)


def _subtract_own(used_bytes: int, own: Sequence[ForeignProcess]) -> int | None:
    """Return what is left of the memory in use without that of `own`; None where one of these is not known."""
    sizes = [process.memory_bytes for process in own]
    if None in sizes:
        return None
    return max(0, used_bytes - sum(size for size in sizes if size is not None))


def read_device_memory() -> DeviceMemory:
    """Return what is in use on the first GPU that this process may use. Raise NvmlError without a driver."""
    with open_nvml():
        device = find_visible_devices(1)[0]
        processes = device.read_compute_processes() or ()
        sizes = {process.pid: process.memory_bytes for process in processes if process.memory_bytes is not None}
        return DeviceMemory(used_bytes=device.read_memory_used_bytes(), by_process=sizes)


def leave_out_mps(use: GpuUse) -> GpuUse:
    """Return `use` without the processes of MPS among those that were there before: they compute for the cell."""
    before = use.foreign_processes or ()
    servers = find_mps_servers([process.pid for process in before])
    left = tuple(process for process in before if process.pid not in servers)
    return use.model_copy(update={"foreign_processes": left}) if servers else use


def find_mps_servers(pids: Collection[int], proc: Path = Path("/proc")) -> frozenset[int]:
    """Return those of the processes that are MPS's own: the server computes for its clients."""
    return frozenset(pid for pid in pids if _read_name(proc / str(pid) / "comm").startswith(MPS_PROGRAM))


def _read_name(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:  # of another namespace, or ended
        return ""
